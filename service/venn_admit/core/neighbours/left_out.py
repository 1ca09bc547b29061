"""The nearest training exemplars if some of them were left out, without a copy of the others' vectors."""

import numpy as np

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.neighbours.search import exact_neighbours
from venn_admit.core.types import Float32Array, IntArray, Neighbours
from venn_admit.errors import NotReadyError


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
        queries: (n, D) float32, finite.
        support: (N, D) float32, finite, as in `exact_neighbours`.
        neighbour_count: K, 1 <= K <= N - m.
        left_out: (m,) int64, distinct rows of the support.
        memory_budget: As in `exact_neighbours`.

    Returns:
        Indices (n, K) int64, rows of the support with all its exemplars, and distances (n, K) float64.

    Raises:
        NotReadyError: Fewer than K training exemplars would remain.
        InvalidInputError: The arrays have other shapes, dtypes or ranges.

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
