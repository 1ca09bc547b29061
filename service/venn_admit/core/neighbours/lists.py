"""Pairs of a query and a row of the support, put in order for each query."""

import numpy as np

from venn_admit.core.types import FloatArray, IntArray, Neighbours


def ranks(owners: IntArray) -> IntArray:
    """Return the position of each item among the items of its owner, from 0.

    Args:
        owners: (M,) int64, ascending.
    """
    return np.arange(owners.size) - np.searchsorted(owners, owners)


def first_of_each(
    owners: IntArray, rows: IntArray, distances: FloatArray, neighbour_count: int
) -> tuple[IntArray, FloatArray]:
    """Return rows and distances, (n, K), of each owner's K nearest by (distance, row).

    Args:
        owners: (M,) int64; n different ones, each of which has at least K pairs.
        rows: (M,) int64.
        distances: (M,) float64.
        neighbour_count: K.
    """
    order = np.lexsort((rows, distances, owners))
    order = order[ranks(owners[order]) < neighbour_count]
    return rows[order].reshape(-1, neighbour_count), distances[order].reshape(-1, neighbour_count)


def none_found(query_count: int, neighbour_count: int) -> Neighbours:
    """Return lists, (n, K), of no row at infinity.

    Args:
        query_count: n.
        neighbour_count: K.
    """
    shape = (query_count, neighbour_count)
    return Neighbours(indices=np.full(shape, -1, dtype=np.int64), distances=np.full(shape, np.inf))
