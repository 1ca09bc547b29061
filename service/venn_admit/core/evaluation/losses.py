"""The mean loss of what a calibration admits, where errors cost differently."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from venn_admit.core.documents import Documents, percentile_interval
from venn_admit.core.evaluation.tallies import Verdict, judge, wilson_interval
from venn_admit.core.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class MeanLoss:
    """The mean loss of `count` admitted points.

    Attributes:
        mean: 0 if there are none.
        documents: The number of documents that hold them, or of points, if these are independent.
        interval: The 95 % interval of the mean, from resampled documents; if nothing cost anything, Wilson's of a loss
            that is 0 or the largest.
    """

    mean: float
    count: int
    documents: int
    interval: tuple[float, float]

    def verdict(self, alpha: Decimal) -> Verdict:
        """Judge whether the mean is at most alpha, as far as the interval and the number of points decide it."""
        low, high = self.interval
        return judge((-high, -low), least=-float(alpha), units=self.documents)


@dataclass(frozen=True, slots=True)
class MeanLosses:
    """The mean losses of what is admitted: of all, and of C true and C predicted classes."""

    overall: MeanLoss
    per_true_class: tuple[MeanLoss, ...]
    per_predicted_class: tuple[MeanLoss, ...]


def mean_losses(
    matrix: FloatArray, label: IntArray, predicted: IntArray, admitted: BoolArray, documents: Documents | None
) -> MeanLosses:
    """Return the mean losses of the admitted points. The order of the points does not matter.

    Args:
        matrix: (C, C) float64 >= 0, by true and by predicted class.
        label: (n,) int64 in [0, C).
        predicted: (n,) int64 in [0, C).
        admitted: (n,) bool.
        documents: Those of the points; None if no two share one.
    """
    class_count, rows = len(matrix), np.flatnonzero(admitted)
    known = Documents(np.arange(len(label)), len(label)) if documents is None else documents
    # Points are counted by their pair of classes, so that sums are exact whatever the order.
    pairs, pair = np.unique(label[rows] * class_count + predicted[rows], return_inverse=True)
    truth, said = np.divmod(pairs, class_count)
    members = [np.ones(len(pairs), np.bool_), *(truth == c for c in range(class_count))]
    members += [said == c for c in range(class_count)]
    of = np.array(members, dtype=np.float64).T.reshape(len(pairs), len(members))
    counts = np.vstack(
        [np.bincount(pair, minlength=len(pairs)), known.resampled_counts(rows, pair, len(pairs))]
    )  # (1 + resamples, pairs), the points themselves first
    points, cost = counts @ of, (counts * matrix[truth, said]) @ of
    means = np.divide(cost, points, out=np.full(cost.shape, np.nan), where=points > 0)
    lows, highs = percentile_interval(means[1:])
    found = [
        _mean_loss(means[0, place], int(points[0, place]), holding, (lows[place], highs[place]), float(matrix.max()))
        for place, holding in enumerate(_holding(known, rows, [member[pair] for member in members]))
    ]
    return MeanLosses(found[0], tuple(found[1 : class_count + 1]), tuple(found[class_count + 1 :]))


def _holding(documents: Documents, rows: IntArray, members: Sequence[BoolArray]) -> list[int]:
    """The number of documents that hold points of each class; members: (m,) bool each, whether a row is of it."""
    return [len(np.unique(documents.code[rows[of]])) for of in members]


def _mean_loss(mean: float, count: int, holding: int, resampled: tuple[float, float], largest: float) -> MeanLoss:
    if not count:
        return MeanLoss(0.0, 0, 0, (0.0, largest))
    if mean == 0:
        return MeanLoss(0.0, count, holding, (0.0, largest * float(wilson_interval(0, holding)[1])))
    low, high = resampled
    return MeanLoss(float(mean), count, holding, (min(float(low), float(mean)), max(float(high), float(mean))))
