"""The localizer: psi = softmax(-dist(x, x_j) / eta_loc) over all points x_j of the vp split.

Source: Schmaltz & Rasooly (2022), the localizer of the Venn-ADMIT predictor, after Guan (2022).

The result of a point does not depend, to the last bit, on the other points it is computed with: see `distance_tiles`.
The tiles of the support are reduced in a fixed order.

The products are float64, except those of category weights over a large support, which they dominate in cost: these are
float32 with float64 sums, unless some point is so far from a query that float32 would show, or the
BLAS rounds a row of a float32 product differently in different places (DECISIONS.md, 30).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

import numpy as np

from venn_admit.core.approximation.distance_tiles import (
    INNER_TILE,
    QUERY_TILE,
    SUPPORT_TILE,
    DistanceTile,
    Real,
    SupportTiles,
    centre_of,
    centred,
    check_eta,
    check_vectors,
    check_windows,
    distance_tiles,
    padded,
    rows_are_alike,
    tile_product,
)
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.types import BoolArray, Float32Array, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

# Up to this many rows of the support, category weights are worth float64 products.
FLOAT64_SUPPORT = 2**15
# Up to this distance, in units of eta_loc, float32 resolves distances well enough, and weights are normal numbers.
FLOAT32_REACH = 80.0
# If eta_loc lies between this number and its inverse, its squares are normal numbers in float32.
FLOAT32_ETA = 2.0**50

# What prepared tiles of one precision may take of the memory budget.
TILES_SHARE = 3

# Queries (m, D) float32 and their windows, low and high (m,) int64, to the weights (m,) of their categories.
Weigh = Callable[[Float32Array, IntArray, IntArray], FloatArray]

_COLUMNS = np.arange(SUPPORT_TILE)


def category_weight(
    queries: Float32Array,
    support: Float32Array,
    window_low: IntArray,
    window_high: IntArray,
    eta_loc: float,
    *,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> FloatArray:
    """Return the localizer's weight of each query's category, psi' = the sum of psi over a window of support rows.

    Args:
        support: (n, D) float32, n >= 1, all of vp, sorted so that every category is contiguous; may be a memory map.

    Returns:
        (m,) float64 in [0, 1]. It is exactly 1 for the whole support and 0 for an empty window, or for one so far away
        that its weights underflow, and it never falls as a window grows. It is independent, bit for bit, of the other
        queries and of the number of BLAS threads. Over more than FLOAT64_SUPPORT rows its relative error is that of
        float32 distances: about 1e-6, and 3e-5 at most in measurements.

    Examples:
        >>> vp = np.array([[0.0], [1.0], [2.0]], dtype=np.float32)
        >>> category_weight(vp[:1], vp, np.array([0]), np.array([2]), eta_loc=1.0).round(3)
        array([0.91])
    """
    check_vectors(queries, support)
    return LocalizerSupport(support, eta_loc, memory_budget=memory_budget).category_weight(
        queries, window_low, window_high
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Windows:
    """Categories of m queries: in each of their windows of the support, k sets of rows that count.

    Attributes:
        low: (m,) int64.
        high: (m,) int64.
        members: k, each (n,) bool; None for all rows of the support.
    """

    low: IntArray
    high: IntArray
    members: tuple[BoolArray | None, ...]

    def take(self, rows: BoolArray | slice) -> "_Windows":
        return _Windows(self.low[rows], self.high[rows], self.members)

    def add(self, sums: FloatArray, tile: DistanceTile, weights: Real) -> None:
        """Add to the sums (k, m) of a tile's queries, in place, the weights of the columns that count."""
        low, high = self.low - tile.support.start, self.high - tile.support.start
        overlapping = np.flatnonzero((low < SUPPORT_TILE) & (high > 0))
        in_window = (low[overlapping, np.newaxis] <= _COLUMNS) & (high[overlapping, np.newaxis] > _COLUMNS)
        inside = weights[overlapping] * in_window
        for of_members, members in zip(sums, self.members, strict=True):
            if members is None:
                of_members[overlapping] += inside.sum(axis=1)
            else:
                counted = members[tile.support]
                of_members[overlapping] += (inside[:, : len(counted)] * counted).sum(axis=1)


class LocalizerSupport:
    """All of vp, ready to weigh categories as `category_weight` does; threads may share it."""

    def __init__(
        self,
        support: Float32Array,
        eta_loc: float,
        *,
        keep_tiles: bool = False,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> None:
        """Prepare the support.

        Args:
            support: As in `category_weight`.
            keep_tiles: Whether the tiles of the support stay in memory, if those of one precision take no more than a
                third of the budget, which makes passes for few queries several times as fast. Those of both
                precisions take half of it at most.
        """
        check_vectors(support, support)
        check_eta(eta_loc)
        self._support = support
        self._eta_loc = eta_loc
        self._memory_budget = memory_budget
        self._centre = centre_of(support)
        in_float32 = len(support) > FLOAT64_SUPPORT and (
            1 / FLOAT32_ETA <= eta_loc <= FLOAT32_ETA and _rows_are_alike(support.shape[1], "float32")
        )
        self._keep_tiles = keep_tiles
        self._tiles = self._cut(self._centre.astype(np.float32) if in_float32 else self._centre)
        self._float64_tiles = None if in_float32 else self._tiles
        self._preparing = Lock()
        self._farthest = math.sqrt(self._tiles.largest_norm()) if in_float32 else math.inf

    def category_weight(
        self, queries: Float32Array, window_low: IntArray, window_high: IntArray, *, left_out: IntArray | None = None
    ) -> FloatArray:
        """Return the weight of each query's category; results and errors are those of the function of this name.

        Args:
            left_out: (m,) int64, a row of the support for each query that it is weighed without, n >= 2; None for
                none.
        """
        weight: FloatArray = self._weights(queries, _Windows(window_low, window_high, (None,)), left_out)[0]
        return weight

    def weights_of_members(
        self, queries: Float32Array, window_low: IntArray, window_high: IntArray, members: BoolArray
    ) -> FloatArray:
        """Return the weights of k categories within each query's window, from one pass.

        Args:
            members: (k, n) bool, the rows of the support that count in each.

        Returns:
            (k, m) float64. What one of them weighs does not depend on the others.
        """
        return self._weights(queries, _Windows(window_low, window_high, tuple(members)), None)

    def _weights(self, queries: Float32Array, windows: _Windows, left_out: IntArray | None) -> FloatArray:
        check_vectors(queries, self._support)
        check_windows(windows.low, windows.high, len(queries), len(self._support))
        out = np.full(len(queries), -1) if left_out is None else left_out
        near = self._reach(queries) <= FLOAT32_REACH * self._eta_loc
        weight = np.empty((len(windows.members), len(queries)))
        for rows in (near, ~near):
            if rows.any():
                weight[:, rows] = self._in_one_precision(
                    queries[rows], windows.take(rows), out[rows], are_near=rows is near
                )
        return weight

    def _in_one_precision(
        self, queries: Float32Array, windows: _Windows, left_out: IntArray, *, are_near: bool
    ) -> FloatArray:
        """Near queries take float32; their weights need not be taken relative to the nearest point's."""
        tiles = self._tiles if are_near else self._tiles_for_far()
        nearest = np.full(len(queries), np.inf)
        whole, inside = np.zeros(len(queries)), np.zeros((len(windows.members), len(queries)))
        for tile in distance_tiles(queries, tiles, self._memory_budget, query_tile=tiles.query_tile(len(queries))):
            rows, count = tile.queries, tile.queries.stop - tile.queries.start
            _leave_out(tile, left_out[rows])
            if are_near:
                weights = np.divide(tile.distances, -self._eta_loc, out=tile.distances)
                np.exp(weights, out=weights)
            else:
                weights, shrink, nearest[rows] = _weigh(tile.distances, nearest[rows], self._eta_loc)
                whole[rows] *= shrink
                inside[:, rows] *= shrink
            whole[rows] += weights.sum(axis=1)[:count]
            windows.take(rows).add(inside[:, rows], tile, weights)
        return inside / whole

    def _tiles_for_far(self) -> SupportTiles:
        """The tiles in float64, which are cut when the first query needs them."""
        with self._preparing:
            if self._float64_tiles is None:
                self._float64_tiles = self._cut(self._centre)
            return self._float64_tiles

    def _cut(self, centre: Real) -> SupportTiles:
        kept = self._memory_budget // TILES_SHARE if self._keep_tiles else 0
        return SupportTiles(self._support, centre, most_bytes=kept)

    def _reach(self, queries: Float32Array) -> FloatArray:
        """A distance that no support row exceeds from each query, (m,), by way of the centre; inf for float64 only."""
        centre, norms = self._tiles.centre, np.full((len(queries), 1), np.inf, np.float32)
        with np.errstate(over="ignore"):
            for start in range(0, len(queries) if math.isfinite(self._farthest) else 0, SUPPORT_TILE):
                part = queries[start : start + SUPPORT_TILE]
                norms[start : start + SUPPORT_TILE] = centred(part, centre, len(part))[1]
        return np.asarray(np.sqrt(norms[:, 0].astype(np.float64)) + self._farthest)


def _rows_are_alike(length: int, dtype: str) -> bool:
    """Whether the place of a query in its tile leaves the products of vectors of this length alone."""
    inner = length + 2  # the norms are part of the factors
    return all(
        rows_are_alike(dtype, QUERY_TILE, min(INNER_TILE, inner - start), SUPPORT_TILE)
        for start in range(0, inner, INNER_TILE)
    )


def _leave_out(tile: DistanceTile, left_out: IntArray) -> None:
    """Move the row that each query leaves out, if the tile holds it, to infinity; -1 stands for no row."""
    column = left_out - tile.support.start
    held = np.flatnonzero((left_out >= 0) & (column >= 0) & (column < SUPPORT_TILE))
    tile.distances[held, column[held]] = np.inf


def localizer_logits(
    queries: Float32Array,
    support: Float32Array,
    support_knn_logits: FloatArray,
    eta_loc: float,
    *,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> FloatArray:
    """Return the localizer's own output, sum_j psi_j KNN(x_j), which approximates KNN(x).

    Returns:
        (m, C) float64, averages of the support's logits. They are independent, bit for bit, of the other queries and of
        the number of BLAS threads.
    """
    check_vectors(queries, support)
    check_eta(eta_loc)
    if support_knn_logits.ndim != 2 or len(support_knn_logits) != len(support):
        raise InvalidInputError(
            f"expected KNN logits (n, C) of the {len(support)} support exemplars, got shape "
            f"{support_knn_logits.shape}; pass the logits of the same exemplars"
        )

    nearest = np.full(len(queries), np.inf)
    whole = np.zeros(len(queries))
    weighted = np.zeros((len(queries), support_knn_logits.shape[1]))
    logits, part = np.empty((2, QUERY_TILE, support_knn_logits.shape[1]))
    for tile in distance_tiles(queries, SupportTiles(support, centre_of(support)), memory_budget):
        rows, count = tile.queries, tile.queries.stop - tile.queries.start
        weights, shrink, nearest[rows] = _weigh(tile.distances, nearest[rows], eta_loc)
        whole[rows] = whole[rows] * shrink + weights.sum(axis=1)[:count]
        tile_product(weights, padded(support_knn_logits[tile.support], SUPPORT_TILE), logits, part)
        weighted[rows] = weighted[rows] * shrink[:, np.newaxis] + logits[:count]  # (rows, C)
    return weighted / whole[:, np.newaxis]  # (m, C)


def _weigh(distances: Real, nearest: FloatArray, eta_loc: float) -> tuple[Real, FloatArray, FloatArray]:
    """Turn distances, in place, into exp(-(distance - nearest so far) / eta_loc): the nearest point weighs 1.

    Returns:
        The weights, the factor (rows,) by which sums over the tiles before shrink, and the nearest distance (rows,)
        with this tile included.
    """
    count = len(nearest)
    updated = np.minimum(distances.min(axis=1), padded(nearest, len(distances), fill=np.inf))  # (rows of the tile,)
    weights = np.subtract(updated[:, np.newaxis], distances, out=distances)
    with np.errstate(over="ignore"):  # to minus infinity, which is weight 0
        weights /= eta_loc
        shrink = np.exp((updated[:count] - nearest) / eta_loc)
    np.exp(weights, out=weights)
    return weights, shrink, updated[:count]
