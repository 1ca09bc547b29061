"""The cells of a calibration by Venn-Abers: what each can admit, and the labels that it lacks."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate
from math import ceil, inf

import numpy as np

from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex, cell_numbers
from venn_admit.core.checks import check_lengths
from venn_admit.core.types import BoolArray, FloatArray


@dataclass(frozen=True, slots=True)
class CellState:
    """What one cell, a bin of q and a predicted class, can admit.

    Attributes:
        q_bin: The number of the bin of q.
        predicted: The predicted class.
        points: The points of mc.
        right: How many of them are predicted right.
        admitted: How many of them are admitted by bounds of the other folds.
        threshold: The least p0 that admits; None for never.
        largest: The largest p0 that any score has; 0 in an empty cell.
        admits_from: The score from which on p0 reaches the threshold; None if no score does.
        lacking: The fewest further points, all of them right and with scores above all others, after which the highest
            score is admitted; 0 if it is or never shall be, inf if no number would do.
        labels: The number of random labels that this takes at least, in expectation; inf if there is no rate.
    """

    q_bin: int
    predicted: int
    points: int
    right: int
    admitted: int
    threshold: Decimal | None
    largest: float
    admits_from: float | None
    lacking: float
    labels: float


def cell_states(
    points: CellPoints,
    right: BoolArray,
    admitted: BoolArray,
    *,
    thresholds: Sequence[Decimal | None],
    q_bins: tuple[int, ...],
    label_count: float,
) -> tuple[CellState, ...]:
    """Return the state of every cell, by bin of q, then by predicted class.

    The largest p0 is that of the highest score, max R / (N + 1) over the R right of N points from some score upwards.
    With m right points more on top it is max (R + m) / (N + m + 1), which reaches t once m >= (t (N + 1) - R) / (1 - t)
    for one of these scores; without any points, m / (m + 1). So far, one random label in label_count / right became a
    right point of the cell. At that rate lacking * label_count / right labels are needed if every one of its right
    points lies on top; as not all do, it takes more.

    Args:
        points: n points of `mc`.
        right: (n,) bool, yhat = y.
        admitted: (n,) bool, which of them are admitted by bounds of the other folds.
        thresholds: (C,) the least p0 of each predicted class that admits; None for never.
        q_bins: Lower edges of the bins of q.
        label_count: > 0, the number of random labels so far: the points of mc over the share of labels that goes there.

    Raises:
        InvalidInputError: The arrays have other lengths or ranges.

    Examples:
        >>> points = CellPoints(np.zeros(4, np.int64), np.zeros(4, np.int64), np.array([0.6, 0.7, 0.8, 0.9]))
        >>> right = np.array([False, True, True, True])
        >>> least = [Decimal("0.9")] * 2
        >>> first, _ = cell_states(points, right, ~right, thresholds=least, q_bins=(0,), label_count=40)
        >>> first.largest, first.lacking, first.labels
        (0.75, 6, 80.0)
    """
    check_lengths(predicted=points.predicted, right=right, admitted=admitted)
    class_count = len(thresholds)
    index = VennAbersIndex(points, right, class_count=class_count, q_bins=q_bins)
    cell = cell_numbers(points, class_count=class_count, q_bins=q_bins)
    kept = np.bincount(cell[admitted], minlength=len(index.cell_size))
    found = []
    for number, (size, hits) in enumerate(zip(index.cell_size.tolist(), index.cell_right.tolist(), strict=True)):
        q_bin, predicted = divmod(number, class_count)
        threshold = thresholds[predicted]
        steps = index.steps.take(np.flatnonzero(index.steps.cell == number))
        reached = np.flatnonzero(steps.lower >= (np.inf if threshold is None else float(threshold)))
        members = np.flatnonzero(cell == number)
        lacking: float = 0
        if threshold is not None and not reached.size:
            lacking = _lacking(points.score[members], right[members], threshold)
        found.append(
            CellState(
                q_bin=q_bin,
                predicted=predicted,
                points=size,
                right=hits,
                admitted=int(kept[number]),
                threshold=threshold,
                largest=float(steps.lower[-1]) if len(steps.lower) else 0.0,
                admits_from=float(steps.score[reached[0]]) if reached.size else None,
                lacking=lacking,
                labels=lacking * label_count / hits if hits else inf if lacking else 0.0,
            )
        )
    return tuple(found)


def _lacking(score: FloatArray, right: BoolArray, threshold: Decimal) -> float:
    """The fewest right points on top after which the highest score is admitted; inf for a threshold of 1."""
    asked = Fraction(threshold)
    if asked >= 1:
        return inf
    order = np.argsort(-score, kind="stable")
    last_of_score = np.append(np.diff(score[order]) != 0, True)[: len(order)]
    totals: Sequence[int] = [0, *(np.flatnonzero(last_of_score) + 1).tolist()]
    hits = list(accumulate(right[order].tolist(), initial=0))
    needed: int = min(ceil((asked * (total + 1) - hits[total]) / (1 - asked)) for total in totals)
    return max(0, needed)
