"""The rank statistic that conformal prediction rests on (docs/PROCEDURE.md, sections 4 and 7)."""

from decimal import Decimal
from fractions import Fraction

import numpy as np

from venn_admit.core.types import IntArray


def conformal_rank(counts: IntArray, alpha: Decimal) -> IntArray:
    """Return ceil((n + 1)(1 - alpha)) for each count n, in exact arithmetic.

    Args:
        counts: int64 of any shape, n >= 0.
        alpha: Error level, an exact decimal in (0, 1).

    Returns:
        int64, of the shape of `counts`. The rank exceeds n if n points are too few for this alpha.

    Examples:
        >>> conformal_rank(np.array([8, 9, 10, 19]), Decimal("0.1"))
        array([ 9,  9, 10, 18])
    """
    confidence = 1 - Fraction(alpha)
    largest = int(counts.max(initial=0)) + 1
    if largest * confidence.numerator > np.iinfo(np.int64).max:
        counts = counts.astype(object)  # Python integers, for an alpha whose digits would overflow int64
    return (-(-(counts + 1) * confidence.numerator // confidence.denominator)).astype(np.int64)
