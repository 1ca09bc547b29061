"""Simulated: with class shares declared, a class of such traffic seldom is less than 1 - alpha right, or costs more.

The laws are finite, so that the share right under any policy is known exactly, and the mean loss. In traffic one
predicted class costs alpha at every score, or a little more, so that every policy that admits any of it is an error.
The calibration data have points of each class like those of traffic, and the classes in other shares.
"""

from dataclasses import dataclass
from decimal import Decimal
from functools import partial

import numpy as np
import pytest

from tests.guarantees.draws import Draws
from tests.guarantees.test_costs import FREE, GOOD, LEVELS, SPREAD, THREE, TWO
from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.policies import Policy
from venn_admit.core.calibrators.class_shares import ClassShares, EstimatedShares
from venn_admit.core.calibrators.loss import LossMatrix
from venn_admit.core.types import FloatArray

ALPHA, CONFIDENCE, EPS = Decimal("0.1"), Decimal("0.9"), 0.1
PLACES = 6


@dataclass(frozen=True)
class Law:
    """Traffic, and the shares that the calibration data have its classes in.

    confusion: (C, C), how likely a wrong point of a predicted class has each true class.
    shares: (C,) those of the calibration data.
    mean: What predicted class 0 costs on average in traffic, at every score.
    predicted: (C,) how often traffic is predicted as each class, if not equally often.
    off: (C,) by how much the declared shares are off; each is said to be off by as much as the largest.
    loss: What errors cost; 1 if None.
    largest: The points of the largest documents; all sizes from 1 on are as likely.
    dependence: How likely a point is drawn by the number of its document instead of its own, so that it is what others
        of the document are.
    sizes: (C,) If not empty, all points of a document are of one class, which says how many they are.
    """

    confusion: FloatArray
    shares: tuple[float, ...]
    kinds: tuple[ClassKind, ...] = (ClassKind.PREDICTED,)
    mean: float = 0.1
    documents: int = 800
    predicted: tuple[float, ...] = ()
    off: tuple[float, ...] = ()
    loss: LossMatrix | None = None
    largest: int = 1
    dependence: float = 0.0
    sizes: tuple[int, ...] = ()

    @property
    def cost(self) -> FloatArray:
        """(C, C), what errors cost by true and by predicted class."""
        return np.array(1 - np.eye(len(self.shares)) if self.loss is None else self.loss, dtype=np.float64)

    @property
    def traffic(self) -> FloatArray:
        """(C, 6, C), the probability of each predicted class, score and true class."""
        class_count = len(self.shares)
        right = np.repeat(GOOD[np.newaxis], class_count, axis=0)
        right[0] = 1 - self.mean / (self.confusion[0] @ self.cost[:, 0])
        found = (1 - right)[:, :, np.newaxis] * self.confusion[:, np.newaxis, :]
        found[np.arange(class_count), :, np.arange(class_count)] = right
        of_class = np.array(self.predicted or (1 / class_count,) * class_count)
        law: FloatArray = found * SPREAD[:, np.newaxis] * of_class[:, np.newaxis, np.newaxis]
        return law

    @property
    def of_traffic(self) -> FloatArray:
        """(C,), the shares of the classes in traffic."""
        shares: FloatArray = self.traffic.sum(axis=(0, 1))
        return shares

    @property
    def declared(self) -> ClassShares:
        exact = self.of_traffic + np.array(self.off or (0.0,) * len(self.shares))
        first = [Decimal(f"{value:.{PLACES}f}") for value in exact[:-1]]
        within = Decimal(str(max(map(abs, self.off), default=0.0))) + Decimal(10) ** -PLACES * len(first)
        return ClassShares((*first, 1 - sum(first, Decimal(0))), within)

    def draw(self, rng: np.random.Generator, count: int) -> CertificatePoints:
        """Documents of the calibration data."""
        shares = np.array(self.shares)
        of_document = shares / (self.sizes or 1)
        label = rng.choice(len(shares), count, p=of_document / of_document.sum())
        size = np.array(self.sizes)[label] if self.sizes else rng.integers(1, self.largest + 1, count)
        document = np.repeat(np.arange(count), size)
        is_shared = rng.random(len(document)) < self.dependence
        number = np.where(is_shared, rng.random(count)[document], rng.random(len(document)))
        if self.sizes:
            # As if it were drawn among those of the class.
            number = (np.cumsum(shares) - shares)[label[document]] + number * shares[label[document]]
        cells = np.moveaxis(self.traffic / self.of_traffic * shares, -1, 0)
        place = np.searchsorted(np.cumsum(cells)[:-1], number, side="right")
        of_point, predicted, level = np.unravel_index(place, cells.shape)
        return CertificatePoints(LEVELS[level], predicted, of_point, document)

    def falls_short(self, policy: Policy, traffic: FloatArray | None = None) -> bool:
        """Whether an admitted class of the kinds asked for costs alpha in traffic, or more.

        traffic: (C, 6, C), if it is not that of the law.
        """
        of_all = self.traffic if traffic is None else traffic
        least = np.array([np.inf if value is None else value for value in policy.thresholds])
        admitted = np.where((least[:, np.newaxis] <= LEVELS)[:, :, np.newaxis], of_all, 0.0).sum(axis=1)
        excess, axis = admitted * (self.cost.T - 0.1), {ClassKind.PREDICTED: 1, ClassKind.TRUE: 0}
        return any(
            bool(((excess.sum(axis[kind]) >= -1e-12) & (admitted.sum(axis[kind]) > 0)).any()) for kind in self.kinds
        )

    def certified(self, draw: int, declared: ClassShares | None) -> Policy | None:
        rng = np.random.default_rng(draw)
        return self.certified_by(self.draw(rng, self.documents // 5), self.draw(rng, self.documents), declared)

    def certified_by(
        self,
        proposing: CertificatePoints,
        evidence: CertificatePoints,
        declared: ClassShares | EstimatedShares | None,
    ) -> Policy | None:
        return certify(
            proposing,
            evidence,
            class_count=len(self.shares),
            alpha=ALPHA,
            confidence=CONFIDENCE,
            kinds=self.kinds,
            class_shares=declared,
            loss=self.loss,
        ).policy


def predicted_at(share: float) -> tuple[float, float]:
    """How often traffic is predicted as each of two classes if class 0 has this share of it."""
    right = 0.9, float(GOOD @ SPREAD)
    first = (share - (1 - right[1])) / (right[0] - (1 - right[1]))
    return first, 1 - first


FLIP, HALVES = 1 - np.eye(2), (1 - np.eye(3)) / 2
documents_of = partial(Law, largest=7, dependence=0.8)
DOCUMENT_LAWS = {
    "documents, two classes, .3": documents_of(FLIP, (0.7, 0.3), predicted=predicted_at(0.3)),
    "documents, two classes, .15": documents_of(FLIP, (0.7, 0.3), predicted=predicted_at(0.15)),
    "documents of one class each": Law(FLIP, (0.7, 0.3), predicted=predicted_at(0.3), sizes=(6, 2), dependence=0.8),
    "documents, in a corner of the box": documents_of(FLIP, (0.6, 0.4), off=(0.05, -0.05)),
    "documents, three classes": documents_of(HALVES, (0.6, 0.2, 0.2), predicted=(0.3, 0.4, 0.3)),
    "documents of one of three classes each": Law(HALVES, (0.6, 0.2, 0.2), sizes=(6, 2, 3), dependence=0.8),
    "documents, three classes, a loss": documents_of(HALVES, (0.6, 0.2, 0.2), loss=THREE, documents=1600),
    "documents, three classes, both kinds": documents_of(HALVES, (0.6, 0.2, 0.2), tuple(ClassKind)),
}
LAWS = {
    "two classes": Law(FLIP, (0.7, 0.3)),
    "two classes, just above": Law(FLIP, (0.8, 0.2), mean=0.1005),
    "two classes, both kinds": Law(FLIP, (0.7, 0.3), tuple(ClassKind)),
    "two classes, in a corner of the box": Law(FLIP, (0.6, 0.4), off=(0.05, -0.05)),
    "three classes": Law(HALVES, (0.7, 0.2, 0.1)),
    "three classes, in a corner of the box": Law(HALVES, (0.6, 0.3, 0.1), off=(0.04, -0.02, -0.02)),
    "three classes, both kinds": Law(HALVES, (0.6, 0.2, 0.2), tuple(ClassKind)),
    "two classes, a loss": Law(FLIP, (0.7, 0.3), loss=TWO),
    "three classes, a loss": Law(HALVES, (0.6, 0.2, 0.2), loss=THREE),
    "three classes, a loss, both kinds": Law(HALVES, (0.6, 0.2, 0.2), tuple(ClassKind), loss=THREE),
    "errors that cost nothing, of a class that traffic has less of": Law(HALVES, (0.2, 0.2, 0.6), loss=FREE),
    **DOCUMENT_LAWS,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
def test_a_class_of_declared_traffic_is_seldom_less_right_than_promised(name: str) -> None:
    law = LAWS[name]
    draws, certified = Draws(EPS), 0
    for draw in draws:
        found = law.certified(draw, law.declared)
        certified += found is not None
        draws.add(found is not None and law.falls_short(found))
    assert draws.seldom
    if law.kinds != tuple(ClassKind):
        assert certified / draws.count > 0.5


@pytest.mark.parametrize(
    "name",
    ["two classes", "three classes", "two classes, a loss", "documents, two classes, .3", "documents, three classes"],
)
def test_without_them_it_falls_short_in_most(name: str) -> None:
    """The calibration data have more of class 0, so that less of what is predicted as it is wrong there."""
    law = LAWS[name]
    found = [law.certified(draw, None) for draw in range(10)]
    assert sum(one is not None and law.falls_short(one) for one in found) >= 8
