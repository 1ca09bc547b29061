"""Selective classification with guaranteed risk (SGR): one threshold on a confidence, with a bound on the error.

Source: Geifman & El-Yaniv (2017), *Selective classification for deep neural networks*, Algorithm 1.
"""

from dataclasses import dataclass
from decimal import Decimal
from math import ceil, inf, log2

import numpy as np

from venn_admit.core.calibrators.certified.certification import DEFAULT_CONFIDENCE
from venn_admit.core.calibrators.certified.hypothesis_tests import binomial_tail
from venn_admit.core.checks import check_lengths
from venn_admit.core.types import BoolArray, FloatArray
from venn_admit.errors import InvalidInputError

_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class GuaranteedRisk:
    """The threshold that was found, and what it rests on.

    Attributes:
        threshold: The least confidence that is admitted; inf if no threshold passed, so that nothing is admitted.
        admitted: How many calibration points reach the threshold.
        wrong: How many of them are wrong.
        bound: The upper bound of the share wrong among what is admitted; 1 if nothing is.
    """

    threshold: float
    admitted: int
    wrong: int
    bound: float


def guaranteed_risk(
    confidence: FloatArray, right: BoolArray, *, alpha: Decimal, level: Decimal = DEFAULT_CONFIDENCE
) -> GuaranteedRisk:
    """Return the lowest threshold found under which at most alpha of all admitted predictions are wrong.

    A binary search over the m sorted confidences tries k = ceil(log2 m) thresholds. A threshold passes if the exact
    binomial upper bound of the share wrong, at confidence 1 - (1 - level) / k, is at most alpha. The search goes on
    with a lower threshold after one that passes, and with a higher one after one that does not. The points must be
    independent of each other and of whatever the confidence was fitted on; the promise is about all admitted points
    together, and about no class. Unlike the paper's, this search returns the last threshold that passed, not the last
    that it tried. Neither the order of the points nor an order among equal confidences matters.

    Args:
        confidence: (m,) float64, finite.
        right: (m,) bool, whether the prediction is the label.
        alpha: The largest share wrong, exact decimal in (0, 1).
        level: The confidence over the calibration data, exact decimal in (0, 1).

    Raises:
        InvalidInputError: An argument is out of range, or the arrays differ in length.

    Examples:
        >>> found = guaranteed_risk(np.arange(100) / 100, np.arange(100) >= 20, alpha=Decimal("0.1"))
        >>> found.threshold, found.admitted, found.wrong
        (0.19, 81, 1)
    """
    check_lengths(confidence=confidence, right=right)
    for name, value in (("alpha", alpha), ("the confidence of the guarantee", level)):
        if not (value.is_finite() and 0 < value < 1):
            raise InvalidInputError(f"{name} must lie in (0, 1), got {value}; pass a share such as 0.1 or 0.95")
    if not np.isfinite(confidence).all():
        raise InvalidInputError("expected finite confidences, got NaN or infinity; remove or repair the points")
    ascending = np.sort(confidence)
    wrong_confidence = np.sort(confidence[~right])
    count = len(ascending)
    tests = max(1, ceil(log2(count))) if count else 0
    share = float(1 - level) / max(tests, 1)
    best = GuaranteedRisk(inf, 0, 0, 1.0)
    low, high = 1, count
    for _ in range(tests):
        middle = -(-(low + high) // 2)
        threshold = float(ascending[middle - 1])
        admitted = count - int(np.searchsorted(ascending, threshold))
        wrong = len(wrong_confidence) - int(np.searchsorted(wrong_confidence, threshold))
        if binomial_tail(wrong, admitted, float(alpha)) <= share:
            high, best = middle, GuaranteedRisk(threshold, admitted, wrong, 1.0)
        else:
            low = middle
    if not best.admitted:
        return best
    return GuaranteedRisk(
        best.threshold, best.admitted, best.wrong, binomial_upper_bound(best.wrong, best.admitted, share)
    )


def binomial_upper_bound(wrong: int, count: int, level: float) -> float:
    """Return the share b at which at most `wrong` of `count` points are wrong with probability `level`.

    It is the exact (Clopper-Pearson) upper bound of the share wrong at confidence 1 - level.

    Args:
        wrong: In [0, count].
        count: >= 1.
        level: In (0, 1).

    Examples:
        >>> round(binomial_upper_bound(0, 29, 0.05), 4)
        0.0981
    """
    if wrong >= count:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if binomial_tail(wrong, count, middle) > level else (low, middle)
    return high
