"""Decisions of Venn-Abers by the pointwise promise (docs/PROCEDURE.md, sections 6 and 9)."""

from decimal import Decimal

import numpy as np

from venn_admit.service.core.calibrators.venn_abers.cells import Bounds
from venn_admit.service.core.checks import check_classes, check_lengths
from venn_admit.service.core.types import BoolArray, FloatArray, IntArray, Reason, Selection


def reaches_threshold(lower: FloatArray, predicted: IntArray, thresholds: tuple[Decimal, ...]) -> BoolArray:
    """Return whether p0 reaches the threshold of the predicted class, p0 >= t_yhat.

    Both are numbers rounded once to float64, which keeps equal numbers equal.

    Args:
        lower: (m,) float64 in [0, 1], p0.
        predicted: (m,) int64 in [0, C), yhat.
        thresholds: (C,), t_c.

    Returns:
        (m,) bool.

    Raises:
        InvalidInputError: The arrays have other lengths or ranges.

    Examples:
        >>> reaches_threshold(np.array([0.9, 0.9]), np.array([0, 1]), (Decimal("0.9"), Decimal("0.91"))).tolist()
        [True, False]
    """
    check_lengths(lower=lower, predicted=predicted)
    check_classes(len(thresholds), {"predicted": predicted})
    least = np.array([float(threshold) for threshold in thresholds])
    found: BoolArray = lower >= least[predicted]
    return found


def select(bounds: Bounds, predicted: IntArray, thresholds: tuple[Decimal, ...]) -> Selection:
    """Admit the predictions whose p0 reaches the threshold of their class.

    Args:
        bounds: Of m points.
        predicted: (m,) int64 in [0, C), yhat.
        thresholds: (C,), t_c.

    Returns:
        The verdicts; the one reason to reject is `Reason.PROBABILITY_BELOW_THRESHOLD`.

    Raises:
        InvalidInputError: The arrays have other lengths or ranges.
    """
    admitted = reaches_threshold(bounds.lower, predicted, thresholds)
    reason = tuple(Reason).index(Reason.PROBABILITY_BELOW_THRESHOLD)
    return Selection(decision=np.where(admitted, predicted, -1), reason=np.where(admitted, -1, reason))
