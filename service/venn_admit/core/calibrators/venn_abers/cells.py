"""Venn-Abers probabilities of points by their cells (docs/PROCEDURE.md, section 9).

The cell of a point is its bin of q and its predicted class, which is the network's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from venn_admit.core.calibrators.bands import bin_of
from venn_admit.core.calibrators.venn_abers.steps import ScoreGroups, ScorePlaces, Steps, plain_steps
from venn_admit.core.calibrators.venn_abers.weighted_steps import WeightedLower
from venn_admit.core.checks import check_classes, check_lengths
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError


@dataclass(frozen=True, slots=True, eq=False)
class CellPoints:
    """What Venn-Abers sees of n points.

    Attributes:
        predicted: (n,) int64, yhat, the network's prediction.
        match_count: (n,) int64, q; `NO_MATCH_COUNT` without vectors.
        score: (n,) float64, s, finite; of predictions alike, the greater score is the one more likely to be right.
    """

    predicted: IntArray
    match_count: IntArray
    score: FloatArray

    def take(self, rows: IntArray | BoolArray) -> "CellPoints":
        """Return some of the points."""
        return CellPoints(self.predicted[rows], self.match_count[rows], self.score[rows])


def join_points(parts: Sequence[CellPoints]) -> CellPoints:
    """Return the points of several parts one after the other."""
    return CellPoints(
        np.concatenate([part.predicted for part in parts]),
        np.concatenate([part.match_count for part in parts]),
        np.concatenate([part.score for part in parts]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Venn-Abers probabilities that the predictions of m points are right.

    Attributes:
        lower: (m,) float64 in [0, 1], p0; 0 in an empty cell.
        upper: (m,) float64 in [0, 1], p1; 1 in an empty cell.
    """

    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class CellEvidence:
    """What the plain bounds of m points rest on.

    A step is a range of scores with one p0 and one p1. It reaches from `step_score` to below `next_score`; p1 at
    `step_score` itself may be lower than within the step.

    Attributes:
        cell: (m,) int64 in [0, bins * C), the number of the bin times C, plus the predicted class.
        cell_size: (m,) int64, the points of mc in the cell.
        cell_right: (m,) int64, those whose prediction is right.
        step_score: (m,) float64, the score at which the point's step starts; -inf for the first step of a cell.
        next_score: (m,) float64, the score at which the next step starts; inf for the last step.
        lower_before: (m,) float64, p0 of the step before; that of the point's own step if it is the first.
        upper_before: (m,) float64, p1 of that step, its first score left out.
        lower_after: (m,) float64, p0 of the next step; that of the point's own step if it is the last.
        upper_after: (m,) float64, p1 of that step, its first score left out.
    """

    cell: IntArray
    cell_size: IntArray
    cell_right: IntArray
    step_score: FloatArray
    next_score: FloatArray
    lower_before: FloatArray
    upper_before: FloatArray
    lower_after: FloatArray
    upper_after: FloatArray
    bounds: Bounds


def bins_of(points: CellPoints, q_bins: tuple[int, ...]) -> IntArray:
    """Return the bin of each point's q, (n,) int64; a single bin holds every point, those too that have no q.

    Raises:
        InvalidInputError: There are several bins, and a point has no q.
    """
    if len(q_bins) == 1:
        return np.zeros(len(points.match_count), dtype=np.int64)
    return bin_of(points.match_count, q_bins)


def cell_numbers(points: CellPoints, *, class_count: int, q_bins: tuple[int, ...]) -> IntArray:
    """Return the number of each point's cell: that of its bin times C, plus the predicted class; (n,) int64."""
    return bins_of(points, q_bins) * class_count + points.predicted


class VennAbersIndex:
    """The points of `mc` by cell and score; immutable. Neither their order nor the batch of a query changes a bit.

    Attributes:
        cell_size: (bins * C,) int64, the points of each cell.
        cell_right: (bins * C,) int64, those whose prediction is right.
        steps: The plain bounds of all cells, as a snapshot stores them.
    """

    def __init__(
        self, points: CellPoints, right: BoolArray, *, class_count: int, q_bins: tuple[int, ...] = (0,)
    ) -> None:
        """Build the index in O(n log n).

        Args:
            points: n points of `mc`; there may be none.
            q_bins: Ascending lower edges of the bins of q, the first of them 0; by default there is one bin.
        """
        check_lengths(points=points.predicted, right=right)
        self._class_count = class_count
        self._q_bins = q_bins
        self._mc_cell = self.cell(points)
        self._mc_score, self._mc_right = points.score, right
        cell_count = len(q_bins) * class_count
        self.cell_size: IntArray = np.bincount(self._mc_cell, minlength=cell_count)
        self.cell_right: IntArray = np.bincount(self._mc_cell[right], minlength=cell_count)
        self._groups = ScoreGroups.of(self._mc_cell, points.score, right)
        self.steps: Steps = plain_steps(self._groups)
        self._step_places = StepPlaces(self.steps)

    def cell(self, points: CellPoints) -> IntArray:
        """Return the number of each point's cell: that of its bin times C, plus the predicted class.

        Returns:
            (m,) int64 in [0, bins * C).
        """
        check_lengths(predicted=points.predicted, match_count=points.match_count, score=points.score)
        check_classes(self._class_count, {"predicted": points.predicted})
        wrong = np.flatnonzero(~np.isfinite(points.score))
        if wrong.size:
            raise InvalidInputError(
                f"point {wrong[0]}: expected a finite score, got {points.score[wrong[0]]}; remove or repair the point"
            )
        return cell_numbers(points, class_count=self._class_count, q_bins=self._q_bins)

    def bounds(self, points: CellPoints, upweight: FloatArray | None = None) -> Bounds:
        """Return p0 and p1 of m points, in O(m log n).

        Plain bounds are exact, correctly rounded. Weighted ones are within a few units in the last place.

        Args:
            upweight: (m,) float64, w > 0 of each point, which is 1 / psi' as `upweights` gives it; None for plain
                bounds. As w grows without limit, p0 falls to 0 and p1 rises to 1, the bounds for w = inf.
        """
        cell = self.cell(points)
        if upweight is not None:
            return self._weighted(cell, points.score, _checked_upweight(upweight, cell))
        return self._step_places.bounds(cell, points.score)[0]

    def evidence(self, points: CellPoints) -> CellEvidence:
        """Return what the plain bounds of m points rest on."""
        cell, steps = self.cell(points), self.steps
        row, found = self._step_places.places.last_not_above(cell, points.score)
        # A row at either end, so that every row has neighbours; the cell of both is none. The first is what holds in a
        # cell without points.
        around = np.pad(steps.cell, 1, constant_values=-1)
        score = np.pad(steps.score, 1, constant_values=-np.inf)
        lower = np.pad(steps.lower, 1)
        upper = np.pad(steps.upper_above, 1, constant_values=1.0)
        own = np.where(found, row + 1, 0)
        before = np.where(found & (around[own - 1] == cell), own - 1, own)
        has_next = found & (around[own + 1] == cell)
        after = np.where(has_next, own + 1, own)
        return CellEvidence(
            cell=cell,
            cell_size=self.cell_size[cell],
            cell_right=self.cell_right[cell],
            step_score=score[own],
            next_score=np.where(has_next, score[after], np.inf),
            lower_before=lower[before],
            upper_before=upper[before],
            lower_after=lower[after],
            upper_after=upper[after],
            bounds=self.bounds(points),
        )

    @cached_property
    def order(self) -> IntArray:
        """Rows of mc, (n,) int64, sorted so that every cell is one window, for the localizer's mass.

        Rows that agree in cell, score and outcome keep the order in which they are given.
        """
        return np.lexsort((self._mc_right, self._mc_score, self._mc_cell))

    def windows(self, points: CellPoints) -> tuple[IntArray, IntArray]:
        """Return the window [low, high) of `order` that holds the cell of each of m points; (m,) int64 each."""
        cell = self.cell(points)
        after = np.cumsum(self.cell_size)
        return after[cell] - self.cell_size[cell], after[cell]

    @cached_property
    def _weighted_sides(self) -> tuple[WeightedLower, WeightedLower]:
        return WeightedLower.of(self._groups), WeightedLower.of(self._groups.mirrored())

    @cached_property
    def _group_places(self) -> ScorePlaces:
        return ScorePlaces(self._groups.cell, self._groups.score)

    def _weighted(self, cell: IntArray, score: FloatArray, upweight: FloatArray) -> Bounds:
        lower, upper = np.zeros(len(cell)), np.ones(len(cell))
        groups = self._groups
        row, found = self._group_places.last_not_above(cell, score)
        if not len(groups.cell):
            return Bounds(lower, upper)
        finite = np.isfinite(upweight)
        below, above = self._weighted_sides
        some = np.flatnonzero(found & finite)
        hits, total = below.lines(row[some] + 1, upweight[some])
        lower[some] = hits / (total + upweight[some])
        # In the mirror image, the group of p1 is the first of the cell whose score is not less, counted from the end.
        tied = found & (groups.score[row] == score)
        at_or_above = np.where(tied, row, np.where(found, row + 1, np.searchsorted(groups.cell, cell)))
        inside = at_or_above < len(groups.cell)
        inside[inside] = groups.cell[at_or_above[inside]] == cell[inside]
        some = np.flatnonzero(inside & finite)
        misses, total = above.lines(len(groups.cell) - at_or_above[some], upweight[some])
        upper[some] = (total - misses + upweight[some]) / (total + upweight[some])
        return Bounds(lower, upper)


class StepPlaces:
    """Where scores lie among the steps of a snapshot.

    Attributes:
        places: Those of the rows of the steps.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.places = ScorePlaces(steps.cell, steps.score)

    def bounds(self, cell: IntArray, score: FloatArray) -> tuple[Bounds, FloatArray]:
        """Return the plain bounds of m points, and the score at which the step of each starts, -inf if it has none.

        Args:
            cell: (m,) int64, as in `cell_numbers`.
            score: (m,) float64, s.
        """
        if not len(self._steps.cell):
            return Bounds(np.zeros(len(cell)), np.ones(len(cell))), np.full(len(cell), -np.inf)
        row, found = self.places.last_not_above(cell, score)
        own = self._steps.take(row)
        upper = np.where(own.score == score, own.upper_at, own.upper_above)
        bounds = Bounds(lower=np.where(found, own.lower, 0.0), upper=np.where(found, upper, 1.0))
        return bounds, np.where(found, own.score, -np.inf)


def _checked_upweight(upweight: FloatArray, cell: IntArray) -> FloatArray:
    check_lengths(points=cell, upweight=upweight)
    wrong = np.flatnonzero(~(upweight > 0))
    if wrong.size:
        raise InvalidInputError(f"point {wrong[0]}: expected an up-weight above 0, got {upweight[wrong[0]]}")
    return upweight
