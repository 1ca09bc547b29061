"""Venn-ADMIT without a division: the points of `mc` and `vp` and the scored one calibrate sets and probabilities.

The scored point joins the others with each label that it may have. The set of every point is then that of its band, in
which it is itself, and the category of the scored point is the singletons of its band with the same prediction:

    p_c(c') = #{j in T_c : y_j = c'} / |T_c|        T_c with the scored point in it, labelled c
    lower p(c') = min_c p_c(c'),   upper p(c') = max_c p_c(c')

The set that is shown is the union over c: full conformal prediction, whose rank is ceil((n_c + 2)(1 - alpha)) among the
n_c others. If it is a singleton, so is the set under each label.

One more score of class c in a band raises the rank of this class by 1 or not at all, so the rank-th smallest score
moves to the next one at most. Whether point j is in T_c therefore depends on the scored point by one comparison,
1 - pi^c < cut_j^c, and the cut is j's own score, or infinite either way. Counting them takes O(log n) for each label.

Source: Vovk, Gammerman & Shafer (2005), *Algorithmic learning in a random world*, chapter 6.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from venn_admit.core.approximation.knn import softmax
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET, block_rows
from venn_admit.core.calibrators.bands import WindowIndex, bin_of
from venn_admit.core.calibrators.order_statistics import OrderStatistics
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex, admit_sets
from venn_admit.core.checks import check_lengths
from venn_admit.core.types import AdmitSets, BoolArray, CalibrationPoints, FloatArray, IntArray, VennProbabilities

_ROW_BYTES = 12 * 8  # of cuts with what they are made from, for each point and class


@dataclass(frozen=True, slots=True, eq=False)
class JoinedCategories:
    """The categories of m points, joined with each label in turn; all are 0 without a singleton.

    Attributes:
        size: (m, C) int64, the points of T_c besides the scored one.
        correct: (m, C) int64, those of them whose prediction is right.
    """

    size: IntArray
    correct: IntArray


Windows: TypeAlias = tuple[IntArray, IntArray]


class UndividedIndex:
    """The n points of `mc` and `vp`, ready to give the category of any other point; immutable.

    It is built in O(n C log n).

    Attributes:
        admit: Gives the sets of scored points.
        order: (n,) int64, the rows in the order of bands; see `VennIndex`.
    """

    def __init__(
        self,
        points: CalibrationPoints,
        logits: FloatArray,
        *,
        class_count: int,
        settings: CalibratorSettings,
        omega: float,
        kappas: Sequence[int] = (),
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        """Build the index.

        Args:
            points: The points.
            omega: From the labels of other points, such as `knn`.
            kappas: Those for which there are categories; none: that of the settings.
        """
        check_lengths(points=points.label, logits=logits)
        self.admit = AdmitIndex(points, class_count=class_count, settings=settings, omega=omega)
        self._points, self._logits, self._settings, self._omega = points, logits, settings, omega
        self._class_count = class_count
        group = self._group(points.predicted, points.match_count)
        self._windows = WindowIndex(group, points.distance, points.score, points.label)
        self.order: IntArray = self._windows.order
        self._right = (points.label == points.predicted)[self.order]
        self._cuts = {kappa: np.empty(logits.shape) for kappa in kappas or (settings.kappa,)}  # (n, C), in that order
        step = block_rows(memory_budget, _ROW_BYTES * class_count)
        for start in range(0, len(self.order), step):
            self._write_cuts(slice(start, start + step), memory_budget)
        self._counts = {
            kappa: [(_Below(cuts, self._right), _Below(cuts, ~self._right)) for cuts in of_kappa.T]
            for kappa, of_kappa in self._cuts.items()
        }

    def categories(
        self,
        singleton: BoolArray,
        logits: FloatArray,
        predicted: IntArray,
        match_count: IntArray,
        distance: FloatArray,
        *,
        kappa: int | None = None,
    ) -> JoinedCategories:
        """Return the categories of m points; kappa: None for that of the settings."""
        check_lengths(singleton=singleton, logits=logits, predicted=predicted, distance=distance)
        rows = np.flatnonzero(singleton)
        low, high = self._windows_of(predicted[rows], match_count[rows], distance[rows])
        size, correct = np.zeros(logits.shape, np.int64), np.zeros(logits.shape, np.int64)
        score = 1.0 - softmax(np.ascontiguousarray(logits[rows]))
        for label, (right, wrong) in enumerate(self._counts[kappa or self._settings.kappa]):
            correct[rows, label] = right.count(low, high, score[:, label])
            size[rows, label] = correct[rows, label] + wrong.count(low, high, score[:, label])
        return JoinedCategories(size, correct)

    def label_counts(self, logits: FloatArray, predicted: int, match_count: int, distance: float) -> IntArray:
        """Return how many points of each label the category of one point holds besides itself, joined with each label.

        Args:
            logits: (C,) float64.

        Returns:
            (C, C) int64, a row for each label that is joined with.
        """
        low, high = self._windows_of(np.array([predicted]), np.array([match_count]), np.array([distance]))
        window = slice(int(low[0]), int(high[0]))
        score = 1.0 - softmax(logits[np.newaxis])[0]
        label, cuts = self._points.label[self.order[window]], self._cuts[self._settings.kappa][window]
        return np.array([np.bincount(label[score[c] < cuts[:, c]], minlength=len(score)) for c in range(len(score))])

    def own_sets(self, *, memory_budget: int = DEFAULT_MEMORY_BUDGET) -> AdmitSets:
        """Return the set of each of the n points by all others, as if it were scored.

        The threshold of its own label is that of the band with it.
        """
        points = self._points
        bands = self.admit.thresholds(points.match_count, points.distance, memory_budget)
        rows = np.arange(len(points.label))
        # A score is within the threshold of the others that it joins if it is within that of the band with it.
        threshold, size = bands.joined.copy(), bands.size.copy()
        threshold[rows, points.label] = bands.alone[rows, points.label]
        size[rows, points.label] -= 1
        return admit_sets(self._logits, points.predicted, size, threshold, kappa=self._settings.kappa)

    def _write_cuts(self, places: slice, memory_budget: int) -> None:
        """Find for each label below which score of a scored point with it points are in its category."""
        points, rows = self._points, self.order[places]
        predicted = points.predicted[rows]
        score = 1.0 - softmax(np.ascontiguousarray(self._logits[rows]))  # (r, C)
        bands = self.admit.thresholds(points.match_count[rows], points.distance[rows], memory_budget)
        is_predicted = predicted[:, np.newaxis] == np.arange(self._class_count)
        apart = (score > bands.alone) | is_predicted
        others_apart = (~apart).sum(axis=1, keepdims=True) == ~apart
        cut = np.where(score > bands.joined, np.inf, np.where(score > bands.before, score, -np.inf))
        cut = np.where(others_apart, np.where(is_predicted, np.inf, cut), -np.inf)
        for kappa, cuts in self._cuts.items():
            small = bands.size < kappa
            others_hold = (small.sum(axis=1, keepdims=True) == small) & (bands.size >= kappa - 1)
            cuts[places] = np.where(others_hold, cut, -np.inf)

    def _windows_of(self, predicted: IntArray, match_count: IntArray, distance: FloatArray) -> Windows:
        return self._windows.windows(self._group(predicted, match_count), distance, self._omega)

    def _group(self, predicted: IntArray, match_count: IntArray) -> IntArray:
        return bin_of(match_count, self._settings.q_bins) * self._class_count + predicted


class _Below:
    """How many of some points of a window have a cut above a score."""

    def __init__(self, cuts: FloatArray, chosen: BoolArray) -> None:
        """Take n cuts in the order of windows, of which some points count."""
        self._always = _before(chosen & (cuts == np.inf))
        finite = chosen & np.isfinite(cuts)
        self._places = _before(finite)
        self._finite = OrderStatistics(cuts[finite])

    def count(self, low: IntArray, high: IntArray, score: FloatArray) -> IntArray:
        """Return the counts of m windows, (m,) int64."""
        always: IntArray = self._always[high] - self._always[low]
        return always + self._finite.count_above(self._places[low], self._places[high], score)


def _before(chosen: BoolArray) -> IntArray:
    """How many of the first i points are chosen, (n + 1,) int64."""
    return np.concatenate([[0], np.cumsum(chosen, dtype=np.int64)])


@dataclass(frozen=True, slots=True, eq=False)
class ClassBounds:
    """The probabilities of each class; (C,) each.

    Attributes:
        lower: float64 in [0, 1].
        upper: float64 in [0, 1].
        least: int64, the first label whose category gives the lower one.
    """

    lower: FloatArray
    upper: FloatArray
    least: IntArray


def class_bounds(label_counts: IntArray) -> ClassBounds:
    """Return the lower and upper probability of every class.

    Args:
        label_counts: (C, C) int64, as `UndividedIndex.label_counts` returns it.

    Examples:
        >>> class_bounds(np.array([[8, 1], [8, 0]])).lower.tolist()
        [0.8888888888888888, 0.1]
    """
    joined = label_counts + np.eye(len(label_counts), dtype=np.int64)
    shares = joined / joined.sum(axis=1, keepdims=True)  # (C, C)
    return ClassBounds(shares.min(axis=0), shares.max(axis=0), shares.argmin(axis=0))


def joined_probabilities(singleton: BoolArray, predicted: IntArray, found: JoinedCategories) -> VennProbabilities:
    """Return the lower and the upper probability of each prediction, and the size of the category that gives the lower.

    Without a singleton they are NaN, and the size is 0. The up-weight is always NaN: there are no weights.
    """
    check_lengths(singleton=singleton, predicted=predicted, size=found.size)
    own = predicted[:, np.newaxis] == np.arange(found.size.shape[1])
    shares = (found.correct + own) / (found.size + 1)  # (m, C)
    rows, least = np.arange(len(predicted)), shares.argmin(axis=1)
    return VennProbabilities(
        category_size=np.where(singleton, found.size[rows, least], 0),
        upweight=np.full(len(predicted), np.nan),
        lower=np.where(singleton, shares[rows, least], np.nan),
        upper=np.where(singleton, shares.max(axis=1), np.nan),
    )
