"""Shares of correct predictions as whole numbers: n of N points, and how many of the n are right.

Whole numbers, so that a table, a chart and a page show the same cell, a comparison with 1 - alpha is exact,
and nothing depends on the order of the points.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from itertools import accumulate, pairwise
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from service.core.documents import Documents, percentile_interval
from service.core.types import BoolArray, FloatArray, IntArray
from service.errors import InvalidInputError

FEW = 10
"""Below so many points, or documents that hold them, a share is shown but not judged."""


class Verdict(StrEnum):
    """What a cell of a table says about its class."""

    WELL = "well"
    UNDER = "under"
    FEW = "few"


@dataclass(frozen=True, slots=True)
class Tally:
    """`correct` of `count` points (n), which are part of the `total` points of the evaluation set (N).

    documents: those that hold the n points, where points of one document are not independent; else None.
    resampled: 95 % interval of the share from resampled documents, likewise.
    """

    correct: int
    count: int
    total: int
    documents: int | None = None
    resampled: tuple[float, float] | None = None

    @property
    def share(self) -> float:
        """Share correct, in [0, 1]; NaN where there is no point."""
        return self.correct / self.count if self.count else float("nan")

    @property
    def portion(self) -> float:
        """n/N, in [0, 1]; NaN for an empty evaluation set."""
        return self.count / self.total if self.total else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the share: by resampled documents where they are known, else Wilson's."""
        if self.resampled is not None:
            return self.resampled
        low, high = wilson_interval(self.correct, self.count)
        return float(low), float(high)

    @property
    def is_few(self) -> bool:
        """Whether the points, or the documents that hold them, are too few to judge."""
        return min(self.count, self.count if self.documents is None else self.documents) < FEW

    def verdict(self, alpha: Decimal) -> Verdict:
        """`few` where there are too few to judge; otherwise whether at least 1 - alpha are correct, exactly."""
        if self.is_few:
            return Verdict.FEW
        return Verdict.WELL if self.correct >= (1 - alpha) * self.count else Verdict.UNDER


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Points sorted into cells.

    cell: (n,) int64 in [0, cell_count), or -1 for a point in none. correct: (n,) bool.
    """

    cell: IntArray
    correct: BoolArray
    cell_count: int


def tally_groupings(groupings: Sequence[Grouping], documents: Documents | None) -> list[tuple[Tally, ...]]:
    """The tallies of each grouping of the same n points, one a cell, N being all n points in every cell."""
    starts = list(accumulate((grouping.cell_count for grouping in groupings), initial=0))
    cells = starts[-1]
    rows = [np.flatnonzero(grouping.cell >= 0) for grouping in groupings]
    place = [grouping.cell[kept] + start for grouping, kept, start in zip(groupings, rows, starts[:-1], strict=True)]
    right = [grouping.correct[kept] for grouping, kept in zip(groupings, rows, strict=True)]
    row, cell, hit = np.concatenate(rows), np.concatenate(place), np.concatenate(right)

    count = np.bincount(cell, minlength=cells)
    correct = np.bincount(cell[hit], minlength=cells)
    total = groupings[0].cell.size
    if documents is None:
        tallies = [Tally(c, n, total) for c, n in zip(correct.tolist(), count.tolist(), strict=True)]
    else:
        holding = documents.holding(row, cell, cells)
        resampled = documents.resampled_counts(
            np.concatenate([row, row[hit]]), np.concatenate([cell, cell[hit] + cells]), 2 * cells
        )
        low, high = _document_interval(correct, count, holding, resampled)
        tallies = [
            Tally(int(correct[i]), int(count[i]), total, int(holding[i]), (float(low[i]), float(high[i])))
            for i in range(cells)
        ]
    return [tuple(tallies[start:stop]) for start, stop in pairwise(starts)]


def _document_interval(
    correct: IntArray, count: IntArray, holding: IntArray, resampled: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Interval of each cell's share, (cells,) twice.

    correct, count, holding: (cells,), holding being the documents that hold the points. resampled: (resamples,
    2 cells), counts of the points of each cell, then of those that are right.

    Where all or none of a cell's points are right every sample says the same, which is no certainty: there it
    is Wilson's, of as many trials as documents hold the points.
    """
    points, right = np.split(resampled, 2, axis=1)
    low, high = percentile_interval(np.where(points > 0, right / np.maximum(points, 1), np.nan))
    unanimous = (correct == 0) | (correct == count)  # cells without points among them
    few_low, few_high = wilson_interval(np.where(correct > 0, holding, 0), holding)
    share = correct / np.maximum(count, 1)
    return (
        np.where(unanimous, few_low, np.minimum(low, share)),
        np.where(unanimous, few_high, np.maximum(high, share)),
    )


def wilson_interval(
    correct: npt.ArrayLike, count: npt.ArrayLike, confidence: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Wilson score interval of a share, elementwise; [0, 1] where count is 0. Always holds correct / count.

    Wilson, E. B. (1927), Probable inference, the law of succession, and statistical inference. JASA 22.

    >>> low, high = wilson_interval(9, 10)
    >>> round(float(low), 3), round(float(high), 3)
    (0.596, 0.982)
    """
    if not 0 < confidence < 1:
        raise InvalidInputError(f"confidence must lie in (0, 1), got {confidence}; 0.95 is usual")
    n = np.asarray(count, np.float64)
    share = np.asarray(correct, np.float64) / np.maximum(n, 1)
    squared = NormalDist().inv_cdf(0.5 + confidence / 2) ** 2
    spread = np.sqrt(squared * (share * (1 - share) * n + squared / 4))
    low = (share * n + squared / 2 - spread) / (n + squared)
    high = (share * n + squared / 2 + spread) / (n + squared)
    empty = n == 0
    # Rounding must not push an end past the share itself, which at 0 and 1 is the end.
    return (
        np.where(empty, 0.0, np.clip(low, 0.0, share)),
        np.where(empty, 1.0, np.clip(high, share, 1.0)),
    )


def check_lengths(expected: int, columns: Mapping[str, npt.NDArray[np.generic]]) -> None:
    """Refuse a column, by its name, that does not have `expected` rows."""
    for name, column in columns.items():
        if column.shape[0] != expected:
            raise InvalidInputError(f"{name} must have {expected} rows, one a label; got {column.shape[0]}")


def check_classes(class_count: int, columns: Mapping[str, IntArray]) -> None:
    """Refuse a column, by its name, with a value outside [0, class_count)."""
    for name, column in columns.items():
        outside = (column < 0) | (column >= class_count)
        if outside.any():
            row = int(np.argmax(outside))
            raise InvalidInputError(
                f"{name} must lie in [0, {class_count}), got {column[row]} in row {row}; leave unlabelled points out"
            )
