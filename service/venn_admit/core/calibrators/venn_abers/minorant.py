"""Greatest convex minorants of the cumulative points of a calibration, and lines from a point that touch them.

Isotonic regression is the slope of the greatest convex minorant of the points (number of observations so far, number of
ones among them), in order of the score: Barlow et al. (1972), *Statistical Inference under Order Restrictions*, theorem
1.1. All coordinates are whole numbers, and slopes are compared by products of them, so that nothing here is rounded.

The points of several cells stand in one array, where the last point of a cell is the first of the next.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from venn_admit.core.types import BoolArray, IntArray

# A pass over all points is worth its cost while it removes at least this share of them.
_WORTHWHILE = 1 / 16


@dataclass(frozen=True, slots=True, eq=False)
class CumulativePoints:
    """Cumulative counts over the groups of equal score of one or more cells.

    Attributes:
        total: (G + 1,) int64, strictly ascending from 0: the observations of the first g groups.
        hits: (G + 1,) int64, those of them that count as one.
        start: (L + 1,) int64, ascending: the point at which each of L cells starts, and at last G.
    """

    total: IntArray
    hits: IntArray
    start: IntArray

    @classmethod
    def of(cls, group_size: IntArray, group_hits: IntArray, start: IntArray) -> "CumulativePoints":
        """Sum up groups.

        Args:
            group_size: (G,) int64, >= 1.
            group_hits: (G,) int64, at most the size.
            start: (L + 1,) int64, as the attribute; no cell is empty.
        """
        return cls(
            total=np.concatenate([[0], np.cumsum(group_size, dtype=np.int64)]),
            hits=np.concatenate([[0], np.cumsum(group_hits, dtype=np.int64)]),
            start=start,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Minorant:
    """The greatest convex minorant of the points of every cell.

    Attributes:
        vertex: (V,) int64, the points that are its vertices, ascending. The ends of cells are among them.
        cell_vertex: (L + 1,) int64, where in `vertex` each cell starts, and at last V - 1.
        width: (V - 1,) int64, > 0, the observations between a vertex and the next.
        rise: (V - 1,) int64, the ones among them.
        offset: (V - 1,) int64, hits * width - total * rise at the vertex, which is the same all along its segment.
    """

    vertex: IntArray
    cell_vertex: IntArray
    width: IntArray
    rise: IntArray
    offset: IntArray

    @classmethod
    def of(cls, points: CumulativePoints) -> "Minorant":
        """Find the vertices.

        Args:
            points: The points of one or more cells.
        """
        # Cell by cell the points are raised by a slope that is steeper by 2. That changes no minorant of a cell, and
        # makes the minorant of all points that of each cell in turn, because slopes within a cell are in [0, 1].
        steepness = np.repeat(2 * np.arange(len(points.start) - 1), np.diff(points.start))  # (G,)
        raised = np.concatenate([[0], np.cumsum(np.diff(points.hits) + steepness * np.diff(points.total))])
        vertex = _convex_vertices(points.total, raised)
        total, hits = points.total[vertex], points.hits[vertex]
        width, rise = np.diff(total), np.diff(hits)
        return cls(
            vertex=vertex,
            cell_vertex=np.searchsorted(vertex, points.start),
            width=width,
            rise=rise,
            offset=hits[:-1] * width - total[:-1] * rise,
        )


def first_where_not(low: IntArray, high: IntArray, holds: Callable[[IntArray], BoolArray]) -> IntArray:
    """Return the first place in each range [low, high) where a condition fails, or the end of the range: (m,) int64.

    Args:
        high: (m,) int64, >= low.
        holds: Takes one place for each of the m ranges and says whether the condition holds there. In each range, it
            holds up to some place and fails from there on. What it says of the end of a range is ignored.
    """
    for _ in range(int((high - low).max(initial=0)).bit_length()):
        middle = (low + high) >> 1
        beyond = holds(middle)
        beyond &= middle < high
        low = np.where(beyond, middle + 1, low)
        high = np.where(beyond, high, middle)
    return low


def _convex_vertices(x: IntArray, y: IntArray) -> IntArray:
    """The vertices of the lower convex hull of points with x strictly ascending, (V,) int64; no three on one line."""
    kept = np.arange(len(x))
    while True:
        width, rise = np.diff(x[kept]), np.diff(y[kept])
        # A point on or above a line between two others is no vertex, so that all such points may go at once.
        convex = np.ones(len(kept), dtype=np.bool_)
        np.less(rise[:-1] * width[1:], rise[1:] * width[:-1], out=convex[1:-1])
        removed = len(kept) - np.count_nonzero(convex)
        kept = kept[convex]
        if not removed:
            return kept
        if removed < _WORTHWHILE * len(kept):
            return kept[_scan(x[kept].tolist(), y[kept].tolist())]


def _scan(x: list[int], y: list[int]) -> list[int]:
    """Andrew's monotone chain, point by point."""
    chain: list[int] = []
    for point in range(len(x)):
        while len(chain) > 1:
            before, last = chain[-2], chain[-1]
            if (y[last] - y[before]) * (x[point] - x[last]) < (y[point] - y[last]) * (x[last] - x[before]):
                break
            chain.pop()
        chain.append(point)
    return chain
