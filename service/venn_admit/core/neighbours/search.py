"""The exact K nearest training exemplars of many points (docs/PROCEDURE.md, section 1).

A fast product of rounded vectors bounds distances from below and selects candidates; float64 distances rank them; and
the least bound of a discarded row certifies that no such row belongs among the K. The few queries without a certificate
are scanned again. The result is therefore that of an exact search, whatever the batches, blocks, threads and processor.
"""

from collections.abc import Callable

import numpy as np
import torch

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.neighbours.bounds import RoundedQueries, slices
from venn_admit.core.neighbours.candidates import EXTRA_CANDIDATES, Candidates, ListSizes, list_candidates
from venn_admit.core.neighbours.distances import first_of_each, none_found
from venn_admit.core.neighbours.index import NeighbourIndex, check_finite
from venn_admit.core.types import BoolArray, Float32Array, FloatArray, IntArray, Neighbours
from venn_admit.errors import InvalidInputError, NotReadyError

# Lists candidates of queries that are given rounded and as they are, by a sort of its own.
ListCandidates = Callable[[RoundedQueries, Float32Array], Candidates]


def exact_neighbours(
    queries: Float32Array, support: Float32Array, neighbour_count: int, *, memory_budget: int = DEFAULT_MEMORY_BUDGET
) -> Neighbours:
    """Return the K nearest rows of the support for each query, by Euclidean distance; ties go to the lower row.

    Args:
        memory_budget: Approximate size in bytes of temporaries, besides the support and the result.

    Returns:
        Indices (n, K) int64 and distances (n, K) float64, ordered by (distance, index). A distance is the root of the
        float64 sum of squared float64 differences, with the same bits for a pair whatever else is searched.

    Raises:
        NotReadyError: There are fewer than K training exemplars.

    Examples:
        >>> support = np.array([[0, 0], [3, 4], [0, 0], [6, 8]], dtype=np.float32)
        >>> found = exact_neighbours(np.array([[3, 4]], dtype=np.float32), support, 3)
        >>> found.indices.tolist(), found.distances.tolist()
        ([[1, 0, 2]], [[0.0, 5.0, 5.0]])
    """
    check_arguments(queries, support, neighbour_count)
    return search(queries, NeighbourIndex.of(support), neighbour_count, memory_budget=memory_budget)[0]


def merge_neighbours(first: Neighbours, second: Neighbours, *, neighbour_count: int | None = None) -> Neighbours:
    """Return the nearest of two lists for each point, by (distance, index), as needed when the support has grown.

    Args:
        first: (n, K1), found in one part of a numbering of the training exemplars; may be shorter than K, or empty.
        second: (n, K2), found in another, disjoint part of the same numbering, in the same form.
        neighbour_count: K; by default the larger of K1 and K2.

    Returns:
        (n, min(K, K1 + K2)). It equals a search of both parts together if each list is K long or holds its whole part.
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
    queries: Float32Array,
    index: NeighbourIndex,
    neighbour_count: int,
    *,
    memory_budget: int,
    list_on_device: ListCandidates | None = None,
) -> tuple[Neighbours, int]:
    """Return the result of `exact_neighbours`, and the number of queries that were scanned again.

    Args:
        list_on_device: What lists candidates; None: `list_candidates`. Whatever it lists, the result is the same as
            long as its limits hold.
    """
    check_finite("queries", queries)
    queries = np.asarray(queries)  # A plain view of a memory map.
    sizes = ListSizes.within(memory_budget, index, neighbour_count + EXTRA_CANDIDATES)
    shape = (len(queries), neighbour_count)
    found = Neighbours(indices=np.empty(shape, dtype=np.int64), distances=np.empty(shape))
    rescanned = 0
    for part in slices(len(queries), sizes.query_rows):
        block = queries[part]
        rounded = index.selecting.round_queries(block)
        candidates = (
            list_candidates(rounded, index, sizes) if list_on_device is None else list_on_device(rounded, block)
        )
        nearest, certified = _nearest_candidates(block, rounded, candidates, index, neighbour_count)
        again = np.flatnonzero(~certified)
        if again.size:
            exact = _nearest_in_reach(block[again], nearest.distances[again, -1], index, memory_budget, shape[1])
            nearest.indices[again], nearest.distances[again] = exact.indices, exact.distances
        found.indices[part], found.distances[part] = nearest.indices, nearest.distances
        rescanned += again.size
    return found, rescanned


def _nearest_candidates(
    queries: Float32Array, rounded: RoundedQueries, candidates: Candidates, index: NeighbourIndex, neighbour_count: int
) -> tuple[Neighbours, BoolArray]:
    """The K nearest of the candidates, and (B,) whether these are certainly the K nearest of all."""
    first = candidates.ranks < neighbour_count
    distances = np.full(first.size, np.inf)
    distances[first] = index.distances(queries, candidates.owners[first], candidates.rows[first])
    near = ~rounded.far
    limits = np.full(len(queries), np.inf)
    limits[near] = distances[first].reshape(-1, neighbour_count).max(axis=1)
    # The distances of the first K rule out most of the rest.
    reach = index.selecting.reach(limits, rounded.errors)
    rest = ~first & (candidates.bounds <= reach[candidates.owners])
    distances[rest] = index.distances(queries, candidates.owners[rest], candidates.rows[rest])

    nearest = none_found(len(queries), neighbour_count)
    measured = first | rest
    nearest.indices[near], nearest.distances[near] = first_of_each(
        candidates.owners[measured], candidates.rows[measured], distances[measured], neighbour_count
    )
    certified = candidates.limits >= index.selecting.reach(nearest.distances[:, -1], rounded.errors)
    return nearest, certified & near


def _nearest_in_reach(
    queries: Float32Array, limits: FloatArray, index: NeighbourIndex, memory_budget: int, neighbour_count: int
) -> Neighbours:
    """The K nearest of all support rows; limits: (U,), distances that at least K rows do not exceed."""
    bounds, quarter = index.certain, memory_budget // 4
    support_rows = max(1, min(len(index.vectors), quarter // (4 * bounds.width)))
    # A pair in reach takes a query, a row, a distance, and their copies while they are sorted.
    query_rows = max(1, quarter // (64 * (support_rows + neighbour_count)))
    rounded = bounds.round_queries(queries)
    reach = bounds.reach(limits, rounded.errors)
    reach[rounded.far] = np.inf
    nearest = none_found(len(queries), neighbour_count)
    block = torch.empty((support_rows, bounds.width))
    for support_part in slices(len(index.vectors), support_rows):
        exemplars = block[: support_part.stop - support_part.start]
        bounds.round_support(index.vectors[support_part], exemplars)
        for part in slices(len(queries), query_rows):
            products = torch.empty((part.stop - part.start, len(exemplars)))
            bounds.product(rounded.factor[part], exemplars, out=products)
            owners, columns = np.nonzero(products.numpy() <= reach[part, np.newaxis])
            rows = columns + support_part.start
            distances = index.distances(queries[part], owners, rows)
            nearest.indices[part], nearest.distances[part] = first_of_each(
                np.concatenate((np.repeat(np.arange(len(products)), neighbour_count), owners)),
                np.concatenate((nearest.indices[part].ravel(), rows)),
                np.concatenate((nearest.distances[part].ravel(), distances)),
                neighbour_count,
            )
    return nearest


def check_arguments(queries: Float32Array, support: Float32Array, neighbour_count: int) -> None:
    """Raise an error unless a search can take these arrays."""
    for name, vectors in (("queries", queries), ("support", support)):
        if vectors.ndim != 2 or vectors.shape[1] < 1 or vectors.dtype != np.float32:
            raise InvalidInputError(
                f"expected {name} of shape (rows, dimension) and dtype float32, got shape {vectors.shape} "
                f"and dtype {vectors.dtype}; convert the array"
            )
    if queries.shape[1] != support.shape[1]:
        raise InvalidInputError(
            f"expected queries and support of the same dimension, got {queries.shape[1]} and {support.shape[1]}; "
            "search with vectors of the network that made the support"
        )
    if neighbour_count < 1:
        raise InvalidInputError(f"expected a neighbour count of at least 1, got {neighbour_count}; choose K >= 1")
    if support.shape[0] < neighbour_count:
        raise NotReadyError(
            f"expected at least {neighbour_count} training exemplars, one for each neighbour, "
            f"got {support.shape[0]}; ingest more or lower the neighbour count"
        )


def neighbours_without(
    queries: Float32Array,
    support: Float32Array,
    neighbour_count: int,
    left_out: IntArray,
    *,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> Neighbours:
    """Return the K nearest rows of the support that are not left out, for each query.

    At most m of the K + m nearest rows are left out, and the first K of the others are those that a search without
    them would find, bit for bit.

    Args:
        neighbour_count: K, 1 <= K <= N - m.
        left_out: (m,) int64, distinct rows of the support.

    Returns:
        Indices (n, K) int64, rows of the support with all its exemplars, and distances (n, K) float64.

    Raises:
        NotReadyError: Fewer than K training exemplars would remain.

    Examples:
        >>> support = np.array([[0, 0], [3, 4], [0, 0], [6, 8]], dtype=np.float32)
        >>> found = neighbours_without(np.array([[0, 0]], dtype=np.float32), support, 2, np.array([0]))
        >>> found.indices.tolist(), found.distances.tolist()
        ([[2, 1]], [[0.0, 5.0]])
    """
    remaining = len(support) - len(left_out)
    if remaining < neighbour_count:
        raise NotReadyError(
            f"{remaining} training exemplars would remain, expected at least K = {neighbour_count}: leave out fewer"
        )
    found = exact_neighbours(queries, support, neighbour_count + len(left_out), memory_budget=memory_budget)
    kept = ~np.isin(found.indices, left_out)  # (n, K + m)
    kept &= np.cumsum(kept, axis=1) <= neighbour_count
    shape = (len(queries), neighbour_count)
    return Neighbours(indices=found.indices[kept].reshape(shape), distances=found.distances[kept].reshape(shape))
