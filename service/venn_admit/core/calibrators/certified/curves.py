"""How often predictions of a score are right, as the proposing points tell: g, by which thresholds are ordered."""

from dataclasses import dataclass

import numpy as np

from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.logistic import LEAST_POINTS, enough_points, fit_logistic, row_order, sigmoid
from venn_admit.core.types import BoolArray, FloatArray, IntArray

_LEAST = 1e-12
"""Scores are clipped to [1e-12, 1 - 1e-12] before their logit is taken."""


@dataclass(frozen=True, slots=True, eq=False)
class ShareCurves:
    """For each predicted class c, g_c(s) = sigmoid(a_c + b_c logit(s)), which rises with the score s.

    Attributes:
        intercept: (C,) float64, a.
        slope: (C,) float64, b > 0.
    """

    intercept: FloatArray
    slope: FloatArray

    def shares(self, score: FloatArray, predicted: IntArray) -> FloatArray:
        """Return g of some points, (n,) float64.

        Args:
            score: (n,) float64 in [0, 1].
        """
        return sigmoid(self.intercept[predicted] + self.slope[predicted] * logit(score))

    def least_scores(self, shares: FloatArray) -> FloatArray:
        """Return the scores from which on g is at least the given shares; 0 for 0 and inf for inf.

        Args:
            shares: (..., C) float64 in [0, 1), or inf for never.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            inner = (np.log(shares) - np.log1p(-shares) - self.intercept) / self.slope
        scores = np.where(np.isinf(shares), np.inf, sigmoid(np.where(np.isnan(inner), 0.0, inner)))
        return np.where(shares == 0, 0.0, scores)


def fit_curves(points: CertificatePoints, class_count: int) -> ShareCurves:
    """Fit the curves on the proposing points; the order of the points does not matter.

    A class with 50 points of which fewer than 5 are right or wrong, or whose share right falls with the score, has the
    score shifted to its share right, one right and one wrong point added; one with fewer points, the curve of all.

    Raises:
        NotReadyError: A regression found no minimum.
    """
    column, right = logit(points.score)[np.newaxis], points.predicted == points.label

    def fitted(rows: BoolArray) -> tuple[float, float]:
        of_rows = column[:, rows]
        if enough_points(right[rows]):
            order = row_order(of_rows, right[rows])
            (slope,), intercept = fit_logistic(np.ascontiguousarray(of_rows[:, order]), right[rows][order])
            if slope > 0:
                return intercept, float(slope)
        return _shift(of_rows[0], right[rows]), 1.0

    of_all = fitted(np.ones(len(right), dtype=np.bool_))
    of_class = (points.predicted == number for number in range(class_count))
    return ShareCurves(
        *np.array([fitted(rows) if np.count_nonzero(rows) >= LEAST_POINTS else of_all for rows in of_class]).T
    )


def _shift(log_odds: FloatArray, right: BoolArray) -> float:
    """The intercept at slope 1 with which the mean of g is (right + 1) / (n + 2)."""
    share = (np.count_nonzero(right) + 1) / (len(right) + 2)
    low, high = -60.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        # Summed in the order of their size, so that the order of rows does not show.
        below = np.sort(sigmoid(log_odds + middle)).sum() < share * len(right)
        low, high = (middle, high) if below else (low, middle)
    return low


def logit(probability: FloatArray) -> FloatArray:
    """Return log(p / (1 - p)), p clipped to [1e-12, 1 - 1e-12].

    Args:
        probability: (...,) float64 in [0, 1].
    """
    clipped = np.clip(probability, _LEAST, 1 - _LEAST)
    return np.log(clipped) - np.log(1 - clipped)
