"""Shares of correct predictions as whole numbers: n of N points, and how many of the n are right.

Whole numbers, so that a table, a chart and a page show the same cell, a comparison with 1 - alpha is exact,
and nothing depends on the order of the points.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from service.core.types import BoolArray, FloatArray, IntArray
from service.errors import InvalidInputError

FEW = 10
"""Below so many points a share is shown but not judged."""


class Verdict(StrEnum):
    """What a cell of a table says about its class."""

    WELL = "well"
    UNDER = "under"
    FEW = "few"


@dataclass(frozen=True, slots=True)
class Tally:
    """`correct` of `count` points (n), which are part of the `total` points of the evaluation set (N)."""

    correct: int
    count: int
    total: int

    @property
    def share(self) -> float:
        """Share correct, in [0, 1]; NaN where there is no point."""
        return self.correct / self.count if self.count else float("nan")

    @property
    def portion(self) -> float:
        """n/N, in [0, 1]; NaN for an empty evaluation set."""
        return self.count / self.total if self.total else float("nan")

    def verdict(self, alpha: Decimal) -> Verdict:
        """`few` below `FEW` points; otherwise whether at least 1 - alpha are correct, in exact arithmetic."""
        if self.count < FEW:
            return Verdict.FEW
        return Verdict.WELL if self.correct >= (1 - alpha) * self.count else Verdict.UNDER


@dataclass(frozen=True, slots=True)
class SelectiveAccuracy:
    """Share correct among admitted points: per true class, per predicted class (each C long), over all."""

    per_true_class: tuple[Tally, ...]
    per_predicted_class: tuple[Tally, ...]
    overall: Tally


@dataclass(frozen=True, slots=True, eq=False)
class PointAccuracy:
    """Accuracy of a point prediction without rejection.

    tallies: as if all were admitted. f_half: (C,) float64, F0.5 per class, NaN for a class neither present
    nor predicted. f_half_macro: its mean over the other classes.
    """

    tallies: SelectiveAccuracy
    f_half: FloatArray
    f_half_macro: float


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


def selective_accuracy(
    label: IntArray, predicted: IntArray, admitted: BoolArray, class_count: int
) -> SelectiveAccuracy:
    """Share correct among admitted points, with n and N, N being all points in every cell.

    label, predicted: (n,) int64 in [0, C), `predicted` read only where `admitted` (n,) bool is true.
    """
    check_lengths(label.size, {"predicted": predicted, "admitted": admitted})
    check_classes(class_count, {"label": label, "admitted prediction": predicted[admitted]})
    kept, said = label[admitted], predicted[admitted]
    right = kept[kept == said]
    correct = np.bincount(right, minlength=class_count)

    def tallies(count: IntArray) -> tuple[Tally, ...]:
        return tuple(Tally(int(c), int(n), label.size) for c, n in zip(correct, count, strict=True))

    return SelectiveAccuracy(
        per_true_class=tallies(np.bincount(kept, minlength=class_count)),
        per_predicted_class=tallies(np.bincount(said, minlength=class_count)),
        overall=Tally(right.size, kept.size, label.size),
    )


def point_accuracy(label: IntArray, predicted: IntArray, class_count: int) -> PointAccuracy:
    """Accuracy and F0.5 of a prediction for every point; label, predicted: (n,) int64 in [0, C).

    F0.5 = 1.25 P R / (0.25 P + R) = 1.25 correct / (0.25 true + predicted), one class against the rest,
    macro-averaged over the classes that occur.
    """
    tallies = selective_accuracy(label, predicted, np.ones(label.size, np.bool_), class_count)
    correct = np.array([t.correct for t in tallies.per_true_class], np.float64)
    weight = np.array([t.count for t in tallies.per_true_class]) * 0.25
    weight += np.array([t.count for t in tallies.per_predicted_class])
    occurs = weight > 0
    f_half = np.where(occurs, 1.25 * correct / np.where(occurs, weight, 1.0), np.nan)
    return PointAccuracy(tallies, f_half, float(f_half[occurs].mean()) if occurs.any() else float("nan"))


def check_lengths(expected: int, columns: Mapping[str, npt.NDArray[np.generic]]) -> None:
    """Refuse a column, by its name, that does not have `expected` rows."""
    for name, column in columns.items():
        if column.shape[0] != expected:
            raise InvalidInputError(f"{name} must have {expected} rows, one a label; got {column.shape[0]}")


def check_classes(class_count: int, columns: Mapping[str, IntArray], least: int = 0) -> None:
    """Refuse a column, by its name, with a value outside [least, class_count)."""
    for name, column in columns.items():
        outside = (column < least) | (column >= class_count)
        if outside.any():
            row = int(np.argmax(outside))
            raise InvalidInputError(
                f"{name} must lie in [{least}, {class_count}), got {column[row]} in row {row}; "
                "leave unlabelled points out"
            )
