"""Recent traffic against a calibration by Venn-Abers: scores, q and d, and what the snapshot would admit, plainly.

Without vectors there are neither q nor d, and points are compared by their scores alone.

What would be admitted of mc is decided on each point by the bounds of the other folds, in which its document is not.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np

from venn_admit.core.calibrators.bands import bin_of
from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.checks import check_lengths
from venn_admit.core.documents import Documents
from venn_admit.core.monitoring.drift import DecidedPoints
from venn_admit.core.monitoring.partitions import DISTANCE_GROUPS
from venn_admit.core.monitoring.traffic import Comparison, Sides
from venn_admit.core.types import BoolArray, FloatArray, IntArray, Split

SCORE_GROUPS = 4
"""The number of groups of a score within a predicted class, which is cut at its quartiles over mc."""


@dataclass(frozen=True, slots=True, eq=False)
class CellView:
    """n points of mc, or of recent traffic, as they are compared.

    Attributes:
        points: Predictions, q and scores.
        distance: (n,) float64, d; None without vectors, and then q is `NO_MATCH_COUNT`.
        admitted: (n,) bool, whether the prediction would be admitted.
    """

    points: CellPoints
    distance: FloatArray | None
    admitted: BoolArray

    def take(self, rows: IntArray) -> "CellView":
        """Return some of the points.

        Args:
            rows: (m,) int64.
        """
        distance = None if self.distance is None else self.distance[rows]
        return CellView(self.points.take(rows), distance, self.admitted[rows])


@dataclass(frozen=True, slots=True)
class TrafficPart:
    """One part of the calibration data and of recent traffic.

    Attributes:
        kind: What is cut into parts: score, q or d.
        predicted: The predicted class of the part; None for all.
        low: The lower end, which belongs to the part; -inf for none.
        high: The upper end, which does not; inf for none.
        calibrated: The number of points of mc in it.
        right: How many of these are predicted right.
        admitted: How many of these would be admitted.
        recent: The number of comparable points of recent traffic in it.
        recent_admitted: How many of these would be admitted.
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

    Args:
        mc: The points of mc.
        mc_documents: The documents of these points; None if no two share one.
        recent: The comparable points, in their order; None if there are none.
        decided: Recent traffic.
        documents: The documents of its points, in the same form.
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
    return sides.compare(
        shifts,
        {"admitted": (int(mc.admitted.sum()), int(recent.admitted.sum()))},
    )


def traffic_parts(
    mc: CellView, right: BoolArray, recent: CellView | None, *, class_count: int, match_edges: tuple[int, ...] | None
) -> tuple[TrafficPart, ...]:
    """Count mc and recent traffic by score within each predicted class and, with vectors, by q and by d.

    Args:
        mc: n points of mc.
        right: (n,) bool, yhat = y.
        recent: The comparable points of recent traffic; None if there are none.
        class_count: C.
        match_edges: Lower edges of the bins of q; None without vectors.

    Raises:
        InvalidInputError: The arrays differ in length.
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
