"""Certificates that look at the same labels one after the other, and hold together with one confidence."""

from decimal import ROUND_FLOOR, Decimal

_LEAST = Decimal("1e-6")
"""Levels are rounded down to this."""


def confidence_of_next(confidence: Decimal, spent: Decimal, looks: int) -> Decimal | None:
    """Return the confidence that the next certificate of a family has by itself; None if nothing is left for it.

    The k-th has 1 / (k + 1) of what those before it left of 1 - confidence, so that however many follow, the chance
    that any of them falls short is at most 1 - confidence (union bound). If all are of the family, that is
    (1 - confidence) / (k (k + 1)).

    Args:
        confidence: In (0, 1), that of the family.
        spent: The sum of 1 - confidence of the certificates before, >= 0.
        looks: Their number, k - 1.

    Examples:
        >>> confidence_of_next(Decimal("0.94"), Decimal(0), 0), confidence_of_next(Decimal("0.94"), Decimal("0.03"), 1)
        (Decimal('0.97'), Decimal('0.99'))
        >>> confidence_of_next(Decimal("0.95"), Decimal("0.05"), 1)
    """
    level = ((1 - confidence - spent) / (looks + 2)).quantize(_LEAST, ROUND_FLOOR)
    return (1 - level).normalize() if level > 0 else None
