"""The exact K nearest training exemplars of a few points at a time, without torch, which takes seconds to import.

One float32 product of all pairs bounds their distances; float64 distances rank what the bounds leave. Queries that they
do not separate, because everything lies far from the origin or too many exemplars lie at one distance, are given back
without a list. `search` is for many queries: it rounds and centres the support, which costs more than a few save.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from venn_admit.core.budget import tile_rows
from venn_admit.core.neighbours import leading
from venn_admit.core.neighbours.distances import first_of_each, none_found, pair_distances
from venn_admit.core.neighbours.leading import FLOAT64_SLACK, LeadingComponents
from venn_admit.core.types import BoolArray, Float32Array, FloatArray, IntArray, Neighbours

# How many queries, at most, are worth a pass of their own.
MOST_QUERIES = 64
# Rows of the support multiplied at a time, and more for few queries, up to this many pairs.
_BLOCK_ROWS, _BLOCK_PAIRS = 4096, 1 << 16
# A query with more candidates than this is given back.
_MOST_CANDIDATES = 4096
# A block's rows are of this many groups at least, and of this many for each neighbour: a group's are as far apart. The
# number is odd, since rows of a file may repeat after an even one.
_GROUPS, _GROUPS_EACH = 251, 7
# If more exemplars are within the limits than this many for each neighbour, all of them are looked at for lower ones.
_CROWD = 4
# The unit of float32 arithmetic in any mode of rounding.
_UNIT = 2.0**-23
# Underflow removes at most this much of a bound, per dimension.
_UNDERFLOW = 2.0**-120
_GREATEST = np.finfo(np.float32).max
# Beyond this squared norm, products could overflow.
_FAR = 2.0**100


@dataclass(frozen=True, slots=True, eq=False)
class PassNeighbours:
    """What one pass found.

    Attributes:
        found: (n, K), of the queries that are certain; other rows mean nothing.
        certain: (n,) bool.
    """

    found: Neighbours
    certain: BoolArray


class OnePassSupport:
    """A support, (N, D), with its centre and the norms of its rows; threads may share it.

    Where `leading` shows that only some rows can be near a query, only these are read.

    Let c be about the middle of the support, q' = q - c, rounded, h = |t - c|^2 / 2 of an exemplar t, rounded, p the
    float32 product q'.t, summed in any order, and gamma = n u / (1 - n u) with n = D + 10 and u = 2**-23. Then h - p as
    computed differs from |q - t|^2 / 2, less a number that is the same for all exemplars, by e = gamma (h + |q'| |t|)
    at most (Higham 2002, *Accuracy and Stability of Numerical Algorithms*, section 3.1); n leaves room for the rounding
    of e and of sums with it. So an exemplar whose h - p - e exceeds the K-th least h - p + e is farther than K others.
    The exemplars of a block have their e by groups, with the greatest h and |t| of each group.
    """

    def __init__(self, vectors: Float32Array, neighbour_count: int) -> None:
        """Read the norms, and prepare what spares reading most vectors again, where that pays.

        Args:
            vectors: (N, D) float32, finite, N >= K; may be a read-only memory map.
            neighbour_count: K of most searches, by which is chosen what pays; results do not depend on it.
        """
        self._vectors = vectors = np.asarray(vectors)  # a plain view
        self._centre = vectors[:: -(-len(vectors) // _BLOCK_ROWS)].mean(axis=0, dtype=np.float64)
        norms, distances = np.empty((2, len(vectors)))
        for start in range(0, len(vectors), _BLOCK_ROWS):
            block = slice(start, start + _BLOCK_ROWS)
            norms[block] = _norms(vectors[block])
            distances[block] = _norms(vectors[block] - self._centre)
        self._farthest = float(norms.max(initial=0.0))
        with np.errstate(over="ignore"):
            self._norms = norms.astype(np.float32)
            self._halves = (np.square(distances) / 2).astype(np.float32)
        rounding = (vectors.shape[1] + 10) * _UNIT
        self._gamma = rounding / (1.0 - rounding)
        self._leading: LeadingComponents | None = None
        if np.square(2 * self._farthest) < _FAR:
            self._leading = LeadingComponents.if_they_pay(vectors, self._centre, neighbour_count)

    @staticmethod
    def row_bytes(dimension: int) -> int:
        """The most that a row takes, the vector included."""
        return 4 * (dimension + 2 + (leading.COLUMNS if dimension >= leading.LEAST_DIMENSION else 0))

    def nearest(self, queries: Float32Array, neighbour_count: int) -> PassNeighbours:
        """Return the K nearest of each query, with the bits that `exact_neighbours` gives them.

        Args:
            queries: (n, D) float32, finite, n <= MOST_QUERIES: what is computed on the way takes memory for each.
        """
        certain = np.square(_norms(queries) + self._farthest) < _FAR
        found = none_found(len(queries), neighbour_count)
        for asked, rows in self._among(queries, np.flatnonzero(certain), neighbour_count):
            lists, separated = self._search(queries[asked], rows, neighbour_count)
            certain[asked] = separated
            found.indices[asked[separated]], found.distances[asked[separated]] = lists.indices, lists.distances
        return PassNeighbours(found, certain)

    def _among(
        self, queries: Float32Array, asked: IntArray, neighbour_count: int
    ) -> Iterator[tuple[IntArray, IntArray | None]]:
        """Queries that are searched together, and the rows among which their nearest are; None: all rows."""
        if self._leading is not None and 0 < asked.size <= self._leading.together:
            left = self._leading.left(queries[asked], neighbour_count)
            yield from ((one, rows) for one, rows in zip(asked[:, np.newaxis], left, strict=True) if rows is not None)
            asked = asked[[rows is None for rows in left]]
        if asked.size:
            yield asked, None

    def _search(
        self, queries: Float32Array, rows: IntArray | None, neighbour_count: int
    ) -> tuple[Neighbours, BoolArray]:
        """The lists of the queries that are separated, and whether each is; rows: ascending, those to search."""
        centred = (queries - self._centre).astype(np.float32)
        norms = _norms(centred)
        by_norm = (self._gamma * norms).astype(np.float32)
        # Half of a squared distance is a bound and this much.
        beyond_bound = np.square(norms) / 2 + centred @ self._centre
        lists = _Lists(beyond_bound, queries.shape[1], neighbour_count)
        count = len(self._vectors if rows is None else rows)
        n, step = len(queries), max(_BLOCK_ROWS, _BLOCK_PAIRS // len(queries))
        if rows is not None:  # whose vectors are copied
            step = min(step, tile_rows(4 * queries.shape[1]))
        groups = max(_GROUPS, _GROUPS_EACH * neighbour_count) | 1
        # Filled again with each block, since new memory takes as long as what is written to it.
        pairs = np.empty((min(step, count) + groups, n), np.float32)
        for start in range(0, count, step):
            block = slice(start, start + step) if rows is None else rows[start : start + step]
            vectors, halves = self._vectors[block], self._halves[block]
            # Few queries are multiplied faster in this order.
            bounds = np.matmul(vectors, centred.T, out=pairs[: len(vectors)])
            np.subtract(halves[:, np.newaxis], bounds, out=bounds)
            width = groups if len(vectors) > 2 * groups else len(vectors)  # else a group is a row
            grouped = pairs[: -(-len(vectors) // width) * width].reshape(-1, width, n)
            pairs[len(vectors) : grouped.shape[0] * width] = np.inf
            errors = by_norm * _greatest(self._norms[block], width)
            errors += np.float32(self._gamma) * _greatest(halves, width)
            lists.add(grouped, errors, start)
        lists.prune()
        found = lists.rows if rows is None else rows[lists.rows]
        distances = pair_distances(self._vectors, found, queries, lists.owners)
        return Neighbours(*first_of_each(lists.owners, found, distances, neighbour_count)), lists.separated


class _Lists:
    """The candidates of n queries while blocks of the support are added: pairs of owners and rows, (M,) int64.

    separated: (n,) bool, whether there were never too many, so that they are all there.
    """

    def __init__(self, beyond_bound: FloatArray, dimension: int, neighbour_count: int) -> None:
        n = len(beyond_bound)
        self._beyond_bound = beyond_bound
        self._underflow = dimension * _UNDERFLOW
        self._least = np.full((n, neighbour_count), np.inf, np.float32)  # of the upper bounds
        self._limits = np.full(n, np.inf)
        self._bounds = np.empty(0, np.float32)
        self.owners: IntArray = np.empty(0, np.int64)
        self.rows: IntArray = np.empty(0, np.int64)
        self.separated = np.ones(n, bool)

    def add(self, bounds: Float32Array, errors: Float32Array, first_row: int) -> None:
        """Add a block that begins at a row of the support.

        Args:
            bounds: (depth, groups, n), of its rows, one group after another in turn; inf where there is no row.
            errors: (groups, n), by how much the bounds of a group may be off.
        """
        before = self._least.copy()
        self._lower_limits((bounds.min(axis=0) + errors).T)
        places = self._within_limits(bounds, errors)
        if len(places) > _CROWD * before.size:  # the nearest may be of few groups
            self._least = before
            self._lower_limits((bounds + errors).reshape(-1, errors.shape[1]).T)
            places = self._within_limits(bounds, errors)
        rows, owners = np.divmod(places, errors.shape[1])
        self.owners = np.concatenate((self.owners, owners))
        self.rows = np.concatenate((self.rows, rows + first_row))
        self._bounds = np.concatenate((self._bounds, bounds.take(places) - errors.take(places % errors.size)))
        if len(self.owners) > _MOST_CANDIDATES:
            self.prune()

    def prune(self) -> None:
        """Drop pairs beyond the limits, and all pairs of queries that still have too many."""
        near = self._bounds <= self._limits[self.owners]
        counts = np.bincount(self.owners[near], minlength=len(self.separated))
        self.separated &= counts <= _MOST_CANDIDATES
        kept = near & self.separated[self.owners]
        self.owners, self.rows, self._bounds = self.owners[kept], self.rows[kept], self._bounds[kept]

    def _within_limits(self, bounds: Float32Array, errors: Float32Array) -> IntArray:
        """The places of the bounds of a block that may be within the limits."""
        at_most = np.nextafter(np.minimum(self._limits, _GREATEST).astype(np.float32), _GREATEST)
        at_most[~self.separated] = -np.inf
        return np.flatnonzero(bounds <= at_most + errors)

    def _lower_limits(self, upper: Float32Array) -> None:
        """Take upper bounds of a block into account."""
        k = self._least.shape[1]
        nearer = np.flatnonzero(upper.min(axis=1) < self._least.max(axis=1))
        least = np.concatenate((self._least[nearer], upper[nearer]), axis=1)
        self._least[nearer] = np.partition(least, k - 1, axis=1)[:, :k]
        farthest = self._least[nearer].max(axis=1).astype(np.float64)
        slack = FLOAT64_SLACK * np.maximum(farthest + self._beyond_bound[nearer], 0.0)
        self._limits[nearer] = farthest + slack + self._underflow


def _greatest(values: Float32Array, groups: int) -> Float32Array:
    """Return the greatest of each group of values that are not negative, (groups, 1)."""
    filled = np.zeros(-(-len(values) // groups) * groups, np.float32)
    filled[: len(values)] = values
    return np.asarray(filled.reshape(-1, groups, 1).max(axis=0))


def _norms(vectors: Float32Array | FloatArray) -> FloatArray:
    """(n,) of n vectors, in float64."""
    return np.asarray(np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1)))
