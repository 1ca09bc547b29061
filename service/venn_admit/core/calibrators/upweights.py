"""The weight of a scored point in its own category (docs/PROCEDURE.md, sections 5 and 9)."""

import numpy as np

from venn_admit.core.types import FloatArray
from venn_admit.errors import InvalidInputError


def upweights(category_weight: FloatArray) -> FloatArray:
    """Return w = 1 / psi', inf if psi' is 0, and at least 1, although rounding may lift psi' above 1.

    Args:
        category_weight: (m,) float64 in [0, 1], psi', the localizer's mass on the category of each point.

    Returns:
        (m,) float64 in [1, inf].

    Examples:
        >>> upweights(np.array([1.0, 0.5, 0.0])).tolist()
        [1.0, 2.0, inf]
    """
    wrong = np.flatnonzero(~((category_weight >= 0) & (category_weight <= 1 + 1e-6)))
    if wrong.size:
        row = int(wrong[0])
        raise InvalidInputError(f"point {row}: the weight of a category must be in [0, 1]; got {category_weight[row]}")
    with np.errstate(divide="ignore", over="ignore"):
        upweight: FloatArray = np.maximum(1.0 / category_weight, 1.0)
    return upweight
