"""Simulated: certificates for groups, and the shifts that a promise for true classes or within groups survives.

The laws are finite, as in `test_certificate`: a point has a group, a predicted class and one of a few scores, and is
right with a probability that belongs to them, so that every share right is known exactly.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.guarantees.draws import Draws
from tests.guarantees.test_certificate import ALPHA, BELOW, CONFIDENCE, EPS, ERROR_SHARE, GRADED, LEVELS
from venn_admit.core.calibrators.certification import attributes_of, make_certification
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.points import CertificatePoints, PointGroups
from venn_admit.core.calibrators.certified.policies import Policy, admit
from venn_admit.core.types import BoolArray, FloatArray

VALUES = ("common", "rare")
GROUP, CELLS = "group:region", "predicted*group:region"


@dataclass(frozen=True)
class Law:
    """A law of points of two classes and two groups.

    group: (2,), the probability of each group. right: (2, 2, 6), the probability that a point of each group, predicted
    class and score is right; a wrong point is of the other class. predicted: (2,), the probability of each.
    """

    group: FloatArray
    right: FloatArray
    predicted: FloatArray
    points: int = 1500

    @property
    def weight(self) -> FloatArray:
        """(2, 2, 6), the probability of each group, predicted class and score."""
        weight: FloatArray = np.multiply.outer(np.outer(self.group, self.predicted), [0.3, 0.2, 0.15, 0.15, 0.1, 0.1])
        return weight

    def draw(self, rng: np.random.Generator, points: int) -> CertificatePoints:
        cell = rng.choice(self.weight.size, points, p=self.weight.ravel())
        group, predicted, level = np.unravel_index(cell, self.weight.shape)
        label = np.where(rng.random(points) < self.right.ravel()[cell], predicted, 1 - predicted)
        return CertificatePoints(
            LEVELS[level], predicted, label, np.arange(points), (PointGroups("region", VALUES, group),)
        )

    def admitted(self, policy: Policy) -> BoolArray:
        """(2, 2, 6), which of these a policy admits."""
        group, predicted, level = (axis.ravel() for axis in np.indices(self.weight.shape))
        found = admit(LEVELS[level], predicted, policy, {"region": [VALUES[place] for place in group.tolist()]})
        return found.reshape(self.weight.shape)

    def falls_short(self, policy: Policy, *kinds: str) -> bool:
        """Whether a policy admits fewer than 1 - alpha right of some class or group of the kinds asked for."""
        admitted = np.where(self.admitted(policy), self.weight, 0.0)
        wrong = admitted * (1 - self.right)
        excess = wrong - ERROR_SHARE * admitted
        right, missed = (admitted - wrong).sum(axis=(0, 2)), wrong.sum(axis=(0, 2))[::-1]
        of_kind = {
            "predicted": excess.sum(axis=(0, 2)),
            "true": (1 - ERROR_SHARE) * missed - ERROR_SHARE * right,
            GROUP: excess.sum(axis=(1, 2)),
            CELLS: excess.sum(axis=2).ravel(),
        }
        return bool((np.concatenate([of_kind[kind] for kind in kinds]) > 1e-12).any())

    def certified(self, seed: int, *kinds: str) -> Policy | None:
        rng = np.random.default_rng(seed)
        groups = attributes_of(make_certification(kinds).kinds)
        proposing, evidence = (
            points if groups else replace(points, groups=())
            for points in (self.draw(rng, self.points // 5), self.draw(rng, self.points))
        )
        return certify(proposing, evidence, class_count=2, alpha=ALPHA, kinds=kinds, confidence=CONFIDENCE).policy


HALVES = np.array([0.5, 0.5])
EASY = np.minimum(GRADED + 0.02, 0.995)
WEAK = Law(np.array([0.9, 0.1]), np.array([[EASY, EASY], np.full((2, 6), 0.75)]), HALVES)
JUST_BELOW = Law(HALVES, np.array([[EASY, EASY], [BELOW, BELOW]]), HALVES)
OF_CONTROLS = 30


def test_a_certificate_without_groups_takes_a_weak_one_along() -> None:
    policies = [WEAK.certified(seed, "predicted") for seed in range(OF_CONTROLS)]
    assert np.mean([policy is not None and WEAK.falls_short(policy, GROUP) for policy in policies]) > 0.9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "kinds", "least"),
    [
        (WEAK, (GROUP,), 0.7),
        (WEAK, (CELLS,), 0.7),
        (WEAK, ("predicted", GROUP), 0.7),
        (WEAK, ("true", CELLS), 0.5),
        (JUST_BELOW, (GROUP,), 0.35),
        (JUST_BELOW, (CELLS,), 0.35),
        # A path goes as far as its weakest group, which here is half of all points.
        (JUST_BELOW, ("predicted", GROUP), 0.05),
    ],
)
def test_a_certificate_for_groups_seldom_falls_short(law: Law, kinds: tuple[str, ...], least: float) -> None:
    """least: what is admitted of the other group, as a part of all points."""
    draws, admitted = Draws(EPS), 0.0
    for seed in draws:
        policy = law.certified(seed, *kinds)
        draws.add(policy is not None and law.falls_short(policy, *kinds))
        admitted += 0.0 if policy is None else float((law.admitted(policy)[0] * law.weight[0]).sum())
    assert draws.seldom
    assert admitted / draws.count > least


def test_a_promise_for_true_classes_survives_other_class_shares() -> None:
    """Only the shares of the true classes change: within one, scores and predictions stay as they were."""
    law = Law(np.array([1.0, 0.0]), np.array([[GRADED, GRADED]] * 2), HALVES)
    later = _after_class_shift(law, share=0.15)
    assert _seldom(law, "true", later, "true")
    assert _share(law, "predicted", later) > 0.9


def _falls_short(seed: int, law: Law, asked: str, later: Law, kind: str) -> bool:
    """Whether what one law certifies falls short under another one."""
    policy = law.certified(seed, asked)
    return policy is not None and later.falls_short(policy, kind)


def _seldom(law: Law, asked: str, later: Law, kind: str) -> bool:
    draws = Draws(EPS)
    for seed in draws:
        draws.add(_falls_short(seed, law, asked, later, kind))
    return draws.seldom


def _share(law: Law, asked: str, later: Law) -> float:
    return sum(_falls_short(seed, law, asked, later, "predicted") for seed in range(OF_CONTROLS)) / OF_CONTROLS


def _after_class_shift(law: Law, *, share: float) -> Law:
    """The law in which class 0 has another share, and p(x | y) is the same."""
    right, wrong = law.weight * law.right, law.weight * (1 - law.right)
    of_zero = right[:, 0].sum() + wrong[:, 1].sum()
    factor = np.array([share / of_zero, (1 - share) / (1 - of_zero)])[:, None]
    weight = right * factor + wrong * factor[::-1]
    return _OfWeights(law.group, right * factor / np.maximum(weight, 1e-300), law.predicted, weights=weight)


@dataclass(frozen=True)
class _OfWeights(Law):
    weights: FloatArray | None = None

    @property
    def weight(self) -> FloatArray:
        assert self.weights is not None
        return self.weights


def test_a_promise_within_groups_survives_another_mix_of_groups() -> None:
    """The group that just makes it in few points is nine tenths of what comes later."""
    law = Law(np.array([0.8, 0.2]), np.array([[EASY, EASY], [GRADED - 0.05, GRADED - 0.05]]), HALVES)
    later = replace(law, group=np.array([0.1, 0.9]))
    assert _seldom(law, CELLS, later, "predicted")
    assert _share(law, "predicted", later) > 0.9
