"""What each threshold of each predicted class would admit on `mc`, and what that would cost."""

from dataclasses import dataclass

import numpy as np

from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.types import BoolArray, FloatArray, IntArray

LARGEST_OPTION_COUNT = 256


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """The thresholds to choose from, for each predicted class; option 0 is never to admit it.

    Attributes:
        threshold: (C, k) float64, descending; inf for never, and beyond the options of a class.
        admitted: (C, k) float64, how many points of `mc` are admitted; -1 beyond the options of a class.
        wrong: (C, k, C) float64, how many of them are wrong, by their true class.
        deviation: (C, k) float64, the standard deviation over documents of e - alpha a, e the wrong and a all admitted
            points of the document, at least that of independent points of which alpha are wrong.
        largest: (C, k) float64, the largest number of admitted points of one document.
    """

    threshold: FloatArray
    admitted: FloatArray
    wrong: FloatArray
    deviation: FloatArray
    largest: FloatArray

    @property
    def right(self) -> FloatArray:
        """(C, k) float64, how many of the admitted points are right."""
        right: FloatArray = np.maximum(self.admitted, 0) - self.wrong.sum(axis=2)
        return right

    @property
    def exists(self) -> BoolArray:
        """(C, k) bool, whether there is such an option."""
        return self.admitted >= 0


def threshold_options(points: CertificatePoints, class_count: int, alpha: float) -> Options:
    """Return the options on `mc`: a threshold between any two neighbouring values of p0, or at the lowest.

    A class with many distinct values keeps those at `LARGEST_OPTION_COUNT` even steps of the number admitted.

    Args:
        points: The points of `mc`, in canonical order.
    """
    found = [_of_class(points, predicted, class_count, alpha) for predicted in range(class_count)]
    width = max(len(of_class.threshold) for of_class in found)
    threshold = np.full((class_count, width), np.inf)
    admitted = np.full((class_count, width), -1.0)
    wrong = np.zeros((class_count, width, class_count))
    deviation, largest = np.zeros((class_count, width)), np.zeros((class_count, width))
    for predicted, of_class in enumerate(found):
        size = len(of_class.threshold)
        threshold[predicted, :size] = of_class.threshold
        admitted[predicted, :size] = of_class.admitted
        wrong[predicted, :size] = of_class.wrong
        deviation[predicted, :size] = of_class.deviation
        largest[predicted, :size] = of_class.largest
    return Options(threshold, admitted, wrong, deviation, largest)


@dataclass(frozen=True, slots=True, eq=False)
class _ClassOptions:
    """The options of one predicted class, as in `Options` without the first dimension."""

    threshold: FloatArray
    admitted: IntArray
    wrong: IntArray
    deviation: FloatArray
    largest: IntArray


def _of_class(points: CertificatePoints, predicted: int, class_count: int, alpha: float) -> _ClassOptions:
    rows = np.flatnonzero(points.predicted == predicted)
    negated, place, counts = np.unique(-points.p0[rows], return_inverse=True, return_counts=True)
    values = -negated  # (k,), descending
    admitted = np.cumsum(counts)
    wrong = np.zeros((len(values), class_count), dtype=np.int64)
    np.add.at(wrong, (place, points.label[rows]), 1)
    wrong[:, predicted] = 0
    wrong = np.cumsum(wrong, axis=0)
    squares, largest = _of_documents(points, rows, place, len(values), alpha)
    kept = np.arange(len(values))
    if len(values) > LARGEST_OPTION_COUNT:
        steps = np.linspace(0, len(rows), LARGEST_OPTION_COUNT + 1)[1:]
        kept = np.unique(np.searchsorted(admitted, steps))
    lower = np.r_[values[1:], values[-1:]]
    between = (values + lower) / 2
    # The mean of two neighbouring floats may be the lower of them, which the threshold must leave out.
    threshold = np.where(between > lower, between, values)
    documents = points.document_count
    mean = (wrong.sum(axis=1) - alpha * admitted) / documents
    variance = (squares - documents * np.square(mean)) / (documents - 1)
    least = alpha * (1 - alpha) * admitted / documents
    return _ClassOptions(
        threshold=np.r_[np.inf, threshold[kept]],
        admitted=np.r_[0, admitted[kept]],
        wrong=np.concatenate([np.zeros((1, class_count), dtype=np.int64), wrong[kept]]),
        deviation=np.r_[0.0, np.sqrt(np.maximum(variance, least))[kept]],
        largest=np.r_[0, largest[kept]],
    )


def _of_documents(
    points: CertificatePoints, rows: IntArray, place: IntArray, value_count: int, alpha: float
) -> tuple[FloatArray, IntArray]:
    """Over documents, at each value of p0: the sum of the squares of e - alpha a, and the largest a; (k,) each.

    Lowering the threshold past one point adds to e - alpha a of its document its own part, and so to the square.
    """
    part = (points.label[rows] != points.predicted[rows]) - alpha
    order = np.lexsort((place, points.document[rows]))
    ordered, document = part[order], points.document[rows][order]
    position = np.arange(len(rows))
    starts = np.flatnonzero(np.r_[True, document[1:] != document[:-1]][: len(rows)])
    start = np.repeat(starts, np.diff(np.r_[starts, len(rows)]))  # where the document of each point begins
    before = np.cumsum(ordered) - ordered
    before = before - before[start]
    added = 2 * before * ordered + np.square(ordered)
    squares: FloatArray = np.cumsum(np.bincount(place[order], weights=added, minlength=value_count))
    largest = np.zeros(value_count, dtype=np.int64)
    np.maximum.at(largest, place[order], position - start + 1)
    return squares, np.maximum.accumulate(largest)
