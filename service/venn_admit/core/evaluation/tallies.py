"""Shares of correct predictions as whole numbers: n of N points, and how many of the n are correct.

They are whole numbers so that a table, a chart and a page show the same cell, a comparison with 1 - alpha is exact, and
nothing depends on the order of the points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from itertools import accumulate, pairwise
from math import ceil
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from venn_admit.core.documents import Documents, percentile_interval
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

MINIMUM_TO_JUDGE = 10
"""With fewer points, or documents that hold them, than this, a share is shown but not judged."""

MOST_TO_SETTLE = 100_000
"""A verdict that would take more further points than this is not worth waiting for."""

_Z = NormalDist().inv_cdf(0.975)


class Verdict(StrEnum):
    """What a sample says about a required share: met, missed, or too close to call."""

    MET = "met"
    MISSED = "missed"
    CANNOT_TELL = "cannot_tell"

    @property
    def words(self) -> str:
        """The verdict as a reader sees it."""
        return self.value.replace("_", " ")


def judge(interval: tuple[float, float], *, least: float, units: int) -> Verdict:
    """Judge whether a figure is at least what is required, as far as its 95 % interval decides it.

    Args:
        units: The points that it rests on, or the documents that hold them; under `MINIMUM_TO_JUDGE` decide nothing.

    Examples:
        >>> [str(judge((0.85, 0.95), least=least, units=40)) for least in (0.8, 0.9, 0.96)]
        ['met', 'cannot_tell', 'missed']
    """
    low, high = interval
    if units < MINIMUM_TO_JUDGE or low < least <= high:
        return Verdict.CANNOT_TELL
    return Verdict.MET if low >= least else Verdict.MISSED


@dataclass(frozen=True, slots=True)
class Tally:
    """`correct` of `count` points (n), which are part of the `total` points of the evaluation set (N).

    Attributes:
        documents: The number of documents that hold the n points, if points of one document are not independent; else
            None.
        resampled: The 95 % interval of the share from resampled documents, if there are any.
    """

    correct: int
    count: int
    total: int
    documents: int | None = None
    resampled: tuple[float, float] | None = None

    @property
    def share(self) -> float:
        """The share right, in [0, 1]; NaN if there are no points."""
        return self.correct / self.count if self.count else float("nan")

    @property
    def portion(self) -> float:
        """n/N, in [0, 1]; NaN for an empty evaluation set."""
        return self.count / self.total if self.total else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share: from resampled documents if documents are known, else Wilson's."""
        if self.resampled is not None:
            return self.resampled
        return share_interval(self.correct, self.count)

    @property
    def is_few(self) -> bool:
        """Whether the points, or the documents that hold them, are too few to judge."""
        return self.units < MINIMUM_TO_JUDGE

    @property
    def units(self) -> int:
        """The number of points, or of the documents that hold them if these are fewer."""
        return self.count if self.documents is None else min(self.count, self.documents)

    def verdict(self, alpha: Decimal) -> Verdict:
        """Judge whether at least 1 - alpha are correct, as far as the 95 % interval of the share decides it.

        The requirement is met if the whole interval lies at or above 1 - alpha, and missed if the interval lies below.
        The sample cannot tell if the interval straddles 1 - alpha, or if the points or documents are too few to judge.
        """
        # 1 - alpha is rounded like a share, so that a share of exactly 1 - alpha equals it.
        return judge(self.interval, least=float(1 - alpha), units=self.units)

    def more_to_settle(self, alpha: Decimal) -> int | None:
        """Return how many more points, or documents, would end "cannot tell" if the share right stayed as it is.

        Wilson's interval excludes t if n > z^2 t (1 - t) / (share - t)^2. The interval from documents is assumed to
        narrow with the square root of their number.

        Returns:
            The number; 0 if the verdict is settled; None if there are no points yet, or if the share lies so close to 1
            - alpha that `MOST_TO_SETTLE` would not suffice.
        """
        if self.count == 0:
            return None
        if self.verdict(alpha) is not Verdict.CANNOT_TELL:
            return 0
        target, units = float(1 - alpha), self.count if self.documents is None else self.documents
        gap = self.share - target
        if gap == 0:
            return None
        if self.resampled is None or self.correct in {0, self.count}:
            needed = _Z**2 * target * (1 - target) / gap**2
        else:
            low, high = self.interval
            needed = units * (((self.share - low) if gap > 0 else (high - self.share)) / gap) ** 2
        more = max(MINIMUM_TO_JUDGE, ceil(needed)) - units
        return max(1, more) if more <= MOST_TO_SETTLE else None


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Points sorted into cells.

    Attributes:
        cell: (n,) int64 in [0, cell_count), or -1 for a point in none.
    """

    cell: IntArray
    correct: BoolArray
    cell_count: int


def tally_groupings(groupings: Sequence[Grouping], documents: Documents | None) -> list[tuple[Tally, ...]]:
    """Return the tallies of several groupings of the same n points.

    Returns:
        For each grouping, one tally per cell; N is all n points in every cell.
    """
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
        low, high = document_interval(correct, count, holding, resampled)
        tallies = [
            Tally(int(correct[i]), int(count[i]), total, int(holding[i]), (float(low[i]), float(high[i])))
            for i in range(cells)
        ]
    return [tuple(tallies[start:stop]) for start, stop in pairwise(starts)]


def document_interval(
    correct: IntArray, count: IntArray, holding: IntArray, resampled: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the interval of each cell's share.

    If all or none of a cell's points are correct, every resample says the same, which is not certainty. The interval is
    then Wilson's, for as many trials as documents hold the points.

    Args:
        correct: (cells,) int64, correct points.
        count: (cells,) int64, points.
        holding: (cells,) int64, documents that hold the points.
        resampled: (resamples, 2 cells) float64, counts of the points of each cell, then of the correct ones.

    Returns:
        The lower and the upper ends, (cells,) float64 each.
    """
    points, right = np.split(resampled, 2, axis=1)
    low, high = percentile_interval(np.where(points > 0, right / np.maximum(points, 1), np.nan))
    unanimous = (correct == 0) | (correct == count)  # including cells without points
    few_low, few_high = wilson_interval(np.where(correct > 0, holding, 0), holding)
    share = correct / np.maximum(count, 1)
    return (
        np.where(unanimous, few_low, np.minimum(low, share)),
        np.where(unanimous, few_high, np.maximum(high, share)),
    )


@lru_cache(maxsize=1 << 14)  # most classes of a report have few points, and each interval is shown more than once
def share_interval(correct: int, count: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of one share.

    Args:
        count: Points, of which some are correct.
    """
    low, high = wilson_interval(correct, count)
    return float(low), float(high)


def wilson_interval(
    correct: npt.ArrayLike, count: npt.ArrayLike, confidence: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Return the Wilson score interval of a share, elementwise. It always contains correct / count.

    Source: Wilson, E. B. (1927), Probable inference, the law of succession, and statistical inference. JASA 22.

    Args:
        correct: Correct points.
        count: Points, of the same shape.

    Returns:
        The lower and the upper ends; [0, 1] if count is 0.

    Examples:
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
    # Rounding must not push an end past the share itself, which is the end at 0 and 1.
    return (np.where(empty, 0.0, np.clip(low, 0.0, share)), np.where(empty, 1.0, np.clip(high, share, 1.0)))
