"""Distances of pairs of vectors, each query's nearest, and how far distances in float32 can be from exact ones.

The rounding of a sum of n nonnegative terms, in any order, has a relative error of at most n u / (1 - n u) (Higham
2002, *Accuracy and Stability of Numerical Algorithms*, section 4.2).
"""

import math

import numpy as np

from venn_admit.core.budget import tile_rows
from venn_admit.core.types import Float32Array, FloatArray, IntArray, Neighbours, narrowed

_FLOAT32_UNIT = 2.0**-24
_FLOAT32_MAX = float(np.finfo(np.float32).max)
# Underflow, even to zero, removes at most this much of a squared distance per dimension: a square and an addition.
_UNDERFLOW = 2.0**-125
# Above the rounding of a float64 distance (sum and root) by orders of magnitude, below any gap that matters.
FLOAT64_SLACK = 1e-12
# From this many columns on, sums are taken across vectors: NumPy takes as long for a few columns of each as for many.
_NARROW = 16


def euclidean_distances(vectors: Float32Array, others: Float32Array) -> FloatArray:
    """Return the Euclidean distance of each row of `vectors` to the same row of `others`, or to the only one.

    The float64 squares are summed by folding the vector in halves. These are elementwise additions, so that a pair
    gives the same bits whatever else is computed and with any build of numpy, whose own sum guarantees no order.

    Args:
        vectors: (M, D) float32.
        others: (M, D) or (D,) float32.

    Returns:
        (M,) float64, in the units of the vectors.

    Examples:
        >>> euclidean_distances(np.float32([[0, 0], [3, 4]]), np.float32([0, 0])).tolist()
        [0.0, 5.0]
    """
    squares = vectors.astype(np.float64)
    squares -= others
    np.square(squares, out=squares)
    squares = squares.T  # (D, M), still stored by vector
    while (width := len(squares)) > 1:
        if width <= _NARROW:
            squares = np.ascontiguousarray(squares)
        pairs = width // 2
        folded = squares[:pairs] + squares[width - pairs :]
        squares = np.concatenate((folded, squares[pairs : width - pairs])) if width % 2 else folded
    return np.asarray(np.sqrt(squares[0]))


def pair_distances(vectors: Float32Array, rows: IntArray, others: Float32Array, other_rows: IntArray) -> FloatArray:
    """Return the `euclidean_distances` of `vectors[rows]` to `others[other_rows]`, (M,) float64."""
    distances = np.empty(rows.size)
    step = tile_rows(4 * 8 * vectors.shape[1])  # the vectors of both stay in the cache beside the squares
    for start in range(0, rows.size, step):
        part = slice(start, start + step)
        distances[part] = euclidean_distances(vectors.take(rows[part], axis=0), others.take(other_rows[part], axis=0))
    return distances


def least_distance(float32_distance: float, dimension: int) -> float:
    """Return the least value of `euclidean_distances` for a pair with a given distance in float32 arithmetic.

    Args:
        float32_distance: The root of a sum, in any order, of squared differences, each step rounded to float32 or not
            at all; inf if it overflowed.
    """
    squared = min(float32_distance**2, _FLOAT32_MAX) * (1.0 - FLOAT64_SLACK) - dimension * _UNDERFLOW
    return math.sqrt(max(squared, 0.0) / (1.0 + _rounding(dimension)))


def greatest_float32_distance(distance: float, dimension: int) -> float:
    """Return the greatest distance in float32 arithmetic of a pair with a given distance; may be inf."""
    squared = (distance**2 + dimension * _UNDERFLOW) * (1.0 + _rounding(dimension))
    return math.sqrt(squared) * (1.0 + FLOAT64_SLACK) if squared < _FLOAT32_MAX else math.inf


def _rounding(dimension: int) -> float:
    """The relative excess of a squared distance, at most: three roundings for each square, and D additions."""
    rounding = (dimension + 3) * _FLOAT32_UNIT
    return rounding / (1.0 - rounding)


def ranks(owners: IntArray) -> IntArray:
    """Return the position of each item among the items of its owner, from 0; owners ascend."""
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    return np.arange(owners.size) - np.repeat(starts, np.diff(starts, append=owners.size))


def first_of_each(
    owners: IntArray, rows: IntArray, distances: FloatArray, neighbour_count: int
) -> tuple[IntArray, FloatArray]:
    """Return rows and distances, (n, K), of each owner's K nearest by (distance, row).

    Args:
        owners: (M,) int64; n different ones, each of which has at least K pairs.
        rows: (M,) int64.
        distances: (M,) float64.
    """
    order = _nearest_first(owners, rows, distances)
    order = order[ranks(owners[order]) < neighbour_count]
    return rows[order].reshape(-1, neighbour_count), distances[order].reshape(-1, neighbour_count)


def _nearest_first(owners: IntArray, rows: IntArray, distances: FloatArray) -> IntArray:
    """`np.lexsort((rows, distances, owners))` in an eighth of the time, where few owners have equal distances."""
    order = np.argsort(distances)
    order = order[np.argsort(narrowed(owners)[order], kind="stable")]
    owned, ascending = owners[order], distances[order]
    tied = np.zeros(owners.max(initial=0) + 1, np.bool_)
    tied[owned[1:][(ascending[1:] == ascending[:-1]) & (owned[1:] == owned[:-1])]] = True
    if tied.any():
        some = np.flatnonzero(tied[owners])
        order[tied[owned]] = some[np.lexsort((rows[some], distances[some], owners[some]))]
    return order


def none_found(query_count: int, neighbour_count: int) -> Neighbours:
    """Return lists, (n, K), of no row at infinity."""
    shape = (query_count, neighbour_count)
    return Neighbours(indices=np.full(shape, -1, dtype=np.int64), distances=np.full(shape, np.inf))
