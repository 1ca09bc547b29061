"""The mean loss of what a calibration admits, where errors cost differently."""

from collections.abc import Callable, Sequence
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
    """
    classes = range(len(matrix))

    def members(truth: IntArray, said: IntArray, _: IntArray) -> list[BoolArray]:
        return [np.ones(len(truth), dtype=np.bool_), *(truth == c for c in classes), *(said == c for c in classes)]

    found = _means(matrix, label, predicted, np.zeros_like(label), members, admitted, documents)
    return MeanLosses(found[0], tuple(found[1 : len(matrix) + 1]), tuple(found[len(matrix) + 1 :]))


def group_losses(
    matrix: FloatArray,
    label: IntArray,
    predicted: IntArray,
    group: IntArray,
    groups: int,
    admitted: BoolArray,
    documents: Documents | None,
) -> tuple[MeanLoss, ...]:
    """Return the mean loss of the admitted points of each group; group: (n,) int64 in [0, groups)."""

    def members(_: IntArray, __: IntArray, of: IntArray) -> list[BoolArray]:
        return [of == place for place in range(groups)]

    return tuple(_means(matrix, label, predicted, group, members, admitted, documents))


def _means(
    matrix: FloatArray,
    label: IntArray,
    predicted: IntArray,
    group: IntArray,
    members: Callable[[IntArray, IntArray, IntArray], list[BoolArray]],
    admitted: BoolArray,
    documents: Documents | None,
) -> list[MeanLoss]:
    """The mean loss of each set; members: which points are of it, by true class, predicted class and group."""
    class_count, rows = len(matrix), np.flatnonzero(admitted)
    known = Documents(np.arange(len(label)), len(label)) if documents is None else documents
    # Points are counted by their kind, so that sums are exact whatever the order.
    key = (group[rows] * class_count + label[rows]) * class_count + predicted[rows]
    kinds, kind = np.unique(key, return_inverse=True)
    pairs, said = np.divmod(kinds, class_count)
    of_group, truth = np.divmod(pairs, class_count)
    sets = members(truth, said, of_group)
    of = np.array(sets, dtype=np.float64).T.reshape(len(kinds), len(sets))
    counts = np.vstack(
        [np.bincount(kind, minlength=len(kinds)), known.resampled_counts(rows, kind, len(kinds))]
    )  # (1 + resamples, kinds), the points themselves first
    points, cost = counts @ of, (counts * matrix[truth, said]) @ of
    means = np.divide(cost, points, out=np.full(cost.shape, np.nan), where=points > 0)
    lows, highs = percentile_interval(means[1:])
    return [
        _mean_loss(means[0, place], int(points[0, place]), holding, (lows[place], highs[place]), float(matrix.max()))
        for place, holding in enumerate(_holding(known, rows, [one[kind] for one in sets]))
    ]


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
