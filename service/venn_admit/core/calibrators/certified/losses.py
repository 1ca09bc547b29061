"""What points cost by a loss, as arrays, and what an admitted point of a class can cost."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from venn_admit.core.calibrators.certification import ClassKind, GroupKind, Kind
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.loss import LossMatrix
from venn_admit.core.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """A loss as arrays.

    Attributes:
        given: The loss that was asked for; None for the 0/1 loss.
        matrix: (C, C) float64, by true and by predicted class.
        declared: (C, C) float64, what takes its place within predicted classes if class shares were declared.
    """

    given: LossMatrix | None
    matrix: FloatArray
    declared: FloatArray | None = None

    def matrix_of(self, kind: Kind) -> FloatArray:
        """Return what points cost that count in a kind of classes; in true classes it is the same under all shares."""
        return self.matrix if self.declared is None or kind is ClassKind.TRUE else self.declared

    def of(self, label: IntArray, predicted: IntArray, kind: Kind) -> FloatArray:
        """Return the loss of each of n points that count in a kind of classes, (n,) float64."""
        return self.matrix_of(kind)[label, predicted]

    def ranges(self, columns: Sequence[tuple[Kind, int]], points: CertificatePoints) -> "LossRanges":
        """Return what an admitted point of each of h classes can cost, by points with the groups that there are."""
        values = [entries(self.matrix_of(column[0]), column, points) for column in columns]
        return LossRanges(
            least=np.array([of[of > 0].min(initial=np.inf) for of in values]),
            most=np.array([of.max() for of in values]),
        )


@dataclass(frozen=True, slots=True, eq=False)
class LossRanges:
    """What an admitted point of each of h classes can cost, besides nothing.

    Attributes:
        least: (h,) float64, the smallest loss above 0; inf if there is none.
        most: (h,) float64, the largest.
    """

    least: FloatArray
    most: FloatArray

    @property
    def are_single(self) -> bool:
        """Whether each class has one loss besides 0 at most, so that the number of points that cost it is binomial."""
        return bool(((self.least == self.most) | (self.most == 0)).all())

    def largest_excess(self, alpha: float) -> FloatArray:
        """Return the most by which a point exceeds the mean loss alpha, (h,) float64 > 0; alpha where none does."""
        return np.where(self.most > alpha, self.most - alpha, alpha)

    def least_variance(self, alpha: float) -> FloatArray:
        """Return the variance that the loss of a point has at least, if its mean is alpha, (h,) float64 >= 0."""
        return alpha * np.maximum(np.where(np.isfinite(self.least), self.least, 0.0) - alpha, 0.0)


def entries(matrix: FloatArray, column: tuple[Kind, int], points: CertificatePoints) -> FloatArray:
    """Return those values of a matrix by true and predicted class that concern the points of a class that is asked for.

    Args:
        column: The kind of the class, and its number.
        points: Points with the groups that there are.
    """
    kind, number = column
    predicted = number
    if isinstance(kind, GroupKind):
        if not kind.by_predicted:
            return matrix.ravel()
        predicted //= len(points.group(kind.attribute).values)
    return matrix[number] if kind is ClassKind.TRUE else matrix[:, predicted]


def losses_of(loss: LossMatrix | None, class_count: int) -> Losses:
    """Return a loss as arrays."""
    if loss is None:
        return Losses(None, 1.0 - np.eye(class_count))
    return Losses(loss, np.array(loss, dtype=np.float64))
