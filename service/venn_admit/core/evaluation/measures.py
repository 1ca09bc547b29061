"""Measures of the predictions and the prediction sets of one method on labelled points.

Source: docs/PROCEDURE.md, section 8. A set covers a point if it holds the label; a singleton admits the prediction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from venn_admit.core.checks import check_classes, check_rows
from venn_admit.core.documents import Documents, percentile_interval
from venn_admit.core.evaluation.tallies import Grouping, Tally, tally_groupings
from venn_admit.core.types import BoolArray, FloatArray, IntArray, MethodSets
from venn_admit.errors import InvalidInputError

SIZE_STRATA = ((1, 1), (2, 3), (4, 6), (7, 10), (11, 100), (101, 1000))
"""Strata of set sizes if there are more than ten classes, after Angelopoulos et al. (2021), RAPS."""

MOST_SINGLE_SIZES = 10
"""Up to this many classes, every size is a stratum of its own."""


@dataclass(frozen=True, slots=True)
class ClassTallies:
    """A share per class and over all points."""

    per_true_class: tuple[Tally, ...]
    per_predicted_class: tuple[Tally, ...]
    overall: Tally


@dataclass(frozen=True, slots=True)
class SizeStratum:
    """Coverage of the sets of `least` to `most` classes."""

    least: int
    most: int
    covered: Tally


@dataclass(frozen=True, slots=True, eq=False)
class MethodMeasures:
    """The measures of one method.

    Attributes:
        singletons: The share right among the points with a singleton.
        coverage: The share of sets that hold the label, over all points.
        by_size: The same by size of the set; sizes that do not occur are left out.
        mean_size: The mean number of classes in a set, in [1, C].
    """

    name: str
    singletons: ClassTallies
    coverage: ClassTallies
    by_size: tuple[SizeStratum, ...]
    mean_size: float


@dataclass(frozen=True, slots=True)
class Admission:
    """What is admitted of labelled points, and how much of it is right."""

    admitted: Tally
    right: ClassTallies

    def every_class_reaches(self, alpha: Decimal) -> bool:
        """Return whether the share right is at least 1 - alpha for each class of either kind with admitted points.

        The shares alone count, not their intervals.
        """
        return _all_reach(self.right.per_true_class, alpha) and self.every_predicted_class_reaches(alpha)

    def every_predicted_class_reaches(self, alpha: Decimal) -> bool:
        """Return the same for predicted classes alone, which are what methods without a certificate look at."""
        return _all_reach(self.right.per_predicted_class, alpha)


def _all_reach(tallies: Sequence[Tally], alpha: Decimal) -> bool:
    return all(tally.correct >= (1 - Fraction(alpha)) * tally.count for tally in tallies)


@dataclass(frozen=True, slots=True, eq=False)
class PointAccuracy:
    """Accuracy of a point prediction without rejection.

    Attributes:
        tallies: As if all points were admitted.
        f_half: (C,) float64, F0.5 per class; NaN for a class that is neither present nor predicted.
        f_half_macro: The mean of F0.5 over the other classes.
        f_half_interval: The 95 % interval of that mean, from resampled documents, or points if documents are not known.
    """

    tallies: ClassTallies
    f_half: FloatArray
    f_half_macro: float
    f_half_interval: tuple[float, float]


def measure_method(method: MethodSets, label: IntArray, documents: Documents | None) -> MethodMeasures:
    """Measure the sets of n points, n >= 1, each of which holds the prediction."""
    predicted, included = method.predicted, method.included
    n, class_count = label.size, included.shape[1]
    check_rows(n, {f"predicted of {method.name!r}": predicted, f"included of {method.name!r}": included})
    check_classes(class_count, {"label": label, f"predicted of {method.name!r}": predicted})
    everyone = np.arange(n)
    without = ~included[everyone, predicted]
    if without.any():
        raise InvalidInputError(
            f"expected every set of {method.name!r} to hold its prediction, got one that does not in row "
            f"{int(np.argmax(without))}; add the prediction to the set"
        )
    size = included.sum(axis=1)
    single, covered = size == 1, included[everyone, label]
    strata = _strata(class_count)
    size_place = np.searchsorted([most for _, most in strata], size)

    *classes, sizes = tally_groupings(
        [
            *_by_class(label, predicted, single, covered, class_count),
            *_by_class(label, predicted, np.ones(n, np.bool_), covered, class_count),
            Grouping(size_place, covered, len(strata)),
        ],
        documents,
    )
    return MethodMeasures(
        name=method.name,
        singletons=_class_tallies(classes[:3]),
        coverage=_class_tallies(classes[3:]),
        by_size=tuple(
            SizeStratum(least, most, tally) for (least, most), tally in zip(strata, sizes, strict=True) if tally.count
        ),
        mean_size=float(size.mean()),
    )


def measure_admission(
    label: IntArray, predicted: IntArray, admitted: BoolArray, class_count: int, documents: Documents | None
) -> Admission:
    """Measure which of n predictions are admitted, n >= 1, and the share right among these."""
    check_rows(label.size, {"predicted": predicted, "admitted": admitted})
    check_classes(class_count, {"label": label, "predicted": predicted})
    *classes, (share,) = tally_groupings(
        [
            *_by_class(label, predicted, admitted, label == predicted, class_count),
            Grouping(np.zeros_like(label), admitted, 1),
        ],
        documents,
    )
    return Admission(admitted=share, right=_class_tallies(classes))


def point_accuracy(
    label: IntArray, predicted: IntArray, class_count: int, documents: Documents | None = None
) -> PointAccuracy:
    """Return the accuracy and F0.5 of a prediction for every point.

    F0.5 = 1.25 P R / (0.25 P + R) = 1.25 correct / (0.25 true + predicted), one class against the rest, macro-averaged
    over the classes that occur.
    """
    check_rows(label.size, {"predicted": predicted})
    check_classes(class_count, {"label": label, "predicted": predicted})
    everyone = np.ones(label.size, np.bool_)
    tallies = _class_tallies(
        tally_groupings(_by_class(label, predicted, everyone, label == predicted, class_count), documents)
    )
    truly, said, right = label, predicted + class_count, label[label == predicted] + 2 * class_count
    rows = np.arange(label.size)
    row = np.concatenate([rows, rows, rows[label == predicted]])
    cell = np.concatenate([truly, said, right])
    counts = np.bincount(cell, minlength=3 * class_count).astype(np.float64)
    f_half = _f_half(counts[np.newaxis], class_count)  # (1, C)
    units = documents or _single_points(label * class_count + predicted)
    resampled = _macro(_f_half(units.resampled_counts(row, cell, 3 * class_count), class_count))  # (resamples,)
    low, high = percentile_interval(resampled[:, np.newaxis])
    return PointAccuracy(tallies, f_half[0], float(_macro(f_half)[0]), (float(low[0]), float(high[0])))


def _by_class(
    label: IntArray, predicted: IntArray, chosen: BoolArray, correct: BoolArray, class_count: int
) -> list[Grouping]:
    """The chosen points by true class, by predicted class, and all of them in one cell."""
    return [
        Grouping(np.where(chosen, label, -1), correct, class_count),
        Grouping(np.where(chosen, predicted, -1), correct, class_count),
        Grouping(np.where(chosen, 0, -1), correct, 1),
    ]


def _class_tallies(tallies: list[tuple[Tally, ...]]) -> ClassTallies:
    per_true_class, per_predicted_class, (overall,) = tallies
    return ClassTallies(per_true_class, per_predicted_class, overall)


def _strata(class_count: int) -> tuple[tuple[int, int], ...]:
    if class_count <= MOST_SINGLE_SIZES:
        return tuple((size, size) for size in range(1, class_count + 1))
    *known, (last, most) = [(least, most) for least, most in SIZE_STRATA if least <= class_count]
    beyond = ((most + 1, class_count),) if class_count > most else ()
    return (*known, (last, min(most, class_count)), *beyond)


def _single_points(kind: IntArray) -> Documents:
    """Each point as a document, numbered by its kind (n,) first, so that the order of the points does not show."""
    return Documents(np.argsort(np.argsort(kind, kind="stable")), kind.size)


def _f_half(counts: FloatArray, class_count: int) -> FloatArray:
    """F0.5 (s, C) from counts (s, 3C): for each class, the points of that label, of that prediction, and of both."""
    truly, said, right = np.split(counts, [class_count, 2 * class_count], axis=1)
    weight = 0.25 * truly + said
    return np.where(weight > 0, 1.25 * right / np.where(weight > 0, weight, 1.0), np.nan)  # (s, C)


def _macro(f_half: FloatArray) -> FloatArray:
    """Mean (s,) over the classes that occur."""
    occurs = ~np.isnan(f_half)
    mean: FloatArray = np.where(occurs, f_half, 0.0).sum(axis=1) / np.maximum(occurs.sum(axis=1), 1)
    return mean
