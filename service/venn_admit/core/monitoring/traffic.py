"""Recent traffic against the calibration: how it differs from calibration data, and whether that is enough to act on.

The shares admitted are compared under a single rule, the plain decisions of the snapshot, so that those of other
snapshots and options do not blur the comparison. What is compared besides depends on the method: see `band_traffic` and
`cell_traffic`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import sqrt
from statistics import NormalDist

import numpy as np

from venn_admit.core.documents import Documents
from venn_admit.core.evaluation.tallies import MINIMUM_TO_JUDGE, wilson_interval
from venn_admit.core.monitoring.drift import LEVEL, DecidedPoints, OutcomeCounts, Shift, effective_size, outcomes, shift
from venn_admit.core.reasons import ADMITTED
from venn_admit.core.split_names import Split
from venn_admit.core.types import BoolArray, FloatArray, IntArray

RECENT = 10_000
"""The number of exemplars of recent traffic that a report reads. A share of them is accurate to a hundredth, and
reading them, with a look-up for each in tables of any size, takes a second or two.
"""

KEPT = 0.75
"""A share of calibration data counts as lost if recent traffic keeps less than 3/4 of it by more than chance.

Smaller losses cost some admitted points but no errors; an operator notices the loss of one point in four.
"""


@dataclass(frozen=True, slots=True)
class Share:
    """A share of points.

    Attributes:
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
    """The same share of calibration data and of recent traffic."""

    calibrated: Share
    recent: Share

    @property
    def is_lost(self) -> bool:
        """Whether recent traffic keeps less than `KEPT` of the other share, by a one-sided z-test at `LEVEL`.

        The variance is that of the share at the border, so that a few points that all agree do not decide.
        """
        kept = KEPT * self.calibrated.share
        variance = kept * (1 - kept) / self.recent.size
        variance += KEPT**2 * self.calibrated.share * (1 - self.calibrated.share) / self.calibrated.size
        if variance <= 0:
            return False
        return NormalDist().cdf((self.recent.share - kept) / sqrt(variance)) < LEVEL


@dataclass(frozen=True, slots=True)
class Accuracy:
    """`right` of `points` admitted predictions, and the interval of their share at confidence 1 - `LEVEL`."""

    predicted: int | None
    right: int
    points: int
    low: float
    high: float

    def is_below(self, target: float) -> bool:
        """Return whether the interval lies below a target; never for fewer than `MINIMUM_TO_JUDGE` points."""
        return self.points >= MINIMUM_TO_JUDGE and self.high < target


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Comparable points of recent traffic against the calibration data of one split.

    Attributes:
        reference: The split that they are compared with.
        shares: Shares by what makes a point count: that it is usable, or admitted.
    """

    points: int
    reference: Split
    shifts: Mapping[str, Shift]
    shares: Mapping[str, SharePair]

    @property
    def is_unlike(self) -> bool:
        """Whether any of the differences is large enough to act on."""
        return any(one.is_large for one in self.shifts.values()) or any(one.is_lost for one in self.shares.values())


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """The outcome of recent traffic, of n >= 1 points.

    Attributes:
        decided_by: The number of points by the snapshot that decided on them.
        outcomes: Under each of the options that were used.
        own_outcomes: The same for what the snapshot itself decided.
        accuracy: How often what the snapshot itself admitted is right, over all and for each predicted class that
            occurs; empty if no label that was chosen at random is known.
    """

    points: int
    unlabelled: int
    decided_by: dict[int, int]
    outcomes: tuple[OutcomeCounts, ...]
    own_outcomes: tuple[OutcomeCounts, ...]
    comparison: Comparison | None
    accuracy: tuple[Accuracy, ...]


def traffic(
    calibration_id: int, decided: DecidedPoints, documents: Documents | None, comparison: Comparison | None
) -> Traffic:
    """Sum up recent traffic."""
    ids, counts = np.unique(decided.calibration_ids, return_counts=True)
    return Traffic(
        points=len(decided.exemplar_ids),
        unlabelled=int((decided.label < 0).sum()),
        decided_by=dict(zip(ids.tolist(), counts.tolist(), strict=True)),
        outcomes=outcomes(decided),
        own_outcomes=outcomes(decided, decided.calibration_ids == calibration_id),
        comparison=comparison,
        accuracy=_accuracies(calibration_id, decided, documents),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """What points are worth, on either side of a comparison.

    Attributes:
        calibrated: The number of its points.
        rows: (m,) int64, the comparable rows of recent traffic.
    """

    reference: Split
    calibrated: int
    calibrated_documents: Documents | None
    rows: IntArray
    documents: Documents | None

    def compare(
        self,
        shifts: Mapping[str, tuple[IntArray | FloatArray, IntArray | FloatArray]],
        shares: Mapping[str, tuple[int, int]],
    ) -> Comparison:
        """Compare quantities and counts.

        Args:
            shifts: For each quantity its values in the calibration data, (n,), and in the comparable rows, (m,).
            shares: How many points count, of the calibration data and of the comparable rows.
        """
        size = effective_size(self.calibrated, self.calibrated_documents)
        recent_size = effective_size(len(self.rows), _documents_of_rows(self.documents, self.rows))
        return Comparison(
            points=len(self.rows),
            reference=self.reference,
            shifts={
                name: shift(calibrated.astype(np.float64), recent.astype(np.float64), size, recent_size)
                for name, (calibrated, recent) in shifts.items()
            },
            shares={
                name: SharePair(Share(calibrated, self.calibrated, size), Share(recent, len(self.rows), recent_size))
                for name, (calibrated, recent) in shares.items()
            },
        )


def _accuracies(calibration_id: int, decided: DecidedPoints, documents: Documents | None) -> tuple[Accuracy, ...]:
    """Accuracy of what the snapshot itself admitted; errors of other snapshots are accounted for by recalibrating.

    A label counts if it was chosen at random, or if all points have one, so that none was selected.
    """
    known = decided.label >= 0
    counted = known if known.all() else known & decided.is_random
    admitted = counted & (decided.reason == ADMITTED) & (decided.calibration_ids == calibration_id)
    predicted = decided.predicted
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
