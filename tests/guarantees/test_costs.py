"""Simulated: with a loss, the mean loss of a class is above alpha in at most eps of the draws of calibration data.

The laws are finite, so that the mean loss under any policy is known exactly. In each, the points of one class cost
exactly alpha on average at every score, or a little more, so that every policy that admits any of them is an error.
"""

from dataclasses import dataclass
from decimal import Decimal
from functools import partial

import numpy as np
import pytest

from tests.guarantees.draws import Draws
from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.policies import Policy
from venn_admit.core.calibrators.certified.strongest import certify_strongest
from venn_admit.core.calibrators.loss import LossMatrix
from venn_admit.core.types import FloatArray

ALPHA, CONFIDENCE, EPS = Decimal("0.1"), Decimal("0.9"), 0.1
LEVELS = np.array([0.95, 0.9, 0.85, 0.8, 0.7, 0.6])
SPREAD = np.array([0.3, 0.2, 0.15, 0.15, 0.1, 0.1])
GOOD = np.array([0.999, 0.998, 0.995, 0.99, 0.98, 0.97])
PREDICTED, TRUE, BOTH = (ClassKind.PREDICTED,), (ClassKind.TRUE,), tuple(ClassKind)


def matrix(*rows: tuple[float, ...]) -> LossMatrix:
    return tuple(tuple(Decimal(str(value)) for value in row) for row in rows)


TWO = matrix((0, 0.5), (4, 0))
THREE = matrix((0, 1, 0.3), (2, 0, 1), (0.5, 5, 0))
SKEWED = matrix((0, 1, 1), (1, 0, 1), (16, 1, 0))
FREE = matrix((0, 0.05, 2), (1, 0, 3), (0, 0.1, 0))


@dataclass(frozen=True)
class Law:
    """A law of documents.

    loss: What errors cost.
    confusion: (C, C), how likely a wrong point of a predicted class has each true class.
    weak: The predicted class whose points cost `mean` on average at every score; those of the others cost little.
    dependence: The probability that a point takes the uniform number of its document instead of its own.
    strongest: Whether the strongest certificate is asked for, which shares eps.
    """

    loss: LossMatrix
    confusion: FloatArray
    kinds: tuple[ClassKind, ...] = PREDICTED
    weak: int = 0
    mean: float = 0.1
    size: int = 1
    documents: int = 400
    dependence: float = 0.0
    strongest: bool = False

    @property
    def right(self) -> FloatArray:
        """(C, 6), the probability that a point is right."""
        found = np.repeat(GOOD[np.newaxis], len(self.loss), axis=0)
        per_error = self.confusion[self.weak] @ np.array(self.loss, dtype=np.float64)[:, self.weak]
        found[self.weak] = 1 - self.mean / per_error
        return found

    def draw(self, rng: np.random.Generator, documents: int) -> CertificatePoints:
        count, class_count = documents * self.size, len(self.loss)
        predicted, level = rng.integers(0, class_count, count), rng.choice(6, count, p=SPREAD)
        shared = np.repeat(rng.random(documents), self.size)
        uniform = np.where(rng.random(count) < self.dependence, shared, rng.random(count))
        right = self.right[predicted, level]
        # A wrong point's label follows from the rest of its uniform number, so that documents share costs too.
        rest = (uniform - right) / (1 - right)
        other = (rest[:, np.newaxis] >= np.cumsum(self.confusion, axis=1)[predicted]).sum(axis=1)
        label = np.where(uniform < right, predicted, np.minimum(other, class_count - 1))
        return CertificatePoints(LEVELS[level], predicted, label, np.arange(count) // self.size)

    def falls_short(self, policy: Policy) -> bool:
        """Whether the mean loss of an admitted class of the kinds asked for is alpha or more."""
        least = np.array([np.inf if value is None else value for value in policy.thresholds])
        admitted = np.where(least[:, np.newaxis] <= LEVELS, SPREAD, 0.0)  # (C, 6)
        wrong = (admitted * (1 - self.right)).sum(axis=1)
        by_label = wrong[:, np.newaxis] * self.confusion  # (C predicted, C true)
        cost = by_label * np.array(self.loss, dtype=np.float64).T
        right = (admitted * self.right).sum(axis=1)
        of_kind = {
            ClassKind.PREDICTED: (cost.sum(axis=1), admitted.sum(axis=1)),
            ClassKind.TRUE: (cost.sum(axis=0), right + by_label.sum(axis=0)),
        }
        return any(
            bool(((of_kind[kind][0] >= 0.1 * of_kind[kind][1] - 1e-12) & (of_kind[kind][1] > 0)).any())
            for kind in self.kinds
        )


CYCLE = np.roll(np.eye(3), 1, axis=1)
HALVES = (1 - np.eye(3)) / 2
FLIP = 1 - np.eye(2)
RARE = np.array([[0, 0.9, 0.1], [0.5, 0, 0.5], [0.5, 0.5, 0]])
# The mean loss of predicted class 0 with which that of true class 1 is alpha, if everything is admitted.
AT_THE_END = 0.2 * float(SPREAD @ GOOD) / 1.9
LAWS = {
    "two classes": Law(TWO, FLIP),
    "two classes, the cheap errors": Law(TWO, FLIP, weak=1, documents=600),
    "two classes, just above": Law(TWO, FLIP, mean=0.1005),
    "two classes, documents": Law(TWO, FLIP, size=6, documents=150, dependence=0.5),
    "two classes, both kinds": Law(TWO, FLIP, BOTH),
    "three classes": Law(THREE, HALVES),
    "three classes, just above": Law(THREE, HALVES, mean=0.1005),
    "three classes, documents": Law(THREE, HALVES, size=6, documents=150, dependence=0.5),
    "three classes, both kinds": Law(THREE, HALVES, BOTH),
    "three classes, both kinds, documents": Law(THREE, HALVES, BOTH, size=4, documents=150, dependence=0.3),
    "a true class": Law(THREE, CYCLE, TRUE, mean=AT_THE_END, documents=3000),
    "a true class, documents": Law(THREE, CYCLE, TRUE, mean=AT_THE_END, size=6, documents=500, dependence=0.5),
    "a rare error that costs 16": Law(SKEWED, RARE),
    "a rare error that costs 16, documents": Law(SKEWED, RARE, size=6, documents=150, dependence=0.5),
    "errors that cost nothing": Law(FREE, np.array([[0, 0.1, 0.9], [0.5, 0, 0.5], [0.5, 0.5, 0]])),
    "the strongest promise": Law(THREE, HALVES, strongest=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_a_certified_mean_loss_is_seldom_above_alpha(name: str) -> None:
    law = LAWS[name]
    draws, certified = Draws(EPS), 0
    for draw in draws:
        rng = np.random.default_rng(draw)
        points = law.draw(rng, law.documents // 5), law.draw(rng, law.documents)
        asked = {"class_count": len(law.loss), "alpha": ALPHA, "confidence": CONFIDENCE, "loss": law.loss}
        run = partial(certify_strongest, by_softmax=0) if law.strongest else partial(certify, kinds=law.kinds)
        found = run(*points, **asked)
        certified += found.policy is not None
        draws.add(found.policy is not None and law.falls_short(found.policy))
    assert draws.seldom
    if law.kinds != BOTH:
        assert certified / draws.count > 0.5
