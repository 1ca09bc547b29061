"""Venn-Abers probabilities of all scores at once, as steps (docs/PROCEDURE.md, section 9).

Source: Vovk, Petej & Fedorova (2015), *Large-scale probabilistic predictors with and without guarantees of validity*,
section 2. Let N_g be the number of calibration points in the first g groups of equal score and R_g the number of right
ones among them. The max-min formula of isotonic regression says that a wrong point of weight w, added in group k, gets

    p0 = max_{i < k} min_{j >= k} (R_j - R_i) / (N_j - N_i + w)

Here i need only be a vertex of the greatest convex minorant at or before the one that starts the block of k, because p0
is at most the slope at k. As max-min is min-max, p0 at k is the least T_j with j >= k, where

    T_j = max_i (R_j - R_i) / (N_j - N_i + w)

is the slope of the line from (N_j + w, R_j) that touches the minorant from below, found by bisection. A score
between two groups gets the p0 of the group below it. p1 is the mirror image: right for wrong, and scores reversed.

With w = 1, each candidate is one division of whole numbers, rounded once. Rounding is monotone, so that the greatest of
the least quotients is the exact probability, correctly rounded.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from venn_admit.core.calibrators.venn_abers.minorant import CumulativePoints, Minorant, first_where_not
from venn_admit.core.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class ScoreGroups:
    """The calibration points of all cells, in groups of one cell and one score, sorted by cell and score.

    Attributes:
        cell: (G,) int64.
        score: (G,) float64.
        size: (G,) int64, >= 1, the points of each group.
        right: (G,) int64, those whose prediction is right.
    """

    cell: IntArray
    score: FloatArray
    size: IntArray
    right: IntArray

    @classmethod
    def of(cls, cell: IntArray, score: FloatArray, right: BoolArray) -> "ScoreGroups":
        """Group points; their order does not matter.

        Args:
            score: (n,) float64, finite.
        """
        order = np.argsort(score)
        order = order[stable_cell_order(cell[order])]
        cell, score = cell[order], score[order]
        first = np.ones(len(order), dtype=np.bool_)
        first[1:] = (np.diff(cell) != 0) | (score[1:] != score[:-1])
        place = np.flatnonzero(first)
        right_before = np.concatenate([[0], np.cumsum(right[order], dtype=np.int64)])
        return cls(
            cell=cell[place],
            score=score[place] + 0.0,  # no negative zero, whichever of the two came first
            size=np.diff(place, append=len(order)),
            right=np.diff(right_before[np.append(place, len(order))]),
        )

    @property
    def start(self) -> IntArray:
        """Where each cell starts, and at last G: (L + 1,) int64 for the L cells that hold points."""
        changes = np.flatnonzero(np.diff(self.cell)) + 1
        return np.concatenate([[0], changes, [len(self.cell)]]) if len(self.cell) else np.zeros(1, dtype=np.int64)

    def mirrored(self) -> "ScoreGroups":
        """Return the groups with right for wrong, and cells and scores reversed."""
        return ScoreGroups(
            cell=-self.cell[::-1], score=-self.score[::-1], size=self.size[::-1], right=(self.size - self.right)[::-1]
        )


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """The plain bounds of every cell, as functions of the score.

    The row of a score is the last one of its cell whose score is not greater. Each cell that holds points starts with a
    row at -inf; a cell without rows has the bounds 0 and 1.

    Attributes:
        cell: (S,) int64, ascending.
        score: (S,) float64, strictly ascending within a cell; -inf, or the score of a calibration point.
        lower: (S,) float64 in [0, 1], p0 from this score up to the next row's.
        upper_at: (S,) float64 in [0, 1], p1 at this very score; at -inf, that of the scores above it.
        upper_above: (S,) float64 in [0, 1], p1 above this score and up to the next row's, that score itself left out.
    """

    cell: IntArray
    score: FloatArray
    lower: FloatArray
    upper_at: FloatArray
    upper_above: FloatArray

    def take(self, rows: IntArray) -> "Steps":
        """Return some rows."""
        return Steps(self.cell[rows], self.score[rows], self.lower[rows], self.upper_at[rows], self.upper_above[rows])


def plain_steps(groups: ScoreGroups) -> Steps:
    """Return the plain bounds, in as few rows as hold them, in O(n log n)."""
    start = groups.start
    lower, upper = _plain_bounds(groups, start)
    if not len(lower):
        return Steps(groups.cell, groups.score, lower, upper, upper)
    first, last = np.zeros((2, len(lower)), dtype=np.bool_)
    first[start[:-1]] = last[start[1:] - 1] = True
    lower_below = np.where(first, 0.0, np.roll(lower, 1))
    upper_above = np.where(last, 1.0, np.roll(upper, -1))
    changes = (lower != lower_below) | (upper != upper_above)
    at_start = start[:-1]
    kept = np.flatnonzero(changes)
    place = np.searchsorted(kept, at_start)  # a row at -inf precedes the rows of its cell
    return Steps(
        cell=np.insert(groups.cell[kept], place, groups.cell[at_start]),
        score=np.insert(groups.score[kept], place, -np.inf),
        lower=np.insert(lower[kept], place, 0.0),
        upper_at=np.insert(upper[kept], place, upper[at_start]),
        upper_above=np.insert(upper_above[kept], place, upper[at_start]),
    )


def _plain_bounds(groups: ScoreGroups, start: IntArray) -> tuple[FloatArray, FloatArray]:
    """p0 and p1 at the score of each group, (G,) float64 each."""
    if not len(groups.cell):
        return np.zeros(0), np.zeros(0)
    lower = _least_later_lines(groups, start, _lower_quotient, (0.0, 1.0))
    mirrored = groups.mirrored()
    upper = -_least_later_lines(mirrored, mirrored.start, _negative_upper_quotient, (-1.0, 0.0))[::-1]
    return lower, upper


def _lower_quotient(hits: IntArray, total: IntArray) -> FloatArray:
    return hits / (total + 1)


def _negative_upper_quotient(misses: IntArray, total: IntArray) -> FloatArray:
    return (misses - total - 1) / (total + 1)


def _least_later_lines(
    groups: ScoreGroups,
    start: IntArray,
    quotient: Callable[[IntArray, IntArray], FloatArray],
    extremes: tuple[float, float],
) -> FloatArray:
    """The least T_j with j >= k, for each group k: (G,) float64.

    T falls from a group to a next one without hits, and rises from a group to a next one of hits alone. So the least
    T_j beyond k is found among the groups j that are not of hits alone and precede none without hits. T_k itself is
    needed only of the other groups of hits alone, and only if the bounds on either side of them differ.

    Args:
        start: The start of the cells.
        quotient: T from R_j - R_i and N_j - N_i; any increasing function of it.
        extremes: What lies below and above all values of the quotient.
    """
    points = CumulativePoints.of(groups.size, groups.right, start)
    minorant = Minorant.of(points)
    group_count = len(groups.cell)
    precedes_misses = np.zeros(group_count, dtype=np.bool_)
    precedes_misses[:-1] = groups.right[1:] == 0
    precedes_misses[start[1:] - 1] = False
    all_hits = groups.right == groups.size
    deciding = np.flatnonzero(~(all_hits | precedes_misses))
    bound = quotient(*_touching_lines(points, minorant, deciding))
    place = np.searchsorted(deciding, start)  # (L + 1,)
    for low, high in pairwise(place.tolist()):
        bound[low:high] = np.minimum.accumulate(bound[low:high][::-1])[::-1]

    # For each group: the deciding group at or after it, and the one before that, if they are in its cell.
    is_deciding = np.zeros(group_count, dtype=np.int64)
    is_deciding[deciding] = 1
    following = np.cumsum(is_deciding) - is_deciding
    width = np.diff(start)
    none_after = following >= np.repeat(place[1:], width)
    none_before = following <= np.repeat(place[:-1], width)
    padded = np.concatenate([[0.0], bound, [0.0]])
    least = np.where(none_after, extremes[1], padded[following + 1])
    before = np.where(none_before, extremes[0], padded[following])
    own = np.flatnonzero(all_hits & ~precedes_misses & (least != before))
    least[own] = np.minimum(least[own], quotient(*_touching_lines(points, minorant, own)))
    return least


def _touching_lines(points: CumulativePoints, minorant: Minorant, groups: IntArray) -> tuple[IntArray, IntArray]:
    """R_j - R_i and N_j - N_i for ascending groups j and the vertex i that attains T_j with w = 1: (m,) int64 each."""
    total, hits = points.total[groups + 1], points.hits[groups + 1]
    block_first = np.searchsorted(minorant.vertex, groups, side="right") - 1
    cell = np.searchsorted(points.start, groups, side="right") - 1
    moved = total + 1

    def above(segment: IntArray) -> BoolArray:
        """Whether (N_j + 1, R_j) lies above the line through a segment."""
        height = hits * minorant.width.take(segment)
        height -= moved * minorant.rise.take(segment)
        return height > minorant.offset.take(segment)

    touched = minorant.vertex[first_where_not(minorant.cell_vertex[cell], block_first, above)]
    return hits - points.hits[touched], total - points.total[touched]


def stable_cell_order(cell: IntArray) -> IntArray:
    """Return the rows in order of cell, and in their own order within a cell: (n,) int64."""
    # NumPy sorts narrow integers stably in linear time.
    return np.argsort(cell.astype(np.uint16) if cell.max(initial=0) < 2**16 else cell, kind="stable")


class ScorePlaces:
    """Rows sorted by (cell, score), searched for many points at once.

    Scores are replaced by their ranks, so that one binary search over cell * stride + rank covers cell and score.
    """

    def __init__(self, cell: IntArray, score: FloatArray) -> None:
        """Prepare the rows.

        Args:
            cell: (n,) int64, >= 0, ascending.
            score: (n,) float64, ascending within each cell; -inf is allowed.
        """
        self._cell = cell
        self._sorted_score = np.sort(score)
        self._stride = len(score) + 1
        self._keys = cell * self._stride + np.searchsorted(self._sorted_score, score, side="right")

    def last_not_above(self, cell: IntArray, score: FloatArray) -> tuple[IntArray, BoolArray]:
        """Return the last row of each point's cell whose score is not greater, and whether there is one.

        Args:
            score: (m,) float64, finite.

        Returns:
            (m,) int64 >= 0, and (m,) bool; a row that is not there is any number.
        """
        # Searches for values in order are several times as fast.
        by_score = np.argsort(score)
        cell = cell[by_score]
        rank = np.searchsorted(self._sorted_score, score[by_score], side="right")
        by_cell = stable_cell_order(cell)
        row = np.searchsorted(self._keys, (cell * self._stride + rank)[by_cell], side="right") - 1
        found = row >= 0
        np.maximum(row, 0, out=row)
        found[found] = self._cell[row[found]] == cell[by_cell[found]]
        order = by_score[by_cell]
        row_of_point, found_of_point = np.empty_like(row), np.empty_like(found)
        row_of_point[order], found_of_point[order] = row, found
        return row_of_point, found_of_point
