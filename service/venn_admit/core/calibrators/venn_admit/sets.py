"""ADMIT prediction sets: label-conditional conformal prediction within a band (docs/PROCEDURE.md, section 4).

For each class c, over the n_c points of the band in `mc` with true label c:

    score_j = 1 - pi_j^{y_j};  rank = ceil((n_c + 1)(1 - alpha));  tau_c = 1 - (rank-th smallest score)
    set = {yhat} + { c : 1 - pi^c <= rank-th smallest score };  any n_c < kappa: set = all classes
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from venn_admit.core.approximation.knn import softmax
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET, block_rows, tile_rows
from venn_admit.core.calibrators.bands import WindowIndex, bin_of, check_calibration_points
from venn_admit.core.calibrators.order_statistics import OrderStatistics, conformal_rank
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.checks import check_lengths
from venn_admit.core.types import AdmitSets, CalibrationPoints, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

TEMPORARY_BYTES = 6 * 8  # for each point and class

Rank: TypeAlias = Callable[[IntArray], IntArray]


@dataclass(frozen=True, slots=True, eq=False)
class BandThresholds:
    """What the scores of each class come to in the bands of m points, alone and with one score more; (m, C) each.

    Attributes:
        size: int64, n_c.
        alone: float64, the rank-th smallest score; inf if the rank exceeds n_c.
        joined: float64, the most that it can be with one score more, of the rank of n_c + 1; inf if it exceeds n_c.
        before: float64, the least that it can be then, the score of the rank before; -inf for rank 0.
    """

    size: IntArray
    alone: FloatArray
    joined: FloatArray
    before: FloatArray


class AdmitIndex:
    """The points of `mc`, ready to give the ADMIT set of any point; immutable.

    It is built in O(n log n). `sets` takes O(m C log n) for few points and O((n + m) log n + m C) for more, because
    points in order of d share their windows with their neighbours, and gives the same bits however the points are split
    into calls.
    """

    def __init__(
        self, points: CalibrationPoints, *, class_count: int, settings: CalibratorSettings, omega: float
    ) -> None:
        """Build the index.

        Args:
            points: The points of `mc`.
        """
        check_calibration_points(points, class_count)
        self._class_count = class_count
        self._settings = settings
        self._omega = omega
        self._joins = int(settings.undivided)
        group = bin_of(points.match_count, settings.q_bins) * class_count + points.label
        self._windows = WindowIndex(group, points.distance, points.score)
        self._scores = OrderStatistics(points.score[self._windows.order])

    def sets(
        self,
        logits: FloatArray,
        predicted: IntArray,
        match_count: IntArray,
        distance: FloatArray,
        *,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> AdmitSets:
        """Return the ADMIT sets of m points, with the band sizes and thresholds that they rest on.

        The computation goes in blocks of classes and of points, within the budget and O(n + m) bytes besides its
        result.
        """
        self._check_scored(logits, predicted, match_count, distance)
        band_size, (threshold_score,) = self._threshold_scores(
            match_count, distance, memory_budget, [lambda size: self._rank(size + self._joins)]
        )
        return admit_sets(logits, predicted, band_size, threshold_score, kappa=self._settings.kappa)

    def smallest_class_count(
        self, match_count: IntArray, distance: FloatArray, *, memory_budget: int = DEFAULT_MEMORY_BUDGET
    ) -> IntArray:
        """Return the fewest points that any class has in the band of each of m points, as `sets` finds it; (m,)."""
        fewest, classes = np.empty(len(distance), dtype=np.int64), np.arange(self._class_count)
        step = block_rows(memory_budget, TEMPORARY_BYTES * self._class_count)
        for start in range(0, len(distance), step):
            rows = slice(start, start + step)
            each = bin_of(match_count[rows], self._settings.q_bins)[:, np.newaxis] * self._class_count + classes
            low, high = self._windows.windows(each, distance[rows], self._omega)  # (m, C)
            fewest[rows] = smallest_class_count(high - low)
        return fewest

    def thresholds(self, match_count: IntArray, distance: FloatArray, memory_budget: int) -> BandThresholds:
        """Return what the bands of m points come to, with one score more too."""
        ranks: list[Rank] = [self._rank, lambda size: self._rank(size + 1), lambda size: self._rank(size + 1) - 1]
        size, scores = self._threshold_scores(match_count, distance, memory_budget, ranks)
        return BandThresholds(size, *scores)

    def _rank(self, size: IntArray) -> IntArray:
        return conformal_rank(size, self._settings.alpha)

    def _threshold_scores(
        self, match_count: IntArray, distance: FloatArray, memory_budget: int, ranks: Sequence[Rank]
    ) -> tuple[IntArray, list[FloatArray]]:
        """n_c and the score of each rank from below, (m, C) each, in the band of each point; inf if rank > n_c."""
        shape = (len(distance), self._class_count)
        bins = bin_of(match_count, self._settings.q_bins)
        if math.prod(shape) <= len(self._windows.order):  # else runs are fewer than windows
            each = bins[:, np.newaxis] * self._class_count + np.arange(self._class_count)  # (m, C)
            low, high = self._windows.windows(each, distance, self._omega)
            windows = low.ravel(), high.ravel()
            return high - low, [self._smallest(*windows, rank_of).reshape(shape) for rank_of in ranks]
        band_size = np.empty(shape, dtype=np.int64)
        found = [np.empty(shape, dtype=np.float64) for _ in ranks]
        order = np.lexsort((distance, bins))
        present, counts = np.unique(bins, return_counts=True)
        # The part that is split off after the last bin is empty.
        for one_bin, rows in zip(present.tolist(), np.split(order, np.cumsum(counts)), strict=False):
            groups = range(one_bin * self._class_count, (one_bin + 1) * self._class_count)
            step = block_rows(memory_budget, TEMPORARY_BYTES * len(rows))  # classes
            for start in range(0, self._class_count, step):
                classes = slice(start, start + step)
                runs = self._windows.window_runs(groups[classes], distance[rows], self._omega)
                band_size[rows, classes] = runs.spread(runs.high - runs.low)
                for scores, rank_of in zip(found, ranks, strict=True):
                    scores[rows, classes] = runs.spread(self._smallest(runs.low, runs.high, rank_of))
        return band_size, found

    def _smallest(self, low: IntArray, high: IntArray, rank_of: Rank) -> FloatArray:
        """The rank-th smallest score in each of r windows, (r,); inf if the rank exceeds the width, -inf for rank 0."""
        size = high - low
        rank = rank_of(size)
        enough = (rank > 0) & (rank <= size)
        smallest = np.where(rank > 0, np.inf, -np.inf)
        smallest[enough] = self._scores.rank_smallest(low[enough], high[enough], rank[enough])
        return smallest

    def _check_scored(
        self, logits: FloatArray, predicted: IntArray, match_count: IntArray, distance: FloatArray
    ) -> None:
        check_lengths(logits=logits, predicted=predicted, match_count=match_count, distance=distance)
        if logits.ndim != 2 or logits.shape[1] != self._class_count:
            raise InvalidInputError(f"expected logits of shape (m, {self._class_count}), got {logits.shape}")
        if not (np.isfinite(logits).all() and np.isfinite(distance).all()):
            raise InvalidInputError("logits and distances must be finite")
        if np.any((predicted < 0) | (predicted >= self._class_count)):
            raise InvalidInputError(f"predictions must be in [0, {self._class_count})")


def admit_sets(
    logits: FloatArray, predicted: IntArray, band_size: IntArray, threshold_score: FloatArray, *, kappa: int
) -> AdmitSets:
    """Return the ADMIT sets that follow from the band of each point, by the rule above.

    Args:
        kappa: The least n_c at which a band is used.
    """
    included = np.empty(band_size.shape, dtype=np.bool_)
    step = tile_rows(TEMPORARY_BYTES * band_size.shape[1])
    for start in range(0, len(predicted), step):
        rows = slice(start, start + step)
        included[rows] = 1.0 - softmax(np.ascontiguousarray(logits[rows])) <= threshold_score[rows]
    included[np.arange(len(predicted)), predicted] = True
    starved = smallest_class_count(band_size) < kappa
    included[starved] = True
    return AdmitSets(
        included=included,
        band_size=band_size,
        threshold=1.0 - threshold_score,
        singleton=included.sum(axis=1) == 1,
        starved=starved,
    )


def smallest_class_count(band_size: IntArray) -> IntArray:
    """Return the fewest points that any class has in the band of each point, min_c n_c: (m,) int64.

    A kappa above this number turns the point's set into all classes. Its maximum over points is thus the largest kappa
    that leaves any band in use.
    """
    fewest: IntArray = band_size.min(axis=1)
    return fewest
