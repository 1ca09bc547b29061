"""The rank statistic of conformal prediction, and the rank-th smallest value of all windows of an array at once.

Sources: docs/PROCEDURE.md, sections 4 and 7, for the rank; for the windows the wavelet matrix, Claude, Navarro &
Ordóñez (2015), *The wavelet matrix*. The dense ranks of the values are partitioned stably by their highest bit, then by
the next, and so on. At each level, a prefix count of zero bits carries a window to its place in the next level, so that
a query costs one step per bit, whatever the window.
"""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from venn_admit.core.types import FloatArray, IntArray
from venn_admit.errors import InvalidInputError

# So few windows are walked through faster one by one than all at once.
_FEW = 16


class OrderStatistics:
    """Order statistics of the windows [low, high) of a float64 array.

    It takes 4 bytes per value and level, with ceil(log2(distinct values)) levels.

    Examples:
        >>> statistics = OrderStatistics(np.array([0.5, 0.1, 0.5, 0.3]))
        >>> statistics.rank_smallest(np.array([0, 1, 2]), np.array([4, 3, 3]), np.array([2, 2, 1]))
        array([0.3, 0.5, 0.5])
    """

    def __init__(self, values: FloatArray) -> None:
        """Build the levels.

        Args:
            values: (n,) float64, finite.
        """
        if values.ndim != 1 or not np.isfinite(values).all():
            raise InvalidInputError("order statistics need a one-dimensional array of finite numbers")
        self._size = len(values)
        self._distinct, ranks = np.unique(values, return_inverse=True)
        self._levels = _partition_levels(ranks, level_count=max(len(self._distinct) - 1, 0).bit_length())

    def rank_smallest(self, low: IntArray, high: IntArray, rank: IntArray) -> FloatArray:
        """Return the rank-th smallest value of each window, rank 1 being the smallest, in O(m log n).

        Args:
            low: (m,) int64, the start of each window.
            high: (m,) int64, its exclusive end; 0 <= low < high <= n.
            rank: (m,) int64, 1 <= rank <= high - low.

        Returns:
            (m,) float64, values of the array itself, bit for bit.
        """
        self._check_windows(low, high, rank)
        index = rank - 1  # the number of values in the window below the one sought
        if len(low) <= _FEW:
            windows = zip(low.tolist(), high.tolist(), index.tolist(), strict=True)
            return self._distinct[[self._dense_rank(*window) for window in windows]]
        found = np.zeros(len(low), dtype=np.int64)
        for zeros_before in self._levels:
            zeros_low, zeros_high = zeros_before[low], zeros_before[high]
            zeros = zeros_high - zeros_low
            is_one = index >= zeros
            # In the next level, ones follow all zeros, in the order that they have here.
            zeros_total = int(zeros_before[-1])
            low = np.where(is_one, low - zeros_low + zeros_total, zeros_low)
            high = np.where(is_one, high - zeros_high + zeros_total, zeros_high)
            index = np.where(is_one, index - zeros, index)
            found = 2 * found + is_one
        return self._distinct[found]

    def _dense_rank(self, low: int, high: int, index: int) -> int:
        """The same of one window, as an index of the distinct values."""
        found = 0
        for zeros_before in self._levels:
            zeros_low, zeros_high = zeros_before.item(low), zeros_before.item(high)
            zeros = zeros_high - zeros_low
            if index < zeros:
                low, high, found = zeros_low, zeros_high, 2 * found
            else:
                zeros_total = zeros_before.item(-1)
                low, high = low - zeros_low + zeros_total, high - zeros_high + zeros_total
                index, found = index - zeros, 2 * found + 1
        return found

    def count_above(self, low: IntArray, high: IntArray, value: FloatArray) -> IntArray:
        """Return how many values of each window are greater than a value, in O(m log n).

        Args:
            low: (m,) int64, the start of each window.
            high: (m,) int64, its exclusive end; 0 <= low <= high <= n.
            value: (m,) float64.

        Examples:
            >>> OrderStatistics(np.array([0.5, 0.1, 0.5])).count_above(np.array([0]), np.array([3]), np.array([0.1]))
            array([2])
        """
        greater = np.searchsorted(self._distinct, value, side="right")  # the rank of the least greater value
        none, every = greater == len(self._distinct), greater == 0
        found = np.where(every, high - low, 0)
        rank = np.where(none | every, 0, greater)
        low, high = np.where(none | every, 0, low), np.where(none | every, 0, high)
        bit = 1 << len(self._levels)
        for zeros_before in self._levels:
            bit >>= 1
            zeros_low, zeros_high = zeros_before[low], zeros_before[high]
            zeros_total = int(zeros_before[-1])
            is_one = rank & bit != 0
            # Where the rank has a zero, values with a one are greater, and are counted.
            found += np.where(is_one, 0, (high - low) - (zeros_high - zeros_low))
            low = np.where(is_one, low - zeros_low + zeros_total, zeros_low)
            high = np.where(is_one, high - zeros_high + zeros_total, zeros_high)
        return np.where(none, 0, np.where(every, found, found + (high - low)))

    def _check_windows(self, low: IntArray, high: IntArray, rank: IntArray) -> None:
        if not low.shape == high.shape == rank.shape or low.ndim != 1:
            raise InvalidInputError(
                f"low, high and rank must have the same length; got {low.shape}, {high.shape}, {rank.shape}"
            )
        if not (np.all(low >= 0) and np.all(high <= self._size)):
            raise InvalidInputError(f"windows must lie within the {self._size} values")
        if not (np.all(rank >= 1) and np.all(rank <= high - low)):
            raise InvalidInputError("a rank must be at least 1 and at most the width of its window")


def _partition_levels(ranks: npt.NDArray[np.intp], level_count: int) -> list[npt.NDArray[np.int32]]:
    """For each bit, highest first: (n + 1,) int32, how many of the first i ranks of its level have a zero there."""
    levels = []
    for bit in reversed(range(level_count)):
        is_zero = (ranks >> bit) & 1 == 0
        zeros_before = np.zeros(len(ranks) + 1, dtype=np.int32)
        np.cumsum(is_zero, out=zeros_before[1:])
        levels.append(zeros_before)
        ranks = np.concatenate([ranks[is_zero], ranks[~is_zero]])
    return levels


def conformal_rank(counts: IntArray, alpha: Decimal) -> IntArray:
    """Return ceil((n + 1)(1 - alpha)) for each count n, in exact arithmetic.

    Args:
        counts: int64 of any shape, n >= 0.

    Returns:
        int64, of the shape of `counts`. The rank exceeds n if n points are too few for this alpha.

    Examples:
        >>> conformal_rank(np.array([8, 9, 10, 19]), Decimal("0.1"))
        array([ 9,  9, 10, 18])
    """
    confidence = 1 - Fraction(alpha)
    largest = int(counts.max(initial=0)) + 1
    if largest * confidence.numerator > np.iinfo(np.int64).max:
        counts = counts.astype(object)  # Python integers, for an alpha whose digits would overflow int64
    return (-(-(counts + 1) * confidence.numerator // confidence.denominator)).astype(np.int64)
