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


def select(
    bounds: Bounds, predicted: IntArray, thresholds: tuple[Decimal, ...], *, full_match: BoolArray | None = None
) -> Selection:
    """Admit the predictions whose p0 reaches the threshold of their class.

    Args:
        bounds: Of m points.
        predicted: (m,) int64 in [0, C), yhat.
        thresholds: (C,), t_c.
        full_match: (m,) bool, q = K, if the others are to be rejected; None to admit them as well.

    Returns:
        The verdicts; the reason to reject is `Reason.PROBABILITY_BELOW_THRESHOLD`, or otherwise
        `Reason.MATCH_COUNT_BELOW_K`.

    Raises:
        InvalidInputError: The arrays have other lengths or ranges.
    """
    reached = reaches_threshold(bounds.lower, predicted, thresholds)
    below, no_match = (
        tuple(Reason).index(reason) for reason in (Reason.PROBABILITY_BELOW_THRESHOLD, Reason.MATCH_COUNT_BELOW_K)
    )
    matches = np.ones_like(reached) if full_match is None else full_match
    return Selection(
        decision=np.where(reached & matches, predicted, -1),
        reason=np.where(reached, np.where(matches, -1, no_match), below),
    )
