"""The exact K nearest training exemplars of many points (docs/PROCEDURE.md, section 1).

A fast float32 product selects candidates, float64 distances rank them, and a rounding-error bound certifies
that no discarded row belongs among the K; the few queries without a certificate are scanned again. So the
result is that of an exact search, whatever the batches, blocks and threads.

The error bound is that of a dot product in any order of summation: Higham (2002), *Accuracy and Stability of
Numerical Algorithms*, section 3.1.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from service.core.types import BoolArray, Float32Array, FloatArray, IntArray, Neighbours
from service.errors import InvalidInputError, NotReadyError

DEFAULT_MEMORY_BUDGET = 64 * 2**20

# Candidates kept beyond K: enough that the gap behind the K-th distance outgrows the error bound.
_MARGIN = 16
_FLOAT32_UNIT = 2.0**-24
# Above the rounding of a float64 distance (sum and root) by orders of magnitude, below any gap that matters.
_FLOAT64_SLACK = 1e-12
# What underflow can take from a squared distance, per dimension, in a support scaled to about 1.
_UNDERFLOW = 2.0**-120
# Squared norm, after scaling, beyond which float32 products could overflow.
_FAR = 2.0**100
# Blocks of float64 differences that stay in cache.
_PAIR_BYTES = 2 * 2**20
# Support rows in a block, at most: more would leave room for few queries beside them.
_SUPPORT_ROWS = 8192


def exact_neighbours(
    queries: Float32Array,
    support: Float32Array,
    neighbour_count: int,
    *,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> Neighbours:
    """The K nearest rows of the support for each query, by Euclidean distance, ties to the lower row.

    queries: (n, D) float32, finite. support: (N, D) float32, finite, the training exemplars in order of
    ingestion; may be a read-only memory map. neighbour_count: K, 1 <= K <= N. memory_budget: bytes of
    temporaries, about, beside the support and the result.
    Returns indices (n, K) and distances (n, K): the root of the float64 sum of squared float64 differences,
    the same bits for a pair whatever else is searched. Rows are ordered by (distance, index).
    Raises NotReadyError if N < K, InvalidInputError for any other violation.

    >>> support = np.array([[0, 0], [3, 4], [0, 0], [6, 8]], dtype=np.float32)
    >>> found = exact_neighbours(np.array([[3, 4]], dtype=np.float32), support, 3)
    >>> found.indices.tolist(), found.distances.tolist()
    ([[1, 0, 2]], [[0.0, 5.0, 5.0]])
    """
    return search(queries, support, neighbour_count, memory_budget=memory_budget)[0]


def merge_neighbours(first: Neighbours, second: Neighbours, *, neighbour_count: int | None = None) -> Neighbours:
    """The nearest of two lists for each point, by (distance, index), as when the support has grown.

    first, second: (n, K1) and (n, K2), found in disjoint parts of one numbering of the training exemplars;
    either may be shorter than K, or empty. neighbour_count: K, the wider of the two by default.
    Returns (n, min(K, K1 + K2)); equal to a search of both parts together if each list is that long or holds
    its whole part.
    Raises InvalidInputError if the lists differ in length or share an exemplar.
    """
    if first.indices.shape[0] != second.indices.shape[0]:
        raise InvalidInputError(
            f"expected two neighbour lists of the same points, got {first.indices.shape[0]} and "
            f"{second.indices.shape[0]} points; search the new exemplars for every point"
        )
    indices = np.concatenate((first.indices, second.indices), axis=1)
    distances = np.concatenate((first.distances, second.distances), axis=1)
    order = np.lexsort((indices, distances), axis=1)
    indices = np.take_along_axis(indices, order, axis=1)
    distances = np.take_along_axis(distances, order, axis=1)
    if np.any(indices[:, 1:] == indices[:, :-1]):
        raise InvalidInputError(
            "expected neighbour lists of disjoint parts of the support, got a training exemplar in both; "
            "merge each part once"
        )
    if neighbour_count is None:
        neighbour_count = max(first.indices.shape[1], second.indices.shape[1])
    return Neighbours(indices=indices[:, :neighbour_count].copy(), distances=distances[:, :neighbour_count].copy())


def search(
    queries: Float32Array, support: Float32Array, neighbour_count: int, *, memory_budget: int
) -> tuple[Neighbours, int]:
    """As `exact_neighbours`, with the number of queries that had no certificate and were scanned again."""
    _check_arguments(queries, support, neighbour_count)
    sizes = _BlockSizes.within(memory_budget, support, neighbour_count)
    _check_finite("support", support, sizes.support_rows)
    _check_finite("queries", queries, sizes.support_rows)
    # Plain views of memory maps.
    queries, support = np.asarray(queries), np.asarray(support)
    index = _Index.of(support, sizes)
    shape = (queries.shape[0], neighbour_count)
    found = Neighbours(indices=np.empty(shape, dtype=np.int64), distances=np.empty(shape))
    rescanned = 0
    with _full_precision_products():
        for part in _slices(queries.shape[0], sizes.query_rows):
            block = _QueryBlock.of(queries[part], index)
            nearest, certified = _nearest_candidates(block, index, neighbour_count)
            uncertain = np.flatnonzero(~certified)
            for group in _slices(uncertain.size, sizes.rescan_rows):
                rows = uncertain[group]
                exact = _nearest_in_reach(block, rows, nearest.distances[rows, -1], index, neighbour_count)
                nearest.indices[rows], nearest.distances[rows] = exact.indices, exact.distances
            found.indices[part], found.distances[part] = nearest.indices, nearest.distances
            rescanned += uncertain.size
    return found, rescanned


@dataclass(frozen=True, slots=True)
class _BlockSizes:
    """How many rows, or pairs of rows, are worked on at a time to stay within the memory budget."""

    support_rows: int
    query_rows: int
    rescan_rows: int
    pairs: int

    @classmethod
    def within(cls, memory_budget: int, support: Float32Array, neighbour_count: int) -> "_BlockSizes":
        quarter = memory_budget // 4
        total, dimension = support.shape
        support_rows = max(1, min(total, _SUPPORT_ROWS, quarter // (4 * dimension)))
        # A query takes its vector, its bounds on a support block, and row, bound and distance of candidates.
        query_bytes = 4 * dimension + 4 * support_rows + 64 * (neighbour_count + _MARGIN)
        return cls(
            support_rows=support_rows,
            query_rows=max(1, quarter // query_bytes),
            # A pair in reach takes a query, a row, a distance, and their copies while they are sorted.
            rescan_rows=max(1, quarter // (64 * support_rows)),
            pairs=max(1, min(quarter, _PAIR_BYTES) // (8 * dimension)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Index:
    """The support with a scale and a centre, in which float32 products neither overflow nor drown in a mean.

    With t and q the placed vectors of an exemplar and a query, D the dimension, u = 2**-24 and
    gamma = (D + 8) u / (1 - (D + 8) u), the float32 value of |t|^2 - 2 t.q differs from |t - q|^2 - |q|^2 of
    the scaled vectors by at most gamma (|t| + |q|)^2 <= 2 gamma (|t|^2 + |q|^2): D + 2 roundings of the
    product, three of placing, and some to spare. So with shrinkage = 1 - 2 gamma,

        shrinkage |t|^2 - 2 t.q + shrinkage |q|^2

    is a lower bound of the squared distance, up to underflow.

    vectors: (N, D) float32, as given. scale: a power of two. centre: (D,) float32, about the mean of the
    scaled support; any centre gives the same neighbours. shrunk_norms: (N,) float32, shrinkage |t|^2.
    """

    vectors: Float32Array
    sizes: _BlockSizes
    scale: np.float32
    centre: Float32Array
    shrinkage: float
    shrunk_norms: Float32Array

    @classmethod
    def of(cls, support: Float32Array, sizes: _BlockSizes) -> "_Index":
        total, dimension = support.shape
        peak, sums = 0.0, np.zeros(dimension)
        for part in _slices(total, sizes.support_rows):
            peak = max(peak, float(np.max(support[part])), -float(np.min(support[part])))
            sums += np.sum(support[part], axis=0, dtype=np.float64)
        # Beyond 126 the scale or its inverse would not be a normal float32.
        scale = 2.0 ** -int(np.clip(np.frexp(peak)[1], -126, 126))
        rounding = (dimension + 8) * _FLOAT32_UNIT
        index = cls(
            vectors=support,
            sizes=sizes,
            scale=np.float32(scale),
            centre=(sums / total * scale).astype(np.float32),
            shrinkage=1.0 - 2.0 * rounding / (1.0 - rounding),
            shrunk_norms=np.empty(total, dtype=np.float32),
        )
        for part in index.parts():
            index.shrunk_norms[part] = index.shrinkage * _squared_norms(index.place(support[part]))
        return index

    def parts(self) -> Iterator[slice]:
        return _slices(self.vectors.shape[0], self.sizes.support_rows)

    def place(self, vectors: Float32Array) -> Float32Array:
        placed: Float32Array = np.multiply(vectors, self.scale)
        placed -= self.centre
        return placed

    def bounds(self, placed: torch.Tensor, part: slice) -> torch.Tensor:
        """Lower bounds of squared distances, less what depends on the query alone: (B, S) float32."""
        exemplars = torch.from_numpy(self.place(self.vectors[part]))
        return torch.addmm(torch.from_numpy(self.shrunk_norms[part]), placed, exemplars.T, alpha=-2)

    def squared_reach(self, distances: FloatArray) -> FloatArray:
        """What a lower bound must exceed for the stored distance of its pair to exceed `distances`."""
        squared = np.square(distances * float(self.scale))
        return squared * (1.0 + _FLOAT64_SLACK) + self.centre.size * _UNDERFLOW

    def distances(self, queries: Float32Array, query_rows: IntArray, rows: IntArray) -> FloatArray:
        """Euclidean distance of each pair of a query and a support row: (M,) float64.

        The squares are summed by folding the vector in halves: elementwise additions, so that a pair has the
        same bits in any company and with any build of numpy, whose own sum promises no order.
        """
        distances = np.empty(rows.size)
        for part in _slices(rows.size, self.sizes.pairs):
            squares = self.vectors[rows[part]].astype(np.float64)  # (P, D)
            squares -= queries[query_rows[part]]
            np.square(squares, out=squares)
            width = squares.shape[1]
            while width > 1:
                half = (width + 1) // 2
                squares[:, : width - half] += squares[:, half:width]
                width = half
            np.sqrt(squares[:, 0], out=distances[part])
        return distances


@dataclass(frozen=True, slots=True, eq=False)
class _QueryBlock:
    """B queries: vectors (B, D) as given and as placed, and (B,) their part of the lower bounds."""

    vectors: Float32Array
    placed: torch.Tensor
    shrunk_norms: FloatArray

    @classmethod
    def of(cls, vectors: Float32Array, index: _Index) -> "_QueryBlock":
        with np.errstate(over="ignore"):
            placed = index.place(vectors)
        shrunk_norms = index.shrinkage * _squared_norms(placed)
        # A query too far from the support for float32 gets a bound below everything, and so a full scan.
        far = ~(shrunk_norms <= _FAR)
        placed[far] = 0.0
        shrunk_norms[far] = -np.finfo(np.float64).max
        return cls(vectors=vectors, placed=torch.from_numpy(placed), shrunk_norms=shrunk_norms)


def _nearest_candidates(block: _QueryBlock, index: _Index, neighbour_count: int) -> tuple[Neighbours, BoolArray]:
    """The K nearest of K + margin candidates, and (B,) whether these are certain to be the K nearest."""
    query_count, total = block.vectors.shape[0], index.vectors.shape[0]
    kept = min(total, neighbour_count + _MARGIN)
    bounds = torch.empty((query_count, 0))
    rows = torch.empty((query_count, 0), dtype=torch.int64)
    for part in index.parts():
        fresh = index.bounds(block.placed, part)
        fresh, columns = torch.topk(fresh, min(kept, fresh.shape[1]), dim=1, largest=False, sorted=False)
        bounds, rows = torch.cat((bounds, fresh), dim=1), torch.cat((rows, columns + part.start), dim=1)
        bounds, places = torch.topk(bounds, min(kept, bounds.shape[1]), dim=1, largest=False, sorted=False)
        rows = torch.gather(rows, 1, places)
    # In ascending order, a stable sort by distance leaves ties to the lower row.
    indices = np.sort(rows.numpy(), axis=1)  # (B, kept)
    owners = np.repeat(np.arange(query_count), kept)  # (B * kept,)
    distances = index.distances(block.vectors, owners, indices.ravel()).reshape(query_count, kept)
    order = np.argsort(distances, axis=1, kind="stable")[:, :neighbour_count]
    nearest = Neighbours(
        indices=np.take_along_axis(indices, order, axis=1),
        distances=np.take_along_axis(distances, order, axis=1),
    )
    if kept == total:
        return nearest, np.ones(query_count, dtype=np.bool_)
    # No discarded row has a bound below that of the worst one kept.
    least_discarded = bounds.amax(dim=1).numpy() + block.shrunk_norms
    return nearest, least_discarded > index.squared_reach(nearest.distances[:, -1])


def _nearest_in_reach(
    block: _QueryBlock, query_rows: IntArray, limits: FloatArray, index: _Index, neighbour_count: int
) -> Neighbours:
    """The K nearest of all support rows whose lower bounds do not rule them out.

    query_rows: (U,) rows of the block. limits: (U,) a distance that at least K support rows do not exceed.
    """
    vectors, placed = block.vectors[query_rows], block.placed[torch.from_numpy(query_rows)]
    reach = index.squared_reach(limits) - block.shrunk_norms[query_rows]
    # What is kept so far: pairs of a query and a support row, in order of (query, distance, row).
    owners, rows = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    distances = np.empty(0)
    for part in index.parts():
        in_reach = index.bounds(placed, part).numpy() <= reach[:, np.newaxis]  # (U, S)
        near_owners, columns = np.nonzero(in_reach)
        near_rows = columns + part.start
        near_distances = index.distances(vectors, near_owners, near_rows)
        owners = np.concatenate((owners, near_owners))
        rows = np.concatenate((rows, near_rows))
        distances = np.concatenate((distances, near_distances))
        order = np.lexsort((rows, distances, owners))
        ranks = np.arange(order.size) - np.searchsorted(owners[order], owners[order])
        order = order[ranks < neighbour_count]
        owners, rows, distances = owners[order], rows[order], distances[order]
    shape = (query_rows.size, neighbour_count)
    return Neighbours(indices=rows.reshape(shape), distances=distances.reshape(shape))


def _squared_norms(vectors: Float32Array) -> FloatArray:
    norms: FloatArray = np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64)
    return norms


def _slices(count: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


@contextmanager
def _full_precision_products() -> Iterator[None]:
    """Keep torch from forming float32 products in bfloat16, which the error bound does not cover."""
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(precision)


def _check_arguments(queries: Float32Array, support: Float32Array, neighbour_count: int) -> None:
    for name, vectors in (("queries", queries), ("support", support)):
        if vectors.ndim != 2 or vectors.shape[1] < 1 or vectors.dtype != np.float32:
            raise InvalidInputError(
                f"expected {name} of shape (rows, dimension) and dtype float32, got shape {vectors.shape} "
                f"and dtype {vectors.dtype}; convert them"
            )
    if queries.shape[1] != support.shape[1]:
        raise InvalidInputError(
            f"expected queries and support of one dimension, got {queries.shape[1]} and {support.shape[1]}; "
            "search with vectors of the network that made the support"
        )
    if neighbour_count < 1:
        raise InvalidInputError(f"expected a neighbour count of at least 1, got {neighbour_count}; ask for more")
    if support.shape[0] < neighbour_count:
        raise NotReadyError(
            f"expected at least {neighbour_count} training exemplars, one for each neighbour, "
            f"got {support.shape[0]}; ingest more or lower the neighbour count"
        )


def _check_finite(name: str, vectors: Float32Array, block_rows: int) -> None:
    for part in _slices(vectors.shape[0], block_rows):
        finite = np.isfinite(vectors[part])
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            raise InvalidInputError(
                f"expected finite {name}, got {vectors[part][row, column]} in row {part.start + row}, "
                f"column {column}; remove or repair the row"
            )
