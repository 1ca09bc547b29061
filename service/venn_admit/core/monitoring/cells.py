"""The cells of a calibration by Venn-Abers: what each can admit, the labels it lacks, and recent traffic in them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, pairwise
from math import ceil, inf

import numpy as np

from venn_admit.core.calibrators.bands import bin_of
from venn_admit.core.calibrators.certified.policies import Bounded, Policy
from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex, cell_numbers
from venn_admit.core.checks import check_lengths
from venn_admit.core.documents import Documents
from venn_admit.core.monitoring.drift import DecidedPoints
from venn_admit.core.monitoring.partitions import DISTANCE_GROUPS
from venn_admit.core.monitoring.traffic import Comparison, Sides
from venn_admit.core.split_names import Split
from venn_admit.core.types import BoolArray, FloatArray, IntArray

SCORE_GROUPS = 4
"""The number of groups of a score within a predicted class, which is cut at its quartiles over mc."""


@dataclass(frozen=True, slots=True)
class CellState:
    """What one cell, a bin of q and a predicted class, can admit.

    Attributes:
        admitted: How many of them are admitted by bounds of the other folds.
        threshold: The least p0, or score if the policy bounds it, that admits; None for never.
        largest: The largest p0 that any score has; 0 in an empty cell.
        admits_from: The score from which on predictions are admitted; None if none are.
        lacking: The fewest further points, all of them right and with scores above all others, after which the highest
            score is admitted; 0 if it is or never shall be, inf if no number would do.
        labels: The number of random labels that this takes at least, in expectation; inf if there is no rate.
    """

    q_bin: int
    predicted: int
    points: int
    right: int
    admitted: int
    threshold: Decimal | None
    largest: float
    admits_from: float | None
    lacking: float
    labels: float


def cell_states(
    points: CellPoints,
    right: BoolArray,
    admitted: BoolArray,
    *,
    policy: Policy,
    q_bins: tuple[int, ...],
    label_count: float,
) -> tuple[CellState, ...]:
    """Return the state of every cell, by bin of q, then by predicted class.

    The largest p0 is that of the highest score, max R / (N + 1) over the R right of N points from some score upwards.
    With m right points more on top it is max (R + m) / (N + m + 1), which reaches t once m >= (t (N + 1) - R) / (1 - t)
    for one of these scores; without any points, m / (m + 1). So far, one random label in label_count / right became a
    right point of the cell. At that rate lacking * label_count / right labels are needed if every one of its right
    points lies on top; as not all do, it takes more.

    Args:
        admitted: (n,) bool, which of them are admitted by bounds of the other folds.
        policy: The thresholds that admit. If they bound the score, nothing is lacking that p0 could tell.

    Examples:
        >>> points = CellPoints(np.zeros(4, np.int64), np.zeros(4, np.int64), np.array([0.6, 0.7, 0.8, 0.9]))
        >>> right = np.array([False, True, True, True])
        >>> policy = Policy((0.9, 0.9), Bounded.LOWER)
        >>> first, _ = cell_states(points, right, ~right, policy=policy, q_bins=(0,), label_count=40)
        >>> first.largest, first.lacking, first.labels
        (0.75, 6, 80.0)
    """
    check_lengths(predicted=points.predicted, right=right, admitted=admitted)
    class_count, by_score = len(policy.thresholds), policy.bounded is Bounded.SCORE
    index = VennAbersIndex(points, right, class_count=class_count, q_bins=q_bins)
    cell = cell_numbers(points, class_count=class_count, q_bins=q_bins)
    kept = np.bincount(cell[admitted], minlength=len(index.cell_size))
    found = []
    for number, (size, hits) in enumerate(zip(index.cell_size.tolist(), index.cell_right.tolist(), strict=True)):
        q_bin, predicted = divmod(number, class_count)
        threshold = policy.thresholds[predicted]
        steps = index.steps.take(np.flatnonzero(index.steps.cell == number))
        reached = np.flatnonzero(steps.lower >= (np.inf if threshold is None else threshold))
        members = np.flatnonzero(cell == number)
        lacking: float = 0
        admits_from = float(steps.score[reached[0]]) if reached.size else None
        if by_score:
            admits_from = threshold
        elif threshold is not None and not reached.size:
            lacking = _lacking(points.score[members], right[members], Decimal(repr(threshold)))
        found.append(
            CellState(
                q_bin=q_bin,
                predicted=predicted,
                points=size,
                right=hits,
                admitted=int(kept[number]),
                threshold=None if threshold is None else Decimal(repr(threshold)),
                largest=float(steps.lower[-1]) if len(steps.lower) else 0.0,
                admits_from=admits_from,
                lacking=lacking,
                labels=lacking * label_count / hits if hits else inf if lacking else 0.0,
            )
        )
    return tuple(found)


def _lacking(score: FloatArray, right: BoolArray, threshold: Decimal) -> float:
    """The fewest right points on top after which the highest score is admitted; inf for a threshold of 1."""
    asked = Fraction(threshold)
    if asked >= 1:
        return inf
    order = np.argsort(-score, kind="stable")
    last_of_score = np.append(np.diff(score[order]) != 0, True)[: len(order)]
    totals: Sequence[int] = [0, *(np.flatnonzero(last_of_score) + 1).tolist()]
    hits = list(accumulate(right[order].tolist(), initial=0))
    needed: int = min(ceil((asked * (total + 1) - hits[total]) / (1 - asked)) for total in totals)
    return max(0, needed)


@dataclass(frozen=True, slots=True, eq=False)
class CellView:
    """n points of mc, or of recent traffic, as they are compared.

    Attributes:
        distance: (n,) float64, d; None without vectors, and then q is `NO_MATCH_COUNT`.
    """

    points: CellPoints
    distance: FloatArray | None
    admitted: BoolArray

    def take(self, rows: IntArray) -> "CellView":
        """Return some of the points."""
        distance = None if self.distance is None else self.distance[rows]
        return CellView(self.points.take(rows), distance, self.admitted[rows])


@dataclass(frozen=True, slots=True)
class TrafficPart:
    """One part of the calibration data and of recent traffic.

    Attributes:
        low: The lower end, which belongs to the part; -inf for none.
        high: The upper end, which does not; inf for none.
    """

    kind: str
    predicted: int | None
    low: float
    high: float
    calibrated: int
    right: int
    admitted: int
    recent: int
    recent_admitted: int


def compare_cells(
    mc: CellView,
    mc_documents: Documents | None,
    recent: CellView | None,
    decided: DecidedPoints,
    documents: Documents | None,
) -> Comparison | None:
    """Compare the comparable points of recent traffic with mc; None if there are none.

    Without vectors, only the scores are compared.
    """
    if recent is None:
        return None
    sides = Sides(Split.MC, len(mc.admitted), mc_documents, np.flatnonzero(decided.comparable), documents)
    shifts: dict[str, tuple[IntArray | FloatArray, IntArray | FloatArray]] = {
        "score": (mc.points.score, recent.points.score)
    }
    if mc.distance is not None and recent.distance is not None:
        shifts["q"] = mc.points.match_count, recent.points.match_count
        shifts["d"] = mc.distance, recent.distance
    return sides.compare(shifts, {"admitted": (int(mc.admitted.sum()), int(recent.admitted.sum()))})


def traffic_parts(
    mc: CellView, right: BoolArray, recent: CellView | None, *, class_count: int, match_edges: tuple[int, ...] | None
) -> tuple[TrafficPart, ...]:
    """Count mc and recent traffic by score within each predicted class and, with vectors, by q and by d.

    Args:
        match_edges: Lower edges of the bins of q; None without vectors.
    """
    distances = {} if mc.distance is None else {"distance": mc.distance}
    check_lengths(right=right, predicted=mc.points.predicted, **distances)
    other = recent or mc.take(np.zeros(0, dtype=np.int64))

    def parts(
        kind: str, predicted: int | None, codes: Sequence[IntArray], ends: Sequence[float]
    ) -> Iterator[TrafficPart]:
        of_mc, of_other = codes
        for number, (low, high) in enumerate(pairwise(ends)):
            ours, theirs = of_mc == number, of_other == number
            yield TrafficPart(
                kind=kind,
                predicted=predicted,
                low=low,
                high=high,
                calibrated=int(ours.sum()),
                right=int((ours & right).sum()),
                admitted=int((ours & mc.admitted).sum()),
                recent=int(theirs.sum()),
                recent_admitted=int((theirs & other.admitted).sum()),
            )

    def cut(values: FloatArray, edges: FloatArray, kept: BoolArray) -> IntArray:
        return np.where(kept, np.searchsorted(edges, values, side="right"), -1)

    def by_score() -> Iterator[TrafficPart]:
        for c in range(class_count):
            ours, theirs = mc.points.predicted == c, other.points.predicted == c
            edges = _quantiles(mc.points.score[ours], SCORE_GROUPS)
            codes = cut(mc.points.score, edges, ours), cut(other.points.score, edges, theirs)
            yield from parts("score", c, codes, (-inf, *edges.tolist(), inf))

    def by_match_count() -> Iterator[TrafficPart]:
        if match_edges is not None:
            codes = [bin_of(view.points.match_count, match_edges) for view in (mc, other)]
            yield from parts("q", None, codes, (*match_edges, inf))

    def by_distance() -> Iterator[TrafficPart]:
        if mc.distance is not None and other.distance is not None:
            edges = _quantiles(mc.distance, DISTANCE_GROUPS)
            codes = [cut(values, edges, np.full(len(values), True)) for values in (mc.distance, other.distance)]
            yield from parts("d", None, codes, (-inf, *edges.tolist(), inf))

    return (*by_score(), *by_match_count(), *by_distance())


def _quantiles(values: FloatArray, groups: int) -> FloatArray:
    """Where values are cut into groups of about equal size: fewer if many are equal, none of none."""
    levels = np.linspace(0, 1, groups + 1)[1:-1]
    return np.unique(np.quantile(values, levels, method="inverted_cdf")) if len(values) else np.zeros(0)
