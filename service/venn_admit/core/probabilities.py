"""Probabilities that were given as logits, and the logits that they stand for: their logarithms.

A softmax of the logarithms gives the probabilities back, and methods that divide logits by a temperature do as they do
with the network's own. Without them, the largest logit could exceed the next by 1 at most.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from venn_admit.core.types import BoolArray, FloatArray

FLOOR = float(np.finfo(np.float32).tiny)
"""Taken for a probability below it, such as 0, which has no logarithm: the least normal number of float32."""

_ROUNDED = 4e-3
_ROUNDED_TO_FLOAT32 = 1e-6
# One row of logits of a few classes may sum to nearly 1 by chance; this number of rows do not.
_TELLING_ROWS = 8


def are_probabilities(logits: npt.NDArray[np.floating[Any]]) -> bool:
    """Return whether each row lies in [0, 1] and sums to 1, within what float32 rounds off; of many rows, bfloat16.

    Examples:
        >>> are_probabilities(np.array([[0.25, 0.75], [1.0, 0.0]])), are_probabilities(np.array([[0.25, 0.7]]))
        (True, False)
    """
    rounded = _ROUNDED if len(logits) >= _TELLING_ROWS else _ROUNDED_TO_FLOAT32
    # One row mostly tells.
    return bool(_sum_to_one(logits[:1], rounded).all() and _sum_to_one(logits, rounded).all())


def sum_tolerance(class_count: int) -> float:
    """Return by how much the sum of C probabilities in float32 may differ from 1."""
    return _ROUNDED_TO_FLOAT32 * _terms(class_count)


def not_probabilities(values: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.intp]:
    """Return the rows that do not lie in [0, 1] or sum to 1, within what bfloat16 or two decimals round off.

    Args:
        values: (n, C).
    """
    return np.flatnonzero(~_sum_to_one(values, _ROUNDED))


def logs(probabilities: npt.NDArray[np.floating[Any]]) -> FloatArray:
    """Return the natural logarithms, of at least -87.3, the one of `FLOOR`.

    Args:
        probabilities: (n, C), in [0, 1].

    Examples:
        >>> logs(np.array([1.0, 0.5, 0.0])).round(2).tolist()
        [0.0, -0.69, -87.34]
    """
    return np.log(np.maximum(probabilities.astype(np.float64), FLOOR))


def _sum_to_one(values: npt.NDArray[np.floating[Any]], rounded: float) -> BoolArray:
    # (n, C) -> (n,)
    in_range = ((values >= 0) & (values <= 1)).all(axis=1)
    sums = values.sum(axis=1, dtype=np.float64)
    found: BoolArray = in_range & (np.abs(sums - 1) <= rounded * _terms(values.shape[1]))
    return found


def _terms(class_count: int) -> float:
    """How many times more than a probability their sum may be rounded off."""
    return max(1.0, class_count / 16)
