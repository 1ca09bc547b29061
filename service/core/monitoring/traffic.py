"""Recent traffic against the calibration: how it differs from vp, and whether that is large enough to act on.

The shares admitted are compared under a single rule: what plain Venn-ADMIT admits under the snapshot, of recent
traffic, and of vp with each point left out of its own category. Both follow from q, d and the ADMIT sets alone, so that
no vectors are read, and decisions of other snapshots and options do not blur the comparison.
"""

from dataclasses import dataclass, replace
from math import sqrt
from statistics import NormalDist

import numpy as np

from venn_admit.service.core.calibrators.venn_admit.decide import Decisions, decide
from venn_admit.service.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.service.core.calibrators.venn_admit.venn import VennIndex, venn_probabilities
from venn_admit.service.core.documents import Documents
from venn_admit.service.core.evaluation.tallies import MINIMUM_TO_JUDGE, wilson_interval
from venn_admit.service.core.memory import DEFAULT_MEMORY_BUDGET
from venn_admit.service.core.monitoring.discrepancies import LEVEL
from venn_admit.service.core.monitoring.drift import (
    DecidedPoints,
    OutcomeCounts,
    Shift,
    effective_size,
    outcomes,
    shift,
)
from venn_admit.service.core.types import (
    Approximation,
    BoolArray,
    CalibrationPoints,
    CalibratorSettings,
    FloatArray,
    IntArray,
)

KEPT = 0.75
"""A share of vp counts as lost if recent traffic keeps less than three quarters of it, allowing for chance.

Smaller losses cost some admitted points but no errors; an operator notices the loss of one point in four.
"""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of points.

    Attributes:
        count: The points that count.
        points: All points, >= 1.
        size: The number of independent points that they are worth; see `effective_size`.
    """

    count: int
    points: int
    size: float

    @property
    def share(self) -> float:
        """In [0, 1]."""
        return self.count / self.points


@dataclass(frozen=True, slots=True)
class SharePair:
    """The same share of vp and of recent traffic."""

    vp: Share
    recent: Share

    @property
    def is_lost(self) -> bool:
        """Whether recent traffic keeps less than `KEPT` of the share of vp, by a one-sided z-test at `LEVEL`.

        The variance is that of the share at the border, so that a few points that all agree do not decide.
        """
        kept = KEPT * self.vp.share
        variance = kept * (1 - kept) / self.recent.size
        variance += KEPT**2 * self.vp.share * (1 - self.vp.share) / self.vp.size
        if variance <= 0:
            return False
        return NormalDist().cdf((self.recent.share - kept) / sqrt(variance)) < LEVEL


@dataclass(frozen=True, slots=True)
class Accuracy:
    """`right` of `points` admitted predictions, and the interval of their share at confidence 1 - `LEVEL`.

    Attributes:
        predicted: The predicted class of the points; None for all classes.
        right: The number of correct predictions.
        points: The number of predictions.
        low: The lower end of the interval.
        high: Its upper end.
    """

    predicted: int | None
    right: int
    points: int
    low: float
    high: float

    def is_below(self, target: float) -> bool:
        """Return whether the interval lies below a target; never for fewer than `MINIMUM_TO_JUDGE` points.

        Args:
            target: In [0, 1].
        """
        return self.points >= MINIMUM_TO_JUDGE and self.high < target


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Comparable points of recent traffic against vp.

    Attributes:
        points: The number of comparable points.
        match_count: The shift of q.
        distance: The shift of d.
        usable: The share in usable bands.
        admitted: The share that plain Venn-ADMIT would admit.
    """

    points: int
    match_count: Shift
    distance: Shift
    usable: SharePair
    admitted: SharePair

    @property
    def is_unlike_vp(self) -> bool:
        """Whether any of the differences is large enough to act on."""
        shifted = self.match_count.is_large or self.distance.is_large
        return shifted or self.usable.is_lost or self.admitted.is_lost


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """The outcome of recent traffic, of n >= 1 points.

    Attributes:
        points: n.
        unlabelled: The number of points without a label.
        decided_by: The number of points by the snapshot that decided on them.
        outcomes: Under each of the options that were used.
        own_outcomes: The same for what the snapshot itself decided.
        comparison: None if no point is comparable.
        accuracy: Of what the snapshot itself admitted, over all and for each predicted class that occurs; empty if no
            label that was chosen at random is known.
    """

    points: int
    unlabelled: int
    decided_by: dict[int, int]
    outcomes: tuple[OutcomeCounts, ...]
    own_outcomes: tuple[OutcomeCounts, ...]
    comparison: Comparison | None
    accuracy: tuple[Accuracy, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotIndex:
    """A snapshot to compare recent traffic with.

    Attributes:
        calibration_id: Key of the snapshot.
        settings: Of its calibrator.
        neighbour_count: K.
        vp: The points of vp.
        vp_usable: The number of points of vp that lie in usable bands.
        vp_admitted: (n_vp,) bool, see `admitted_of_vp`.
        vp_documents: None if no two points share one.
        admit: The index of mc.
        venn: The index of vp.
    """

    calibration_id: int
    settings: CalibratorSettings
    neighbour_count: int
    vp: CalibrationPoints
    vp_usable: int
    vp_admitted: BoolArray
    vp_documents: Documents | None
    admit: AdmitIndex
    venn: VennIndex


def redecide(
    snapshot: SnapshotIndex, decided: DecidedPoints, *, memory_budget: int = DEFAULT_MEMORY_BUDGET
) -> Decisions | None:
    """Return what plain Venn-ADMIT decides on the comparable points under the snapshot; None if there are none.

    Args:
        snapshot: The snapshot.
        decided: Recent traffic.
        memory_budget: In bytes.
    """
    rows = decided.comparable
    if not rows.any():
        return None
    found = decided.approximation
    approximation = Approximation(
        found.logits[rows], found.predicted[rows], found.match_count[rows], found.distance[rows]
    )
    return decide(
        snapshot.admit,
        snapshot.venn,
        approximation,
        snapshot.settings,
        neighbour_count=snapshot.neighbour_count,
        require_full_match=False,
        localizer=None,
        memory_budget=memory_budget,
    )


def traffic(
    snapshot: SnapshotIndex, decided: DecidedPoints, documents: Documents | None, redecided: Decisions | None
) -> Traffic:
    """Sum up recent traffic.

    Args:
        snapshot: The snapshot to compare with.
        decided: Recent traffic, not empty.
        documents: Of its points; None if no two points share one.
        redecided: The result of `redecide`.
    """
    ids, counts = np.unique(decided.calibration_ids, return_counts=True)
    return Traffic(
        points=len(decided.exemplar_ids),
        unlabelled=int((decided.label < 0).sum()),
        decided_by=dict(zip(ids.tolist(), counts.tolist(), strict=True)),
        outcomes=outcomes(decided),
        own_outcomes=outcomes(decided, decided.calibration_ids == snapshot.calibration_id),
        comparison=None if redecided is None else _compare(snapshot, decided, documents, redecided),
        accuracy=_accuracies(snapshot.calibration_id, decided, documents),
    )


def admitted_of_vp(
    venn: VennIndex, vp: CalibrationPoints, singleton: BoolArray, settings: CalibratorSettings
) -> BoolArray:
    """Return which points of vp plain Venn-ADMIT would admit if each were left out of its own category.

    Args:
        venn: The index of these points.
        vp: The points.
        singleton: (n_vp,) bool, whether the ADMIT set of each point is a singleton.
        settings: Of the calibrator.

    Returns:
        (n_vp,) bool.
    """
    found = venn.categories(singleton, vp.predicted, vp.match_count, vp.distance)
    own = singleton.astype(np.int64)
    correct = found.correct - own * (vp.predicted == vp.label)
    probabilities = venn_probabilities(singleton, found.size - own, correct, None)
    threshold = np.array([float(threshold) for threshold in settings.thresholds])
    admitted: BoolArray = singleton & (probabilities.lower >= threshold[vp.predicted])
    return admitted


def _compare(
    snapshot: SnapshotIndex, decided: DecidedPoints, documents: Documents | None, redecided: Decisions
) -> Comparison:
    rows, vp = np.flatnonzero(decided.comparable), snapshot.vp
    n, m = len(vp.label), len(rows)
    vp_size, size = effective_size(n, snapshot.vp_documents), effective_size(m, _documents_of_rows(documents, rows))

    def compared(of_vp: IntArray | FloatArray, recent: IntArray | FloatArray) -> Shift:
        return shift(of_vp.astype(np.float64), recent[rows].astype(np.float64), vp_size, size)

    def shares(of_vp: int, recent: int) -> SharePair:
        return SharePair(Share(of_vp, n, vp_size), Share(recent, m, size))

    return Comparison(
        points=m,
        match_count=compared(vp.match_count, decided.approximation.match_count),
        distance=compared(vp.distance, decided.approximation.distance),
        usable=shares(snapshot.vp_usable, int((~redecided.sets.starved).sum())),
        admitted=shares(int(snapshot.vp_admitted.sum()), int((redecided.selection.reason < 0).sum())),
    )


def _accuracies(calibration_id: int, decided: DecidedPoints, documents: Documents | None) -> tuple[Accuracy, ...]:
    """Accuracy of what the snapshot itself admitted; errors of other snapshots are accounted for by recalibrating.

    A label counts if it was chosen at random, or if all points have one, so that none was selected.
    """
    known = decided.label >= 0
    counted = known if known.all() else known & decided.is_random
    admitted = counted & (decided.reason < 0) & (decided.calibration_ids == calibration_id)
    predicted = decided.approximation.predicted
    right = predicted == decided.label
    groups = [(None, np.flatnonzero(admitted))]
    groups += [(c, np.flatnonzero(admitted & (predicted == c))) for c in np.unique(predicted[admitted]).tolist()]
    return tuple(_accuracy(c, rows, right, documents) for c, rows in groups if len(rows))


def _accuracy(predicted: int | None, rows: IntArray, right: BoolArray, documents: Documents | None) -> Accuracy:
    count, points = int(right[rows].sum()), len(rows)
    worth = effective_size(points, _documents_of_rows(documents, rows)) / points
    low, high = wilson_interval(count * worth, points * worth, 1 - LEVEL)
    return Accuracy(predicted, count, points, float(low), float(high))


def _documents_of_rows(documents: Documents | None, rows: IntArray) -> Documents | None:
    return None if documents is None else replace(documents, code=documents.code[rows])
