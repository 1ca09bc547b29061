"""Documents as the units of a sample, because the tokens of one document are not independent of each other.

Source: the cluster bootstrap, Davison & Hinkley (1997), *Bootstrap Methods and their Application*, section 3.8: whole
documents are drawn with replacement, as many as the sample has.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from venn_admit.core.types import FloatArray, IntArray
from venn_admit.errors import InvalidInputError

RESAMPLES = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """The document that each of n points belongs to.

    Attributes:
        code: (n,) int64 in [0, count), the number of each point's document.
    """

    code: IntArray
    count: int

    def holding(self, rows: IntArray, cell: IntArray, cell_count: int) -> IntArray:
        """Count the documents that have a point in each cell, (cell_count,) int64.

        Args:
            rows: (m,) int64, row numbers of the points.
            cell: (m,) int64 in [0, cell_count), the cell of each of these points.
        """
        pairs = np.unique(self.code[rows] * cell_count + cell)
        return np.bincount(pairs % cell_count, minlength=cell_count)

    def resampled_counts(
        self, rows: IntArray, cell: IntArray, cell_count: int, *, resamples: int = RESAMPLES, seed: int = 0
    ) -> FloatArray:
        """Count the points in each cell in resamples, each of as many documents drawn with replacement.

        The same seed draws the same documents whatever the cells are, so that methods are compared on the same samples.

        Args:
            rows: (m,) int64, row numbers of the points; a row may occur in several cells.
            cell: (m,) int64 in [0, cell_count).

        Returns:
            (resamples, cell_count) float64, whole numbers.
        """
        pairs, points = np.unique(cell * self.count + self.code[rows], return_counts=True)
        place, document = np.divmod(pairs, self.count)
        held, starts = np.unique(place, return_index=True)
        generator = np.random.default_rng(seed)
        counts = np.zeros((resamples, cell_count))
        for sample in counts:
            times = np.bincount(generator.integers(self.count, size=self.count), minlength=self.count)
            sample[held] = np.add.reduceat(times[document] * points, starts)
        return counts


def document_codes(keys: Sequence[str]) -> IntArray:
    """Return the number of each point's document, (n,) int64; documents are numbered from 0 in the order of their ids.

    Examples:
        >>> document_codes(["b", "a", "b"]).tolist()
        [1, 0, 1]
    """
    # Sorted, so that the order of the points does not show in which documents are drawn.
    code = {key: position for position, key in enumerate(sorted(set(keys)))}
    return np.array([code[key] for key in keys], dtype=np.int64)


def joined_codes(keys: Sequence[Sequence[str]]) -> IntArray:
    """Return the number of each point's document, (n,) int64, if those that share a point count as one.

    Args:
        keys: The documents of the n points, as each of several sources has them.

    Examples:
        >>> joined_codes([["a", "a", "b", "c"], ["1", "2", "2", "3"]]).tolist()
        [0, 0, 0, 1]
    """
    first: dict[tuple[int, str], int] = {}
    leader = list(range(len(keys[0])))

    def found(row: int) -> int:
        while leader[row] != row:
            leader[row] = row = leader[leader[row]]
        return row

    for source, of_points in enumerate(keys):
        for row, key in enumerate(of_points):
            one, other = found(first.setdefault((source, key), row)), found(row)
            leader[max(one, other)] = min(one, other)
    _, codes = np.unique([found(row) for row in range(len(leader))], return_inverse=True)
    return codes.astype(np.int64)


def documents_of(keys: Sequence[str]) -> Documents | None:
    """Return the documents of n points, or None if no two points share one.

    Examples:
        >>> documents_of(["a", "b", "a"]).code.tolist()
        [0, 1, 0]
        >>> documents_of(["a", "b"]) is None
        True
    """
    count = len(set(keys))
    return None if count == len(keys) else Documents(document_codes(keys), count)


def percentile_interval(values: FloatArray, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Return the percentile interval of each column of resampled statistics.

    Args:
        values: (resamples, s) float64. NaN values are left out.

    Returns:
        The lower and the upper ends, two arrays (s,) float64, NaN for a column that holds nothing else.
    """
    if not 0 < confidence < 1:
        raise InvalidInputError(f"confidence must lie in (0, 1), got {confidence}; 0.95 is usual")
    low, high = np.full(values.shape[1], np.nan), np.full(values.shape[1], np.nan)
    tail = (1 - confidence) / 2
    for column in np.flatnonzero(~np.isnan(values).all(axis=0)):
        known = values[:, column][~np.isnan(values[:, column])]
        low[column], high[column] = np.quantile(known, [tail, 1 - tail])
    return low, high
