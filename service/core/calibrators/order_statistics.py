"""The rank-th smallest value of any window of a fixed array, for all windows at once.

A wavelet matrix (Claude, Navarro & Ordóñez 2015, *The wavelet matrix*): the dense ranks of the values are
partitioned stably by their highest bit, then by the next, and so on. At each level a prefix count of zero
bits carries a window to its place in the next level, so a query costs one step a bit, whatever the window.
"""

import numpy as np
import numpy.typing as npt

from service.core.types import FloatArray, IntArray
from service.errors import InvalidInputError


class OrderStatistics:
    """Order statistics of the windows [low, high) of a float64 array.

    Memory: 4 bytes a value and level, with ceil(log2(distinct values)) levels.

    >>> statistics = OrderStatistics(np.array([0.5, 0.1, 0.5, 0.3]))
    >>> statistics.rank_smallest(np.array([0, 1, 2]), np.array([4, 3, 3]), np.array([2, 2, 1]))
    array([0.3, 0.5, 0.5])
    """

    def __init__(self, values: FloatArray) -> None:
        """values: (n,) float64, finite; InvalidInputError otherwise."""
        if values.ndim != 1 or not np.isfinite(values).all():
            raise InvalidInputError("order statistics need a one-dimensional array of finite numbers")
        self._size = len(values)
        self._distinct, ranks = np.unique(values, return_inverse=True)
        self._levels = _partition_levels(ranks, level_count=max(len(self._distinct) - 1, 0).bit_length())

    def rank_smallest(self, low: IntArray, high: IntArray, rank: IntArray) -> FloatArray:
        """The rank-th smallest of each window; 1 is the smallest.

        low, high, rank: (m,) int64 with 0 <= low < high <= n and 1 <= rank <= high - low, InvalidInputError
        otherwise. Returns (m,) float64, values of the array itself, bit for bit. O(m log n).
        """
        self._check_windows(low, high, rank)
        index = rank - 1  # how many of the window lie below the one sought
        found = np.zeros(len(low), dtype=np.int64)
        for zeros_before in self._levels:
            zeros_low, zeros_high = zeros_before[low], zeros_before[high]
            zeros = zeros_high - zeros_low
            is_one = index >= zeros
            # Ones follow all zeros in the next level, in the order they have here.
            zeros_total = int(zeros_before[-1])
            low = np.where(is_one, low - zeros_low + zeros_total, zeros_low)
            high = np.where(is_one, high - zeros_high + zeros_total, zeros_high)
            index = np.where(is_one, index - zeros, index)
            found = 2 * found + is_one
        return self._distinct[found]

    def _check_windows(self, low: IntArray, high: IntArray, rank: IntArray) -> None:
        if not low.shape == high.shape == rank.shape or low.ndim != 1:
            raise InvalidInputError(
                f"low, high and rank must be of one length; got {low.shape}, {high.shape}, {rank.shape}"
            )
        if not (np.all(low >= 0) and np.all(high <= self._size)):
            raise InvalidInputError(f"windows must lie within the {self._size} values")
        if not (np.all(rank >= 1) and np.all(rank <= high - low)):
            raise InvalidInputError("a rank must be at least 1 and at most the width of its window")


def _partition_levels(ranks: npt.NDArray[np.intp], level_count: int) -> list[npt.NDArray[np.int32]]:
    """For each bit, highest first: (n + 1,) int32, how many of the first i ranks of that level have it 0."""
    levels = []
    for bit in reversed(range(level_count)):
        is_zero = (ranks >> bit) & 1 == 0
        zeros_before = np.zeros(len(ranks) + 1, dtype=np.int32)
        np.cumsum(is_zero, out=zeros_before[1:])
        levels.append(zeros_before)
        ranks = np.concatenate([ranks[is_zero], ranks[~is_zero]])
    return levels
