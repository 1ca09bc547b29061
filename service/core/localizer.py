"""The localizer: psi = softmax(-dist(x, x_j) / eta_loc) over all points x_j of the vp split.

Source: Schmaltz & Rasooly (2022), the localizer of the Venn-ADMIT predictor, after Guan (2022).

A point's result does not depend, to the last bit, on which other points it is computed with. Distances come
from float64 matrix products ||x||^2 + ||x_j||^2 - 2 x.x_j, and a BLAS rounds a product differently for
different shapes: so every product here has one shape, a zero-padded tile of queries by a zero-padded tile of
the support, with an inner dimension short enough for one pass of the BLAS' blocking, which otherwise
changes with the number of threads. The tiles of the support are reduced in a fixed order.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from service.core.types import BoolArray, Float32Array, FloatArray, IntArray
from service.errors import InvalidInputError

QUERY_TILE = 64
SUPPORT_TILE = 1024
INNER_TILE = 256  # no more than the inner block of OpenBLAS' kernels for processors with AVX
PANEL_BYTES = 32 * 2**20
DIFFERENCE_BYTES = 16 * 2**20
# Below this share of ||x||^2 + ||x_j||^2 a squared distance has lost about four of its sixteen digits to
# cancellation, and is taken from the difference of the vectors instead.
CANCELLATION_SHARE = 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class _Tile:
    """Distances of `queries` (rows) to `support` (columns).

    distances: (QUERY_TILE, SUPPORT_TILE) float64; rows beyond `queries` hold no point, columns beyond
    `support` are at infinity, which is weight 0. The next tile overwrites them.
    """

    queries: slice
    support: slice
    distances: FloatArray


def category_weight(
    queries: Float32Array,
    support: Float32Array,
    window_low: IntArray,
    window_high: IntArray,
    eta_loc: float,
) -> FloatArray:
    """The localizer's weight of each query's category, psi' = the sum of psi over a window of support rows.

    queries: (m, D) float32. support: (n, D) float32, n >= 1, all of vp, sorted so that every category is
    contiguous; may be a memory map. window_low, window_high: (m,) int64, rows low <= j < high of the
    support; 0 <= low <= high <= n. eta_loc: > 0, finite, in the units of the vectors.

    Returns (m,) float64 in [0, 1]: exactly 1 for the whole support, 0 for an empty window or one so far away
    that its weights underflow, and never falling as a window grows. Independent, bit for bit, of the other
    queries and of the number of BLAS threads. Raises InvalidInputError for other shapes or ranges.

    >>> vp = np.array([[0.0], [1.0], [2.0]], dtype=np.float32)
    >>> category_weight(vp[:1], vp, np.array([0]), np.array([2]), eta_loc=1.0).round(3)
    array([0.91])
    """
    _check_vectors(queries, support)
    _check_eta(eta_loc)
    _check_windows(window_low, window_high, len(queries), len(support))

    nearest = np.full(len(queries), np.inf)
    whole = np.zeros(len(queries))
    inside = np.zeros(len(queries))
    columns = np.arange(SUPPORT_TILE)
    for tile in _distance_tiles(queries, support):
        rows, count = tile.queries, tile.queries.stop - tile.queries.start
        weights, shrink, nearest[rows] = _weigh(tile.distances, nearest[rows], eta_loc)
        whole[rows] = whole[rows] * shrink + weights.sum(axis=1)[:count]
        inside[rows] *= shrink
        low, high = window_low[rows] - tile.support.start, window_high[rows] - tile.support.start
        overlapping = np.flatnonzero((low < SUPPORT_TILE) & (high > 0))
        in_window = (low[overlapping, np.newaxis] <= columns) & (columns < high[overlapping, np.newaxis])
        inside[rows.start + overlapping] += (weights[overlapping] * in_window).sum(axis=1)
    return inside / whole


def localizer_logits(
    queries: Float32Array, support: Float32Array, support_knn_logits: FloatArray, eta_loc: float
) -> FloatArray:
    """The localizer's own output, sum_j psi_j KNN(x_j), which approximates KNN(x).

    queries: (m, D) float32. support: (n, D) float32, n >= 1, all of vp. support_knn_logits: (n, C) float64,
    KNN(x_j) of the support. eta_loc: > 0, finite, in the units of the vectors.

    Returns (m, C) float64, averages of the support's logits. Independent, bit for bit, of the other queries
    and of the number of BLAS threads. Raises InvalidInputError for other shapes or ranges.
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
    for tile in _distance_tiles(queries, support):
        rows, count = tile.queries, tile.queries.stop - tile.queries.start
        weights, shrink, nearest[rows] = _weigh(tile.distances, nearest[rows], eta_loc)
        whole[rows] = whole[rows] * shrink + weights.sum(axis=1)[:count]
        _product(weights, _padded(support_knn_logits[tile.support], SUPPORT_TILE), logits, part)
        weighted[rows] = weighted[rows] * shrink[:, np.newaxis] + logits[:count]  # (rows, C)
    return weighted / whole[:, np.newaxis]  # (m, C)


def pairwise_distances(queries: Float32Array, support: Float32Array) -> FloatArray:
    """Euclidean distances, not squared, of all queries to all support rows.

    queries: (m, D) float32. support: (n, D) float32, n >= 1. Returns (m, n) float64, in the units of the
    vectors; exactly 0 for equal vectors. The result alone takes 8 m n bytes: see
    `service.core.localizer_training.localizer_rows`. Raises InvalidInputError for other shapes.
    """
    _check_vectors(queries, support)
    distances = np.empty((len(queries), len(support)))
    for tile in _distance_tiles(queries, support):
        rows, columns = tile.queries, tile.support
        distances[rows, columns] = tile.distances[: rows.stop - rows.start, : columns.stop - columns.start]
    return distances


def _weigh(distances: FloatArray, nearest: FloatArray, eta_loc: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """exp(-(distance - nearest so far) / eta_loc), in place of the distances, so that the nearest point weighs 1.

    distances: (QUERY_TILE, SUPPORT_TILE). nearest: (rows,), the least distance of the tiles before, infinite at
    first. Returns the weights, the factor (rows,) by which sums over the tiles before shrink, and the nearest
    distance (rows,) with this tile included.
    """
    count = len(nearest)
    updated = np.minimum(distances.min(axis=1), _padded(nearest, QUERY_TILE, fill=np.inf))  # (QUERY_TILE,)
    weights = np.subtract(updated[:, np.newaxis], distances, out=distances)
    with np.errstate(over="ignore"):  # to minus infinity, which is weight 0
        weights /= eta_loc
        shrink = np.exp((updated[:count] - nearest) / eta_loc)
    np.exp(weights, out=weights)
    return weights, shrink, updated[:count]


def _distance_tiles(queries: Float32Array, support: Float32Array) -> Iterator[_Tile]:
    """All tiles of the distance matrix; those of one query in the order of the support."""
    centre = _centre(support)
    squared, work = np.empty((2, QUERY_TILE, SUPPORT_TILE))  # reused: fresh pages cost as much as the arithmetic
    panel_rows = max(1, PANEL_BYTES // (8 * queries.shape[1] * QUERY_TILE)) * QUERY_TILE
    for panel_start in range(0, len(queries), panel_rows):
        panel_stop = min(panel_start + panel_rows, len(queries))
        query_starts = range(panel_start, panel_stop, QUERY_TILE)
        panel = _padded(queries[panel_start:panel_stop] - centre, len(query_starts) * QUERY_TILE)
        panel_norms = np.square(panel).sum(axis=1)
        panel *= -2.0
        for support_start in range(0, len(support), SUPPORT_TILE):
            columns = slice(support_start, min(support_start + SUPPORT_TILE, len(support)))
            tile_support = _padded(support[columns] - centre, SUPPORT_TILE)
            support_norms = np.square(tile_support).sum(axis=1)
            for query_start in query_starts:
                rows = slice(query_start, min(query_start + QUERY_TILE, len(queries)))
                in_panel = slice(query_start - panel_start, query_start - panel_start + QUERY_TILE)
                query_norms = panel_norms[in_panel]
                _product(panel[in_panel], tile_support.T, squared, work)
                squared += np.add(query_norms[:, np.newaxis], support_norms, out=work)
                # Where the least is large enough, none has cancelled.
                if squared.min() < CANCELLATION_SHARE * (query_norms.max() + support_norms.max()):
                    work *= CANCELLATION_SHARE
                    _refine(squared, squared < work, queries[rows], support[columns])
                np.sqrt(squared, out=squared)
                squared[:, columns.stop - columns.start :] = np.inf
                yield _Tile(rows, columns, squared)


def _refine(squared: FloatArray, cancelled: BoolArray, queries: Float32Array, support: Float32Array) -> None:
    """Replace the cancelled squared distances by those of the vectors' differences, in place."""
    pair_rows, pair_columns = np.nonzero(cancelled[: len(queries), : len(support)])
    step = max(1, DIFFERENCE_BYTES // (8 * queries.shape[1]))
    for start in range(0, len(pair_rows), step):
        rows, columns = pair_rows[start : start + step], pair_columns[start : start + step]
        difference = queries[rows].astype(np.float64) - support[columns]  # (pairs, D)
        squared[rows, columns] = np.square(difference, out=difference).sum(axis=1)


def _product(left: FloatArray, right: FloatArray, out: FloatArray, part: FloatArray) -> None:
    """Matrix product into `out`, the inner dimension cut so that the number of BLAS threads does not show in it.

    part: of out's shape, overwritten.
    """
    np.matmul(left[:, :INNER_TILE], right[:INNER_TILE], out=out)
    for start in range(INNER_TILE, left.shape[1], INNER_TILE):
        out += np.matmul(left[:, start : start + INNER_TILE], right[start : start + INNER_TILE], out=part)


def _centre(support: Float32Array) -> FloatArray:
    """Mean (D,) of the support: distances do not change, and less is lost to cancellation."""
    total = np.zeros(support.shape[1])
    for start in range(0, len(support), SUPPORT_TILE):
        total += support[start : start + SUPPORT_TILE].sum(axis=0, dtype=np.float64)
    return total / len(support)


def _padded(values: FloatArray, length: int, fill: float = 0.0) -> FloatArray:
    padded = np.full((length, *values.shape[1:]), fill)
    padded[: len(values)] = values
    return padded


def _check_vectors(queries: Float32Array, support: Float32Array) -> None:
    if queries.ndim != 2 or support.ndim != 2 or queries.shape[1] != support.shape[1]:
        raise InvalidInputError(
            f"expected queries (m, D) and support (n, D), got shapes {queries.shape} and {support.shape}; "
            "pass vectors of one classifier"
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
        raise InvalidInputError(f"expected eta_loc > 0 and finite, got {eta_loc}; fit the localizer")


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
