"""What the charts of an evaluation show: reliability, coverage against share admitted, accuracy by q and d, and risk.

Sources of the risk-coverage curve: El-Yaniv & Wiener (2010), *On the foundations of noise-free selective
classification*; Geifman, Uziel & El-Yaniv (2019), *Bias-reduced uncertainty estimation for deep neural classifiers*,
for the area. Symbols: q = `match_count`, d = `distance`, K = `neighbour_count`.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from venn_admit.core.checks import check_classes, check_rows
from venn_admit.core.documents import Documents
from venn_admit.core.evaluation.tallies import Grouping, tally_groupings
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

RELIABILITY_EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Reliability:
    """A probability against the observed share right, in b bins.

    Attributes:
        mean_probability: (b,) float64, NaN for an empty bin.
        frequency: (b,) float64, the share right; NaN for an empty bin.
        interval_low: (b,) float64, the lower ends of the 95 % intervals of the frequency.
        interval_high: (b,) float64, the upper ends.
        few: (b,) bool, whether there are points, but too few of them, or of the documents that hold them, to judge.
    """

    edges: FloatArray
    count: IntArray
    mean_probability: FloatArray
    frequency: FloatArray
    interval_low: FloatArray
    interval_high: FloatArray
    few: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class CoverageCurve:
    """The share right as the threshold on a score falls: one entry per distinct score, highest first.

    Attributes:
        threshold: (m,) float64.
        correct: (m,) int64, correct points at or above the threshold.
        count: (m,) int64, points at or above the threshold.
        total: All points of the group, whether or not they can be admitted.
    """

    threshold: FloatArray
    correct: IntArray
    count: IntArray
    total: int


@dataclass(frozen=True, slots=True, eq=False)
class AccuracyGrid:
    """Accuracy over a grid of q by d.

    Attributes:
        match_edges: (Q + 1,) int64, lower edges of the bins of q and, last, the exclusive end K + 1.
        distance_edges: (B + 1,) float64, quantiles of d. A bin includes its lower edge, the last one its upper edge
            too.
        correct: (Q, B) int64.
        count: (Q, B) int64.
    """

    match_edges: IntArray
    distance_edges: FloatArray
    correct: IntArray
    count: IntArray


def reliability(
    probability: FloatArray,
    correct: BoolArray,
    documents: Documents | None = None,
    edges: tuple[float, ...] = RELIABILITY_EDGES,
) -> Reliability:
    """Compare a probability, lower or upper, with the observed share right, in bins of the probability.

    Args:
        probability: (n,) float64 in [0, 1]; rows with NaN are left out.
        edges: The edges of the bins. A bin includes its lower edge, the last one its upper edge too.
    """
    check_rows(probability.size, {"correct": correct})
    known = ~np.isnan(probability)
    ascending = np.argsort(probability[known], kind="stable")  # so that sums do not depend on the order of the points
    bins = len(edges) - 1
    place = np.where(known, np.searchsorted(np.array(edges[1:-1]), probability, side="right"), -1)
    (tallies,) = tally_groupings([Grouping(place, correct, bins)], documents)
    count = np.array([tally.count for tally in tallies])
    intervals = np.array([tally.interval for tally in tallies])  # (b, 2)
    return Reliability(
        edges=np.array(edges),
        count=count,
        mean_probability=_ratio(
            np.bincount(place[known][ascending], weights=probability[known][ascending], minlength=bins), count
        ),
        frequency=np.array([tally.share for tally in tallies]),
        interval_low=intervals[:, 0],
        interval_high=intervals[:, 1],
        few=np.array([tally.count > 0 and tally.is_few for tally in tallies]),
    )


def coverage_curve(score: FloatArray, correct: BoolArray) -> CoverageCurve:
    """Return cumulative correct and admitted counts of one group of points, from the highest score down.

    Points of equal score are admitted together, so that the curve holds only what some threshold gives.
    """
    check_rows(score.size, {"correct": correct})
    known = ~np.isnan(score)
    value, hit = score[known], correct[known]
    order = np.argsort(-value, kind="stable")
    value, hit = value[order], hit[order]
    last_of_score = np.append(value[1:] != value[:-1], True)[: value.size]
    return CoverageCurve(
        threshold=value[last_of_score],
        correct=np.cumsum(hit, dtype=np.int64)[last_of_score],
        count=np.flatnonzero(last_of_score) + 1,
        total=score.size,
    )


def coverage_curves(
    score: FloatArray, correct: BoolArray, group: IntArray, class_count: int
) -> tuple[CoverageCurve, ...]:
    """Return the `coverage_curve` of each class.

    Args:
        group: (n,) int64 in [0, C), the true or the predicted class.
    """
    check_rows(score.size, {"correct": correct, "group": group})
    check_classes(class_count, {"group": group})
    return tuple(coverage_curve(score[group == c], correct[group == c]) for c in range(class_count))


def default_match_bins(neighbour_count: int) -> tuple[int, ...]:
    """Return lower edges of about five bins of q, in which q = 0 and q = K each have a bin of their own.

    Examples:
        >>> default_match_bins(25)
        (0, 1, 6, 16, 25)
    """
    k = neighbour_count
    return tuple(sorted({0, 1, 1 + k // 5, 1 + 3 * k // 5, k}))


def accuracy_grid(
    match_count: IntArray,
    distance: FloatArray,
    correct: BoolArray,
    neighbour_count: int,
    match_bins: tuple[int, ...],
    distance_bins: int = 5,
) -> AccuracyGrid:
    """Return the accuracy over bins of q by quantile bins of d over these points.

    Equal distances share a bin of d, so that there may be fewer bins than asked for.

    Args:
        match_bins: Lower edges of the bins of q, the first of them 0.
        distance_bins: The number of bins of d asked for.
    """
    check_rows(match_count.size, {"distance": distance, "correct": correct})
    if not match_bins or match_bins[0] != 0 or list(match_bins) != sorted(set(match_bins)):
        raise InvalidInputError(f"bins of q must be ascending lower edges, the first of them 0; got {match_bins}")
    if match_count.size == 0 or distance_bins < 1:
        raise InvalidInputError("a grid needs at least one point and one bin of d; pass more")
    # These quantiles are distances of points, so that no bin is empty.
    quantiles = np.unique(np.quantile(distance, np.linspace(0, 1, distance_bins + 1), method="lower"))
    inner = quantiles[1:-1]
    row = np.searchsorted(np.array(match_bins), match_count, side="right") - 1
    column = np.searchsorted(inner, distance, side="right")
    shape = (len(match_bins), inner.size + 1)
    flat = row * shape[1] + column
    cells = shape[0] * shape[1]
    return AccuracyGrid(
        match_edges=np.array([*match_bins, neighbour_count + 1]),
        distance_edges=np.concatenate([quantiles[:1], inner, quantiles[-1:]]),
        correct=np.bincount(flat[correct], minlength=cells).reshape(shape),  # (Q, B)
        count=np.bincount(flat, minlength=cells).reshape(shape),  # (Q, B)
    )


def _ratio(part: npt.ArrayLike, whole: IntArray) -> FloatArray:
    return np.where(whole > 0, np.asarray(part, np.float64) / np.maximum(whole, 1), np.nan)


@dataclass(frozen=True, slots=True, eq=False)
class RiskCurve:
    """How one method's confidence ranks its predictions.

    Attributes:
        curve: Its points, from the highest confidence down, as far as some threshold admits them.
        area: The area under the risk-coverage curve, in [0, 1]; less is better.
    """

    name: str
    curve: CoverageCurve
    area: float

    @property
    def coverage(self) -> FloatArray:
        """(m,) float64, the share of all points at or above each threshold."""
        return self.curve.count / self.curve.total

    @property
    def risk(self) -> FloatArray:
        """(m,) float64, the share wrong among them."""
        return (self.curve.count - self.curve.correct) / self.curve.count


def risk_curve(name: str, confidence: FloatArray, right: BoolArray) -> RiskCurve:
    """Return the risk-coverage curve of n points and the area under it.

    The area (AURC) is the mean over k = 1, ..., n of the share wrong among the k most confident points. Among points
    of equal confidence it is the expectation over their orders: their errors are spread evenly. Points without a
    confidence, which no threshold admits, come last as equals; the curve itself ends before them.

    Args:
        confidence: (n,) float64, n >= 1; NaN for a point that can never be admitted.

    Examples:
        >>> risk_curve("", np.array([0.9, 0.8, 0.7, np.nan]), np.array([True, False, True, True])).area
        0.2708333333333333
    """
    curve = coverage_curve(confidence, right)
    wrong = curve.count - curve.correct
    everything = np.count_nonzero(~right)
    taken = np.arange(1, curve.total + 1)
    errors = np.interp(taken, [0, *curve.count, curve.total], [0, *wrong, everything])
    return RiskCurve(name, curve, float(np.sum(errors / taken) / curve.total))
