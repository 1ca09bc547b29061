"""The localizer: psi = softmax(-dist(x, x_j) / eta_loc) over all points x_j of the vp split.

Source: Schmaltz & Rasooly (2022), the localizer of the Venn-ADMIT predictor, after Guan (2022).

The result of a point does not depend, to the last bit, on the other points it is computed with. Distances come from
matrix products ||x||^2 + ||x_j||^2 - 2 x.x_j, and a BLAS rounds a product differently for different shapes. Therefore
every product here has the same shape, a zero-padded tile of queries by a zero-padded tile of the support, with an inner
dimension short enough for one pass of the blocking of the BLAS, which otherwise changes with the number of threads. The
tiles of the support are reduced in a fixed order.

The products are float64, except those of category weights over a large support, which they dominate in cost: these are
float32 with float64 sums, unless some point is so far from a query that float32 would show (DECISIONS.md, 30), or the
BLAS rounds a row of a float32 product differently in different places (DECISIONS.md, 49).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from venn_admit.service.core.approximation.products import rows_are_alike
from venn_admit.service.core.memory import DEFAULT_MEMORY_BUDGET, block_rows, tile_rows
from venn_admit.service.core.types import BoolArray, Float32Array, FloatArray, IntArray
from venn_admit.service.errors import InvalidInputError

QUERY_TILE = 64
SUPPORT_TILE = 1024
INNER_TILE = 256  # no more than the inner block of OpenBLAS' kernels for processors with AVX
# Below this share of ||x||^2 + ||x_j||^2, a squared distance has lost about four of its sixteen digits to
# cancellation, or three of the seven of float32, and is computed from the difference of the vectors instead.
CANCELLATION_SHARE = {np.dtype(np.float64): 1e-4, np.dtype(np.float32): 1e-3}
# Up to this many rows of the support, category weights are worth float64 products.
FLOAT64_SUPPORT = 2**15
# Up to this distance, in units of eta_loc, float32 resolves distances well enough, and weights are normal numbers.
FLOAT32_REACH = 80.0
# If eta_loc lies between this number and its inverse, its squares are normal numbers in float32.
FLOAT32_ETA = 2.0**50

_COLUMNS = np.arange(SUPPORT_TILE)
_Real = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class _Tile:
    """Distances of `queries` (rows) to `support` (columns).

    Attributes:
        queries: The rows.
        support: The columns.
        distances: (QUERY_TILE, SUPPORT_TILE), overwritten by the next tile. Rows beyond `queries` hold no point;
            columns beyond `support` are at infinity, which is weight 0.
    """

    queries: slice
    support: slice
    distances: _Real


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
        queries: (m, D) float32.
        support: (n, D) float32, n >= 1, all of vp, sorted so that every category is contiguous; may be a memory map.
        window_low: (m,) int64, the first row of each window.
        window_high: (m,) int64, one past the last row; 0 <= low <= high <= n.
        eta_loc: > 0, finite, in the units of the vectors.
        memory_budget: In bytes.

    Returns:
        (m,) float64 in [0, 1]. It is exactly 1 for the whole support and 0 for an empty window, or for one so far away
        that its weights underflow, and it never falls as a window grows. It is independent, bit for bit, of the other
        queries and of the number of BLAS threads. Over more than FLOAT64_SUPPORT rows its relative error is that of
        float32 distances: about 1e-6, and 3e-5 at most in measurements.

    Raises:
        InvalidInputError: The arrays have other shapes or ranges.

    Examples:
        >>> vp = np.array([[0.0], [1.0], [2.0]], dtype=np.float32)
        >>> category_weight(vp[:1], vp, np.array([0]), np.array([2]), eta_loc=1.0).round(3)
        array([0.91])
    """
    _check_vectors(queries, support)
    _check_eta(eta_loc)
    _check_windows(window_low, window_high, len(queries), len(support))

    centre = _centre(support)
    if len(support) <= FLOAT64_SUPPORT or not (
        1 / FLOAT32_ETA <= eta_loc <= FLOAT32_ETA and _rows_are_alike(queries.shape[1], "float32")
    ):
        return _float64_weight(queries, support, centre, window_low, window_high, eta_loc, memory_budget)
    near = _reach(queries, support, centre) <= FLOAT32_REACH * eta_loc
    weight = np.empty(len(queries))
    for rows, weigh in ((near, _float32_weight), (~near, _float64_weight)):
        weight[rows] = weigh(
            queries[rows], support, centre, window_low[rows], window_high[rows], eta_loc, memory_budget
        )
    return weight


def _rows_are_alike(length: int, dtype: str) -> bool:
    """Whether the place of a query in its tile leaves the products of vectors of this length alone."""
    inner = length + 2  # the norms are part of the factors
    return all(
        rows_are_alike(dtype, QUERY_TILE, min(INNER_TILE, inner - start), SUPPORT_TILE)
        for start in range(0, inner, INNER_TILE)
    )


def _reach(queries: Float32Array, support: Float32Array, centre: FloatArray) -> FloatArray:
    """A distance that no support row exceeds from each query, (m,), by way of the centre; inf if float32 overflows."""
    centre32, farthest = centre.astype(np.float32), 0.0
    with np.errstate(over="ignore"):
        for start in range(0, len(support), SUPPORT_TILE):
            _, norms = _centred(support[start : start + SUPPORT_TILE], centre32, SUPPORT_TILE)
            farthest = max(farthest, float(norms.max()))
        norms = np.empty((len(queries), 1), np.float32)
        for start in range(0, len(queries), SUPPORT_TILE):
            part = queries[start : start + SUPPORT_TILE]
            norms[start : start + SUPPORT_TILE] = _centred(part, centre32, len(part))[1]
    return np.asarray(np.sqrt(norms[:, 0].astype(np.float64)) + np.sqrt(farthest))


def _float64_weight(
    queries: Float32Array,
    support: Float32Array,
    centre: FloatArray,
    window_low: IntArray,
    window_high: IntArray,
    eta_loc: float,
    memory_budget: int,
) -> FloatArray:
    nearest = np.full(len(queries), np.inf)
    whole, inside = np.zeros((2, len(queries)))
    for tile in _distance_tiles(queries, support, centre, memory_budget):
        rows, count = tile.queries, tile.queries.stop - tile.queries.start
        weights, shrink, nearest[rows] = _weigh(tile.distances, nearest[rows], eta_loc)
        whole[rows] = whole[rows] * shrink + weights.sum(axis=1)[:count]
        inside[rows] *= shrink
        _add_windows(inside[rows], tile, weights, window_low[rows], window_high[rows])
    return inside / whole


def _float32_weight(
    queries: Float32Array,
    support: Float32Array,
    centre: FloatArray,
    window_low: IntArray,
    window_high: IntArray,
    eta_loc: float,
    memory_budget: int,
) -> FloatArray:
    """As in float64, for distances so short that the weights need not be taken relative to the nearest point's."""
    whole, inside = np.zeros((2, len(queries)))
    for tile in _distance_tiles(queries, support, centre.astype(np.float32), memory_budget):
        rows, count = tile.queries, tile.queries.stop - tile.queries.start
        weights = np.divide(tile.distances, -eta_loc, out=tile.distances)
        np.exp(weights, out=weights)
        whole[rows] += weights.sum(axis=1)[:count]
        _add_windows(inside[rows], tile, weights, window_low[rows], window_high[rows])
    return inside / whole


def _add_windows(sums: FloatArray, tile: _Tile, weights: _Real, low: IntArray, high: IntArray) -> None:
    """Add to the sums of a tile's queries, in place, the weights of the columns in their windows."""
    low, high = low - tile.support.start, high - tile.support.start
    overlapping = np.flatnonzero((low < SUPPORT_TILE) & (high > 0))
    in_window = (low[overlapping, np.newaxis] <= _COLUMNS) & (high[overlapping, np.newaxis] > _COLUMNS)
    sums[overlapping] += (weights[overlapping] * in_window).sum(axis=1)


def localizer_logits(
    queries: Float32Array,
    support: Float32Array,
    support_knn_logits: FloatArray,
    eta_loc: float,
    *,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> FloatArray:
    """Return the localizer's own output, sum_j psi_j KNN(x_j), which approximates KNN(x).

    Args:
        queries: (m, D) float32.
        support: (n, D) float32, n >= 1, all of vp.
        support_knn_logits: (n, C) float64, KNN(x_j) of the support.
        eta_loc: > 0, finite, in the units of the vectors.
        memory_budget: In bytes.

    Returns:
        (m, C) float64, averages of the support's logits. They are independent, bit for bit, of the other queries and of
        the number of BLAS threads.

    Raises:
        InvalidInputError: The arrays have other shapes or ranges.
    """
    _check_vectors(queries, support)
    _check_eta(eta_loc)
    if support_knn_logits.ndim != 2 or len(support_knn_logits) != len(support):
        raise InvalidInputError(
            f"expected KNN logits (n, C) of the {len(support)} support exemplars, got shape "
            f"{support_knn_logits.shape}; pass the logits of the same exemplars"
        )

    nearest = np.full(len(queries), np.inf)
    whole = np.zeros(len(queries))
    weighted = np.zeros((len(queries), support_knn_logits.shape[1]))
    logits, part = np.empty((2, QUERY_TILE, support_knn_logits.shape[1]))
    for tile in _distance_tiles(queries, support, _centre(support), memory_budget):
        rows, count = tile.queries, tile.queries.stop - tile.queries.start
        weights, shrink, nearest[rows] = _weigh(tile.distances, nearest[rows], eta_loc)
        whole[rows] = whole[rows] * shrink + weights.sum(axis=1)[:count]
        _product(weights, _padded(support_knn_logits[tile.support], SUPPORT_TILE), logits, part)
        weighted[rows] = weighted[rows] * shrink[:, np.newaxis] + logits[:count]  # (rows, C)
    return weighted / whole[:, np.newaxis]  # (m, C)


def pairwise_distances(
    queries: Float32Array, support: Float32Array, *, memory_budget: int = DEFAULT_MEMORY_BUDGET
) -> FloatArray:
    """Return the Euclidean distances, not squared, of all queries to all support rows.

    Args:
        queries: (m, D) float32.
        support: (n, D) float32, n >= 1.
        memory_budget: In bytes, besides the result.

    Returns:
        (m, n) float64, in the units of the vectors; exactly 0 for equal vectors. The result alone takes 8 m n bytes:
        see `venn_admit.service.core.approximation.localizer_fit.localizer_rows`.

    Raises:
        InvalidInputError: The arrays have other shapes.
    """
    _check_vectors(queries, support)
    distances = np.empty((len(queries), len(support)))
    for tile in _distance_tiles(queries, support, _centre(support), memory_budget):
        rows, columns = tile.queries, tile.support
        distances[rows, columns] = tile.distances[: rows.stop - rows.start, : columns.stop - columns.start]
    return distances


def _weigh(distances: _Real, nearest: FloatArray, eta_loc: float) -> tuple[_Real, FloatArray, FloatArray]:
    """Turn distances, in place, into exp(-(distance - nearest so far) / eta_loc): the nearest point weighs 1.

    Args:
        distances: (QUERY_TILE, SUPPORT_TILE), overwritten.
        nearest: (rows,), the least distance in the tiles before, infinite at first.
        eta_loc: > 0.

    Returns:
        The weights, the factor (rows,) by which sums over the tiles before shrink, and the nearest distance (rows,)
        with this tile included.
    """
    count = len(nearest)
    updated = np.minimum(distances.min(axis=1), _padded(nearest, QUERY_TILE, fill=np.inf))  # (QUERY_TILE,)
    weights = np.subtract(updated[:, np.newaxis], distances, out=distances)
    with np.errstate(over="ignore"):  # to minus infinity, which is weight 0
        weights /= eta_loc
        shrink = np.exp((updated[:count] - nearest) / eta_loc)
    np.exp(weights, out=weights)
    return weights, shrink, updated[:count]


def _distance_tiles(queries: Float32Array, support: Float32Array, centre: _Real, memory_budget: int) -> Iterator[_Tile]:
    """Yield all tiles of the distance matrix; the tiles of one query come in the order of the support.

    Args:
        queries: (m, D) float32.
        support: (n, D) float32.
        centre: (D,), about the middle of the support; the distances are of its dtype.
        memory_budget: In bytes; it decides how many tiles of queries share the preparation of a tile of the support.
    """
    # Allocated once: fresh pages would cost as much as the arithmetic.
    squared, part = np.empty((2, QUERY_TILE, SUPPORT_TILE), centre.dtype)
    right = np.empty((support.shape[1] + 2, SUPPORT_TILE), centre.dtype)  # a BLAS is faster in this order
    share = CANCELLATION_SHARE[centre.dtype]
    panel_rows = block_rows(memory_budget, 8 * queries.shape[1] * QUERY_TILE) * QUERY_TILE
    for panel_start in range(0, len(queries), panel_rows):
        panel_stop = min(panel_start + panel_rows, len(queries))
        query_starts = range(panel_start, panel_stop, QUERY_TILE)
        panel_vectors, panel_norms = _centred(queries[panel_start:panel_stop], centre, len(query_starts) * QUERY_TILE)
        # The norms are part of the factors, so that their product is the squared distances.
        left = np.hstack((-2.0 * panel_vectors, panel_norms, np.ones_like(panel_norms)))
        for support_start in range(0, len(support), SUPPORT_TILE):
            columns = slice(support_start, min(support_start + SUPPORT_TILE, len(support)))
            tile_vectors, tile_norms = _centred(support[columns], centre, SUPPORT_TILE)
            np.concatenate((tile_vectors.T, np.ones_like(tile_norms.T), tile_norms.T), out=right)
            largest_norm = tile_norms.max()
            for query_start in query_starts:
                rows = slice(query_start, min(query_start + QUERY_TILE, len(queries)))
                in_panel = slice(query_start - panel_start, query_start - panel_start + QUERY_TILE)
                query_norms = panel_norms[in_panel]
                _product(left[in_panel], right, squared, part)
                squared[:, columns.stop - columns.start :] = np.inf
                # If the least is large enough, none has cancelled.
                if squared.min() < share * (query_norms.max() + largest_norm):
                    np.add(query_norms, tile_norms.T, out=part)
                    part *= share
                    _refine(squared, squared < part, queries[rows], support[columns])
                np.sqrt(squared, out=squared)
                yield _Tile(rows, columns, squared)


def _centred(vectors: Float32Array, centre: _Real, length: int) -> tuple[_Real, _Real]:
    """Vectors less the centre, filled up with zeros, (length, D), and their squared norms, (length, 1)."""
    centred = np.zeros((length, len(centre)), centre.dtype)
    np.subtract(vectors, centre, out=centred[: len(vectors)])
    return centred, np.square(centred).sum(axis=1, keepdims=True)


def _refine(squared: _Real, cancelled: BoolArray, queries: Float32Array, support: Float32Array) -> None:
    """Replace, in place, the squared distances lost to cancellation by those of the vectors' differences."""
    pair_rows, pair_columns = np.nonzero(cancelled[: len(queries), : len(support)])
    step = tile_rows(8 * queries.shape[1])
    for start in range(0, len(pair_rows), step):
        rows, columns = pair_rows[start : start + step], pair_columns[start : start + step]
        difference = queries[rows].astype(np.float64) - support[columns]  # (pairs, D)
        squared[rows, columns] = np.square(difference, out=difference).sum(axis=1)


def _product(left: _Real, right: _Real, out: _Real, part: _Real) -> None:
    """Write a matrix product into `out`, its inner dimension cut so that the number of BLAS threads does not show.

    Args:
        left: (b, D), a factor.
        right: (D, c), a factor.
        out: (b, c), overwritten.
        part: (b, c), overwritten.
    """
    np.matmul(left[:, :INNER_TILE], right[:INNER_TILE], out=out)
    for start in range(INNER_TILE, left.shape[1], INNER_TILE):
        out += np.matmul(left[:, start : start + INNER_TILE], right[start : start + INNER_TILE], out=part)


def _centre(support: Float32Array) -> FloatArray:
    """Mean (D,) of the support. Subtracting it leaves the distances alone, and less is lost to cancellation."""
    total = np.zeros(support.shape[1])
    for start in range(0, len(support), SUPPORT_TILE):
        total += support[start : start + SUPPORT_TILE].sum(axis=0, dtype=np.float64)
    return total / len(support)


def _padded(values: _Real, length: int, fill: float = 0.0) -> _Real:
    padded = np.full((length, *values.shape[1:]), fill, values.dtype)
    padded[: len(values)] = values
    return padded


def _check_vectors(queries: Float32Array, support: Float32Array) -> None:
    if queries.ndim != 2 or support.ndim != 2 or queries.shape[1] != support.shape[1]:
        raise InvalidInputError(
            f"expected queries (m, D) and support (n, D), got shapes {queries.shape} and {support.shape}; "
            "pass vectors of the same classifier"
        )
    if queries.dtype != np.float32 or support.dtype != np.float32:
        raise InvalidInputError(
            f"expected float32 vectors, got {queries.dtype} and {support.dtype}; pass them as they are stored"
        )
    if support.size == 0:
        raise InvalidInputError(
            f"expected at least one exemplar in split vp, got shape {support.shape}; ingest held-out data"
        )


def _check_eta(eta_loc: float) -> None:
    if not 0 < eta_loc < np.inf:
        raise InvalidInputError(f"expected eta_loc > 0 and finite, got {eta_loc}; fit the localizer again")


def _check_windows(low: IntArray, high: IntArray, query_count: int, support_count: int) -> None:
    if low.shape != (query_count,) or high.shape != (query_count,):
        raise InvalidInputError(
            f"expected a window for each of {query_count} queries, got shapes {low.shape} and {high.shape}; "
            "pass windows and queries of the same points"
        )
    outside = (low < 0) | (low > high) | (high > support_count)
    if outside.any():
        query = int(np.argmax(outside))
        raise InvalidInputError(
            f"expected windows 0 <= low <= high <= {support_count}, got [{low[query]}, {high[query]}) for "
            f"query {query}; pass windows of the support's rows"
        )
