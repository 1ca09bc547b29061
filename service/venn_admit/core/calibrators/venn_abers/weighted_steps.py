"""Venn-Abers probabilities of scored points that each weigh differently (docs/PROCEDURE.md, section 9).

With the formula of `steps`, p0 of a point of weight w whose score reaches group k is the slope of the line that touches
both the greatest convex minorant from below, at i, and the points from k on, moved to the right by w, at j. That j is a
vertex of the lower hull of the points from k on. Along this hull, from k to the right, the line touches beyond a vertex
c with an edge of slope s = dR / dN to the next vertex if and only if w is below

    W_c = ((R_c - R_i) dN - (N_c - N_i) dR) / dR,   i the vertex of the minorant at which a line of slope s touches it

W falls along a hull. So j is the first vertex with W_j <= w, and i follows by bisection. The hulls of all k form a
tree, in which each point leads to the next vertex of its hull; jumps of 1, 2, 4, ... vertices make a search in it
logarithmic.

W and the comparisons with w are rounded, the rest is exact. Where rounding decides, either choice gives the same slope
to the last few bits. The result of a point is the same whatever the batch.
"""

from dataclasses import dataclass

import numpy as np

from venn_admit.core.calibrators.venn_abers.minorant import CumulativePoints, Minorant, first_where_not
from venn_admit.core.calibrators.venn_abers.steps import ScoreGroups
from venn_admit.core.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class WeightedLower:
    """What p0 at any weight needs of the groups.

    Attributes:
        cell_first: (G + 1,) int64, the vertex at which the cell of each point starts; the last point of a cell, which
            is the first of the next, belongs to the cell that it ends.
        block_first: (G + 1,) int64, the vertex before each point.
        stop: (G + 1,) float64, >= 0, W.
        jumps: (levels, G + 1) int64, the vertex 2**level steps on; the last vertex of a hull leads to itself.
    """

    points: CumulativePoints
    minorant: Minorant
    cell_first: IntArray
    block_first: IntArray
    stop: FloatArray
    jumps: IntArray

    @classmethod
    def of(cls, groups: ScoreGroups) -> "WeightedLower":
        """Prepare the groups: O(n log n), one pass of it point by point."""
        points = CumulativePoints.of(groups.size, groups.right, groups.start)
        minorant = Minorant.of(points)
        cell_first = np.concatenate([[0], np.repeat(minorant.cell_vertex[:-1], np.diff(points.start))])
        block_first = np.concatenate([[0], np.repeat(np.arange(len(minorant.width)), np.diff(minorant.vertex))])
        following, longest = _next_vertices(points)
        jumps = [following]
        for _ in range(longest.bit_length() - 1):
            jumps.append(jumps[-1][jumps[-1]])
        stop = _stopping_weights(points, minorant, cell_first, block_first, following)
        return cls(points, minorant, cell_first, block_first, stop, np.stack(jumps))

    def lines(self, point: IntArray, weight: FloatArray) -> tuple[IntArray, IntArray]:
        """Return R_j - R_i and N_j - N_i of the lines that give p0; their p0 is the one by the other plus w.

        Args:
            point: (m,) int64 in [1, G], the number of the last group, counted from 1 over all cells, of the point's
                cell whose score is not greater.
            weight: (m,) float64, > 0, finite.

        Returns:
            Two arrays (m,) int64.
        """
        right_end = point
        for jump in self.jumps[::-1]:
            ahead = jump[right_end]
            right_end = np.where(self.stop[ahead] > weight, ahead, right_end)
        right_end = np.where(self.stop[right_end] > weight, self.jumps[0][right_end], right_end)
        total, hits = self.points.total[right_end], self.points.hits[right_end]
        minorant = self.minorant

        def above(segment: IntArray) -> BoolArray:
            """Whether (N_j + w, R_j) lies above the line through a segment."""
            width, rise = minorant.width[segment], minorant.rise[segment]
            with np.errstate(over="ignore"):  # a weight beyond all bounds
                found: BoolArray = hits * width - total * rise - minorant.offset[segment] > weight * rise
            return found

        left_vertex = first_where_not(self.cell_first[right_end], self.block_first[right_end], above)
        left_end = minorant.vertex[left_vertex]
        return hits - self.points.hits[left_end], total - self.points.total[left_end]


def _next_vertices(points: CumulativePoints) -> tuple[IntArray, int]:
    """The next vertex of the lower hull of the points from each point to the end of its cell, and the longest hull."""
    total, hits = points.total.tolist(), points.hits.tolist()
    following = list(range(len(total)))
    edges = [0] * len(total)
    ends = set(points.start.tolist())
    for point in range(len(total) - 1, 0, -1):
        if point in ends:
            continue
        ahead = point + 1
        while (beyond := following[ahead]) != ahead:
            rise, width = hits[ahead] - hits[point], total[ahead] - total[point]
            if rise * (total[beyond] - total[ahead]) < (hits[beyond] - hits[ahead]) * width:
                break
            ahead = beyond
        following[point] = ahead
        edges[point] = edges[ahead] + 1
    return np.array(following), max(1, *edges)


def _stopping_weights(
    points: CumulativePoints, minorant: Minorant, cell_first: IntArray, block_first: IntArray, following: IntArray
) -> FloatArray:
    """W of each point, (G + 1,) float64; 0 for the end of a hull, and for the points up to the first hit of a cell."""
    width = points.total[following] - points.total
    rise = points.hits[following] - points.hits

    def flatter(segment: IntArray) -> BoolArray:
        return minorant.rise[segment] * width < rise * minorant.width[segment]

    touched = minorant.vertex[first_where_not(cell_first, block_first, flatter)]
    height = (points.hits - points.hits[touched]) * width - (points.total - points.total[touched]) * rise
    stop = np.where(height > 0, np.inf, 0.0)
    np.divide(height, rise, out=stop, where=(height > 0) & (rise > 0))
    return stop
