"""The settings of a calibrator: defaults and checks (docs/PROCEDURE.md, sections 3, 4 and 6)."""

import math
from decimal import Decimal, InvalidOperation
from itertools import pairwise

from venn_admit.core.types import CalibratorSettings
from venn_admit.errors import InvalidInputError

DECIMAL_PLACES = 20
LARGEST_KAPPA = 2**31 - 1


def make_settings(
    class_count: int,
    neighbour_count: int,
    *,
    alpha: Decimal = Decimal("0.1"),
    delta: float = 1.0,
    kappa: int = 1000,
    q_bins: tuple[int, ...] | None = None,
    thresholds: tuple[Decimal, ...] | None = None,
) -> CalibratorSettings:
    """Return checked settings. The defaults are the paper's: every q its own bin, threshold 1 - alpha for every class.

    Args:
        class_count: C >= 2.
        neighbour_count: K >= 1.
        alpha: As in `CalibratorSettings`.
        delta: As in `CalibratorSettings`.
        kappa: As in `CalibratorSettings`.
        q_bins: As in `CalibratorSettings`; None makes every q a bin of its own.
        thresholds: As in `CalibratorSettings`; None makes every threshold 1 - alpha.

    Raises:
        InvalidInputError: The settings do not fit the classifier.

    Examples:
        >>> make_settings(2, 3).q_bins
        (0, 1, 2, 3)
    """
    check_alpha(alpha)
    settings = CalibratorSettings(
        alpha=alpha,
        delta=delta,
        kappa=kappa,
        q_bins=tuple(range(neighbour_count + 1)) if q_bins is None else q_bins,
        thresholds=(1 - alpha,) * class_count if thresholds is None else thresholds,
    )
    check_settings(settings, class_count=class_count, neighbour_count=neighbour_count)
    return settings


def parse_decimal(name: str, text: str) -> Decimal:
    """Return the decimal number that a text holds, exactly.

    Args:
        name: What a message calls it.
        text: Such as `0.1`, with few enough places for 1 minus it to be exact.

    Raises:
        InvalidInputError: It holds none.
    """
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        number = Decimal("NaN")
    exponent = number.as_tuple().exponent
    if isinstance(exponent, str) or exponent < -DECIMAL_PLACES:  # an exponent that is text is that of infinity or NaN
        raise InvalidInputError(f"{name}: expected a decimal number with at most {DECIMAL_PLACES} places, got {text!r}")
    return number


def check_settings(settings: CalibratorSettings, *, class_count: int, neighbour_count: int) -> None:
    """Check that settings fit a classifier.

    Raises:
        InvalidInputError: They do not fit; the message says what was expected and received.
    """
    if class_count < 2:
        raise InvalidInputError(f"a classifier needs at least 2 classes; got {class_count}")
    check_alpha(settings.alpha)
    if math.isnan(settings.delta) or settings.delta <= 0:
        raise InvalidInputError(f"delta must be greater than 0 (inf is allowed); got {settings.delta}")
    if not 1 <= settings.kappa <= LARGEST_KAPPA:
        raise InvalidInputError(f"kappa must be at least 1 and at most {LARGEST_KAPPA:,}; got {settings.kappa}")
    check_q_bins(settings.q_bins, neighbour_count)
    check_thresholds(settings.thresholds, settings.alpha, class_count)


def check_alpha(alpha: Decimal) -> None:
    """Check an error level.

    Raises:
        InvalidInputError: It does not lie strictly between 0 and 1.
    """
    if not (alpha.is_finite() and 0 < alpha < 1):
        raise InvalidInputError(f"alpha must lie strictly between 0 and 1; got {alpha}")


def check_q_bins(edges: tuple[int, ...], neighbour_count: int) -> None:
    """Check the lower edges of the bins of q.

    Args:
        edges: As in `CalibratorSettings`.

    Raises:
        InvalidInputError: They do not ascend from 0, or one is above K.
    """
    ascending = all(lower < upper for lower, upper in pairwise(edges))
    if not edges or edges[0] != 0 or not ascending or edges[-1] > neighbour_count:
        raise InvalidInputError(
            f"the bins of q must be given by ascending lower edges, the first of them 0 and none above "
            f"K = {neighbour_count}; got {', '.join(map(str, edges)) or 'none'}"
        )


def check_thresholds(thresholds: tuple[Decimal, ...], alpha: Decimal, class_count: int) -> None:
    """Check the least lower probability of each predicted class.

    Args:
        thresholds: As in `CalibratorSettings`.
        alpha: As in `CalibratorSettings`.

    Raises:
        InvalidInputError: There are not C of them, or one is below 1 - alpha or above 1.
    """
    if len(thresholds) != class_count:
        raise InvalidInputError(
            f"expected one threshold for each of {class_count} classes, in their order, got {len(thresholds)}"
        )
    least = 1 - alpha
    for predicted, threshold in enumerate(thresholds):
        if not (threshold.is_finite() and least <= threshold <= 1):
            raise InvalidInputError(
                f"the threshold of class {predicted} must be at least 1 - alpha = {least} and at most 1; "
                f"got {threshold}"
            )
