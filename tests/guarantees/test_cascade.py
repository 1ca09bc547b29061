"""Simulated: a certified cascade falls short of its promise in at most eps of the draws of calibration data.

The laws are finite, so that the share right under any policy is known exactly. A stage has a level of its score at each
point and is right with the probability of that level; by a chance of their own, both stages take one uniform number, so
that what the first one rejects is hard for the second one too.
"""

from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from math import sqrt

import numpy as np
import pytest

from tests.guarantees.draws import Draws
from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.certified.cascade import certify_cascade
from venn_admit.core.calibrators.certified.cascade_points import CascadePoints
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.policies import Policy

ALPHA, CONFIDENCE = Decimal("0.1"), Decimal("0.9")
EPS, ERROR_SHARE = 0.1, 0.1
LEVELS = np.array([0.95, 0.9, 0.8, 0.6])
WEIGHT = np.array([0.4, 0.2, 0.2, 0.2])
PREDICTED, BOTH = (ClassKind.PREDICTED,), tuple(ClassKind)


@dataclass(frozen=True)
class Law:
    """A law of points of two classes at two stages.

    first, second: (4,), the probability that each stage is right at each level.
    shared: The probability that both stages take one uniform number.
    same_level: The probability that the second stage has the level of the first.
    """

    first: tuple[float, ...]
    second: tuple[float, ...]
    shared: float = 0.5
    same_level: float = 0.5
    kinds: tuple[ClassKind, ...] = PREDICTED
    size: int = 1
    documents: int = 1000

    def draw(self, rng: np.random.Generator, documents: int) -> CascadePoints:
        count = documents * self.size
        level = rng.choice(4, (2, count), p=WEIGHT)
        level[1] = np.where(rng.random(count) < self.same_level, level[0], level[1])
        # The points of a document are alike to a degree.
        of_document = np.repeat(rng.random(documents), self.size)
        alike = (rng.random(count) < 0.5) & (self.size > 1)
        uniform = np.where(alike, of_document, rng.random((2, count)))
        uniform[1] = np.where(rng.random(count) < self.shared, uniform[0], uniform[1])
        label = rng.integers(2, size=count)
        right = uniform < np.stack([np.array(self.first)[level[0]], np.array(self.second)[level[1]]])
        return CascadePoints(LEVELS[level], np.where(right, label, 1 - label), label, np.arange(count) // self.size)

    def falls_short(self, thresholds: tuple[float | None, ...]) -> bool:
        """Whether thresholds, of two classes at the first stage and then at the second, serve too many errors."""
        shown = np.zeros((2, 2))  # by label and served class
        for label, one, other, right, then in product(range(2), range(4), range(4), (True, False), (True, False)):
            weight = 0.5 * WEIGHT[one] * (self.same_level * (one == other) + (1 - self.same_level) * WEIGHT[other])
            a, b = self.first[one], self.second[other]
            # The uniform numbers by which the first stage is right or wrong, and the second one.
            spans = ((0.0, a) if right else (a, 1.0)), ((0.0, b) if then else (b, 1.0))
            apart = (spans[0][1] - spans[0][0]) * (spans[1][1] - spans[1][0])
            together = max(0.0, min(spans[0][1], spans[1][1]) - max(spans[0][0], spans[1][0]))
            weight *= self.shared * together + (1 - self.shared) * apart
            for stage, (level, is_right) in enumerate(((one, right), (other, then))):
                served = label if is_right else 1 - label
                least = thresholds[2 * stage + served]
                if least is not None and LEVELS[level] >= least:
                    shown[label, served] += weight
                    break
        wrong = np.array([[shown[1, 0], shown[0, 1]], [shown[0, 1], shown[1, 0]]])
        excess = wrong - ERROR_SHARE * np.stack([shown.sum(axis=0), shown.sum(axis=1)])
        return bool((excess[: len(self.kinds)] > 1e-12).any())


GRADED, BELOW = (0.98, 0.95, 0.88, 0.6), (0.899,) * 4
LAWS = {
    "independent stages": Law(GRADED, GRADED, shared=0.0, same_level=0.0),
    "correlated stages": Law(GRADED, (0.99, 0.97, 0.92, 0.7), shared=0.8),
    "correlated stages, both kinds": Law(GRADED, (0.99, 0.97, 0.92, 0.7), shared=0.8, kinds=BOTH),
    "documents": Law(GRADED, (0.99, 0.97, 0.92, 0.7), size=5, documents=300),
    "just below at both stages": Law(BELOW, BELOW),
    "just below, both kinds": Law(BELOW, BELOW, kinds=BOTH),
    "just below, documents": Law(BELOW, BELOW, size=5, documents=200),
    "only the second stage just below": Law((0.5,) * 4, BELOW),
    "just below after a good first stage": Law((0.95, 0.6, 0.6, 0.6), (0.95, 0.84, 0.84, 0.84), same_level=1.0),
}
TAKEN = Law((0.93, 0.75, 0.37, 0.08), (0.999, 0.86, 0.86, 0.86), same_level=1.0)
"""The first stage takes the points that the second one is nearly always right about; what is left is hard for both."""


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_a_certified_cascade_seldom_falls_short(name: str) -> None:
    law = LAWS[name]
    draws, certified = Draws(EPS), 0
    for draw in draws:
        rng = np.random.default_rng(draw)
        certificate = certify_cascade(
            law.draw(rng, law.documents // 5),
            law.draw(rng, law.documents),
            class_count=2,
            alpha=ALPHA,
            kinds=law.kinds,
            confidence=CONFIDENCE,
        )
        certified += certificate.policy is not None
        draws.add(certificate.policy is not None and law.falls_short(certificate.policy.thresholds))
    assert draws.seldom
    if "just below" not in name:
        assert certified / draws.count > 0.8


@pytest.mark.slow
def test_certificates_of_the_stages_alone_promise_nothing_of_a_cascade() -> None:
    """Each holds of what its stage admits of all points; the second stage serves those that the first one left."""
    draws = 20
    in_a_row = together = both_certified = 0
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        proposing, evidence = TAKEN.draw(rng, 1000), TAKEN.draw(rng, 10000)
        alone = [
            certify(
                proposing.stage(place),
                evidence.stage(place),
                class_count=2,
                alpha=ALPHA,
                kinds=PREDICTED,
                confidence=1 - (1 - CONFIDENCE) / 2,
            )
            for place in range(2)
        ]
        policies = [one.policy or Policy((None, None)) for one in alone]
        both_certified += all(one.policy is not None for one in alone)
        in_a_row += TAKEN.falls_short(policies[0].thresholds + policies[1].thresholds)
        certificate = certify_cascade(proposing, evidence, class_count=2, alpha=ALPHA, confidence=CONFIDENCE)
        together += certificate.policy is not None and TAKEN.falls_short(certificate.policy.thresholds)
    assert in_a_row / draws > 0.5
    assert together / draws <= EPS + 3 * sqrt(EPS * (1 - EPS) / draws)
