"""Risk-coverage curves: the share wrong among the most confident predictions, and the area under it.

Sources: El-Yaniv & Wiener (2010), *On the foundations of noise-free selective classification*; Geifman, Uziel &
El-Yaniv (2019), *Bias-reduced uncertainty estimation for deep neural classifiers*, for the area.
"""

from dataclasses import dataclass

import numpy as np

from venn_admit.core.evaluation.curves import CoverageCurve, coverage_curve
from venn_admit.core.types import BoolArray, FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class RiskCurve:
    """How one method's confidence ranks its predictions.

    Attributes:
        name: The method's name.
        curve: Its points, from the highest confidence down, as far as some threshold admits them.
        area: The area under the risk-coverage curve, in [0, 1]; less is better.
    """

    name: str
    curve: CoverageCurve
    area: float

    @property
    def coverage(self) -> FloatArray:
        """(m,) float64, the share of all points at or above each threshold."""
        coverage: FloatArray = self.curve.count / self.curve.total
        return coverage

    @property
    def risk(self) -> FloatArray:
        """(m,) float64, the share wrong among them."""
        risk: FloatArray = (self.curve.count - self.curve.correct) / self.curve.count
        return risk


def risk_curve(name: str, confidence: FloatArray, right: BoolArray) -> RiskCurve:
    """Return the risk-coverage curve of n points and the area under it.

    The area (AURC) is the mean over k = 1, ..., n of the share wrong among the k most confident points. Among points
    of equal confidence it is the expectation over their orders: their errors are spread evenly. Points without a
    confidence, which no threshold admits, come last as equals; the curve itself ends before them.

    Args:
        name: The method's name.
        confidence: (n,) float64, n >= 1; NaN for a point that can never be admitted.
        right: (n,) bool, whether the method's prediction is the label.

    Raises:
        InvalidInputError: The arrays differ in length.

    Examples:
        >>> risk_curve("", np.array([0.9, 0.8, 0.7, np.nan]), np.array([True, False, True, True])).area
        0.2708333333333333
    """
    curve = coverage_curve(confidence, right)
    wrong = curve.count - curve.correct
    everything = np.count_nonzero(~right)
    taken = np.arange(1, curve.total + 1)
    errors = np.interp(taken, [0, *curve.count, curve.total], [0, *wrong, everything])
    return RiskCurve(name, curve, float(np.sum(errors / taken) / curve.total))
