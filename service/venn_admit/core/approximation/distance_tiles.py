"""Distances of queries to a support, a tile at a time, each the same to the last bit whatever it is computed with.

Distances come from matrix products ||x||^2 + ||x_j||^2 - 2 x.x_j, and a BLAS rounds a product differently for different
shapes. Therefore every product here has the same shape, a zero-padded tile of queries by a zero-padded tile of the
support, with an inner dimension short enough for one pass of the blocking of the BLAS, which otherwise changes with the
number of threads. A few queries may make a tile of fewer rows, if the BLAS, once tried, gives these the same bits.

Not every BLAS kernel gives a row of a matrix product the same bits wherever in the product it stands: OpenBLAS' float32
kernel for processors with AVX2 but no AVX-512 (`Haswell`, `Zen`) sums six rows in one order and the next six in
another. Its float64 kernels, and those for AVX-512, treat all rows alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from venn_admit.core.budget import BLOCK_SHARE, DEFAULT_MEMORY_BUDGET, block_rows, tile_rows
from venn_admit.core.types import BoolArray, Float32Array, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

QUERY_TILE = 64
SUPPORT_TILE = 1024
INNER_TILE = 256  # no more than the inner block of OpenBLAS' kernels for processors with AVX
# The tiles that a few queries make do with.
SMALL_QUERY_TILES = (8, 16, 32)
# Below this share of ||x||^2 + ||x_j||^2, a squared distance has lost about four of its sixteen digits to
# cancellation, or three of the seven of float32, and is computed from the difference of the vectors instead.
CANCELLATION_SHARE = {np.dtype(np.float64): 1e-4, np.dtype(np.float32): 1e-3}

Real = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class DistanceTile:
    """Distances of `queries` (rows) to `support` (columns).

    Attributes:
        distances: (rows of the tile, SUPPORT_TILE), overwritten by the next tile. Rows beyond `queries` hold no point;
            columns beyond `support` are at infinity.
    """

    queries: slice
    support: slice
    distances: Real


@dataclass(frozen=True, slots=True, eq=False)
class _SupportTile:
    """A tile of the support as the right factor of products.

    right: (D + 2, SUPPORT_TILE), centred vectors, ones, and squared norms. norms: (SUPPORT_TILE, 1).
    """

    rows: slice
    right: Real
    norms: Real
    largest_norm: float


class SupportTiles:
    """The support of distances, cut into tiles.

    Attributes:
        centre: (D,), about the middle of the support; the distances are of its dtype.
    """

    def __init__(self, support: Float32Array, centre: Real, *, most_bytes: int = 0) -> None:
        """Cut the support.

        Args:
            most_bytes: If the tiles take no more than these, they are prepared now and stay in memory; otherwise, every
                pass over them prepares them.
        """
        self.support = support
        self.centre = centre
        taken = len(self._starts()) * SUPPORT_TILE * (support.shape[1] + 3) * centre.itemsize
        self._prepared = (
            [self._prepare(start, self._room()) for start in self._starts()] if taken <= most_bytes else None
        )

    def read(self) -> Iterator[_SupportTile]:
        """Yield the tiles in order; each may be overwritten by the next."""
        if self._prepared is not None:
            yield from self._prepared
            return
        room = self._room()  # allocated once: fresh pages would cost as much as the arithmetic
        for start in self._starts():
            yield self._prepare(start, room)

    def largest_norm(self) -> float:
        """Return the largest squared distance of a row from the centre; inf if it overflows."""
        return max(tile.largest_norm for tile in self.read())

    def query_tile(self, count: int) -> int:
        """Return the fewest rows of a tile for `count` queries to which the BLAS gives the bits of a whole tile."""
        inner = self.support.shape[1] + 2  # the norms are part of the factors
        parts = {min(INNER_TILE, inner - start) for start in range(0, inner, INNER_TILE)}
        for fewer in SMALL_QUERY_TILES:
            if count <= fewer and all(
                first_rows_are_alike(self.centre.dtype.name, QUERY_TILE, fewer, part, SUPPORT_TILE) for part in parts
            ):
                return fewer
        return QUERY_TILE

    def _starts(self) -> range:
        return range(0, len(self.support), SUPPORT_TILE)

    def _room(self) -> Real:
        return np.empty((self.support.shape[1] + 2, SUPPORT_TILE), self.centre.dtype)  # a BLAS is faster in this order

    def _prepare(self, start: int, room: Real) -> _SupportTile:
        rows = slice(start, min(start + SUPPORT_TILE, len(self.support)))
        with np.errstate(over="ignore"):
            vectors, norms = centred(self.support[rows], self.centre, SUPPORT_TILE)
        np.concatenate((vectors.T, np.ones_like(norms.T), norms.T), out=room)
        return _SupportTile(rows, room, norms, float(norms.max()))


def distance_tiles(
    queries: Float32Array, tiles: SupportTiles, memory_budget: int, *, query_tile: int = QUERY_TILE
) -> Iterator[DistanceTile]:
    """Yield all tiles of the distance matrix; the tiles of one query come in the order of the support."""
    centre, tile = tiles.centre, query_tile
    squared, part = np.empty((2, tile, SUPPORT_TILE), centre.dtype)
    share = CANCELLATION_SHARE[centre.dtype]
    panel_rows = block_rows(memory_budget, 8 * queries.shape[1] * tile) * tile
    for panel_start in range(0, len(queries), panel_rows):
        panel_stop = min(panel_start + panel_rows, len(queries))
        query_starts = range(panel_start, panel_stop, tile)
        panel_vectors, panel_norms = centred(queries[panel_start:panel_stop], centre, len(query_starts) * tile)
        # The norms are part of the factors, so that their product is the squared distances.
        left = np.hstack((-2.0 * panel_vectors, panel_norms, np.ones_like(panel_norms)))
        for found in tiles.read():
            columns = found.rows
            for query_start in query_starts:
                rows = slice(query_start, min(query_start + tile, len(queries)))
                in_panel = slice(query_start - panel_start, query_start - panel_start + tile)
                query_norms = panel_norms[in_panel]
                tile_product(left[in_panel], found.right, squared, part)
                squared[:, columns.stop - columns.start :] = np.inf
                # If the least is large enough, none has cancelled.
                if squared.min() < share * (query_norms.max() + found.largest_norm):
                    np.add(query_norms, found.norms.T, out=part)
                    part *= share
                    _refine(squared, squared < part, queries[rows], tiles.support[columns])
                np.sqrt(squared, out=squared)
                yield DistanceTile(rows, columns, squared)


def pairwise_distances(
    queries: Float32Array, support: Float32Array, *, memory_budget: int = DEFAULT_MEMORY_BUDGET
) -> FloatArray:
    """Return the Euclidean distances, not squared, of all queries to all support rows.

    Returns:
        (m, n) float64, in the units of the vectors; exactly 0 for equal vectors. The result alone takes 8 m n bytes:
        see `venn_admit.core.approximation.fit.localizer_rows`.
    """
    check_vectors(queries, support)
    distances = np.empty((len(queries), len(support)))
    _fill(distances, queries, SupportTiles(support, centre_of(support)), memory_budget)
    return distances


def distance_blocks(
    queries: Float32Array, support: Float32Array, *, memory_budget: int
) -> Iterator[tuple[int, FloatArray]]:
    """Yield `pairwise_distances` in blocks of queries: the first query of each, and the distances.

    A block may be overwritten, and the next one overwrites it: fresh pages would cost as much as the arithmetic.
    """
    check_vectors(queries, support)
    tiles = SupportTiles(support, centre_of(support), most_bytes=memory_budget // BLOCK_SHARE)
    step = block_rows(memory_budget, 8 * len(support) * QUERY_TILE) * QUERY_TILE
    distances = np.empty((min(step, len(queries)), len(support)))
    for start in range(0, len(queries), step):
        block = queries[start : start + step]
        _fill(distances, block, tiles, memory_budget)
        yield start, distances[: len(block)]


def _fill(distances: FloatArray, queries: Float32Array, tiles: SupportTiles, memory_budget: int) -> None:
    for tile in distance_tiles(queries, tiles, memory_budget):
        rows, columns = tile.queries, tile.support
        distances[rows, columns] = tile.distances[: rows.stop - rows.start, : columns.stop - columns.start]


def centre_of(support: Float32Array) -> FloatArray:
    """Mean (D,) of the support. Subtracting it leaves the distances alone, and less is lost to cancellation."""
    total = np.zeros(support.shape[1])
    for start in range(0, len(support), SUPPORT_TILE):
        total += support[start : start + SUPPORT_TILE].sum(axis=0, dtype=np.float64)
    return total / len(support)


def centred(vectors: Float32Array, centre: Real, length: int) -> tuple[Real, Real]:
    """Vectors less the centre, filled up with zeros, (length, D), and their squared norms, (length, 1)."""
    filled = np.zeros((length, len(centre)), centre.dtype)
    np.subtract(vectors, centre, out=filled[: len(vectors)])
    return filled, np.square(filled).sum(axis=1, keepdims=True)


def _refine(squared: Real, cancelled: BoolArray, queries: Float32Array, support: Float32Array) -> None:
    """Replace, in place, the squared distances lost to cancellation by those of the vectors' differences."""
    pair_rows, pair_columns = np.nonzero(cancelled[: len(queries), : len(support)])
    step = tile_rows(8 * queries.shape[1])
    for start in range(0, len(pair_rows), step):
        rows, columns = pair_rows[start : start + step], pair_columns[start : start + step]
        difference = queries[rows].astype(np.float64) - support[columns]  # (pairs, D)
        squared[rows, columns] = np.square(difference, out=difference).sum(axis=1)


def tile_product(left: Real, right: Real, out: Real, part: Real) -> None:
    """Write a matrix product into `out`, its inner dimension cut so that the number of BLAS threads does not show.

    `part`, of the shape of `out`, is overwritten as well.
    """
    np.matmul(left[:, :INNER_TILE], right[:INNER_TILE], out=out)
    for start in range(INNER_TILE, left.shape[1], INNER_TILE):
        out += np.matmul(left[:, start : start + INNER_TILE], right[start : start + INNER_TILE], out=part)


def padded(values: Real, length: int, fill: float = 0.0) -> Real:
    """Return values (m, ...), m <= length, filled up to (length, ...)."""
    found = np.full((length, *values.shape[1:]), fill, values.dtype)
    found[: len(values)] = values
    return found


def check_vectors(queries: Float32Array, support: Float32Array) -> None:
    """Check that vectors can be compared, and that the support is not empty."""
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


def check_eta(eta_loc: float) -> None:
    """Check the localizer's parameter."""
    if not 0 < eta_loc < np.inf:
        raise InvalidInputError(f"expected eta_loc > 0 and finite, got {eta_loc}; fit the localizer again")


def check_windows(low: IntArray, high: IntArray, query_count: int, support_count: int) -> None:
    """Check that each query has a window of the support's rows."""
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


@cache
def rows_are_alike(dtype: str, rows: int, inner: int, columns: int) -> bool:
    """Return whether equal rows of a product of this shape come out equal, by one product of random numbers."""
    generator = np.random.default_rng(0)
    row = generator.standard_normal(inner).astype(dtype)
    right = generator.standard_normal((inner, columns)).astype(dtype)
    product = np.tile(row, (rows, 1)) @ right
    return bool((product == product[0]).all())


@cache
def first_rows_are_alike(dtype: str, rows: int, fewer: int, inner: int, columns: int) -> bool:
    """Return whether the first rows of a product come out the same without the others, by random numbers."""
    generator = np.random.default_rng(0)
    left = generator.standard_normal((rows, inner)).astype(dtype)
    right = generator.standard_normal((inner, columns)).astype(dtype)
    return bool(((left @ right)[:fewer] == left[:fewer] @ right).all())
