"""Searches for points among rows that are sorted by cell and score."""

import numpy as np

from venn_admit.core.types import BoolArray, FloatArray, IntArray


def stable_cell_order(cell: IntArray) -> IntArray:
    """Return the rows in order of cell, and in their own order within a cell: (n,) int64.

    Args:
        cell: (n,) int64, >= 0.
    """
    # NumPy sorts narrow integers stably in linear time.
    return np.argsort(cell.astype(np.uint16) if cell.max(initial=0) < 2**16 else cell, kind="stable")


class ScorePlaces:
    """Rows sorted by (cell, score), searched for many points at once.

    Scores are replaced by their ranks, so that one binary search over cell * stride + rank covers cell and score.
    """

    def __init__(self, cell: IntArray, score: FloatArray) -> None:
        """Prepare the rows.

        Args:
            cell: (n,) int64, >= 0, ascending.
            score: (n,) float64, ascending within each cell; -inf is allowed.
        """
        self._cell = cell
        self._sorted_score = np.sort(score)
        self._stride = len(score) + 1
        self._keys = cell * self._stride + np.searchsorted(self._sorted_score, score, side="right")

    def last_not_above(self, cell: IntArray, score: FloatArray) -> tuple[IntArray, BoolArray]:
        """Return the last row of each point's cell whose score is not greater, and whether there is one.

        Args:
            cell: (m,) int64, >= 0.
            score: (m,) float64, finite.

        Returns:
            (m,) int64 >= 0, and (m,) bool; a row that is not there is any number.
        """
        # Searches for values in order are several times as fast.
        by_score = np.argsort(score)
        cell = cell[by_score]
        rank = np.searchsorted(self._sorted_score, score[by_score], side="right")
        by_cell = stable_cell_order(cell)
        row = np.searchsorted(self._keys, (cell * self._stride + rank)[by_cell], side="right") - 1
        found = row >= 0
        np.maximum(row, 0, out=row)
        found[found] = self._cell[row[found]] == cell[by_cell[found]]
        order = by_score[by_cell]
        row_of_point, found_of_point = np.empty_like(row), np.empty_like(found)
        row_of_point[order], found_of_point[order] = row, found
        return row_of_point, found_of_point
