"""Policies: one threshold for each predicted class, on its score or on its lower probability."""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError


class Bounded(StrEnum):
    """What the thresholds of a policy bound from below."""

    SCORE = "score"
    LOWER = "lower"
    """p0, in certificates made before thresholds were tested in sequences."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The thresholds at which predictions are admitted.

    Attributes:
        thresholds: (C,) in [0, 1], the least value at which each predicted class is admitted; None is never.
        bounded: What the value is.
    """

    thresholds: tuple[float | None, ...]
    bounded: Bounded = Bounded.SCORE


def admit(value: FloatArray, predicted: IntArray, policy: Policy) -> BoolArray:
    """Return which points a policy admits.

    Args:
        value: (n,) float64, what the policy's thresholds bound; NaN is not admitted.
        predicted: (n,) int64 in [0, C), the predicted class.
        policy: The policy of C classes.

    Returns:
        (n,) bool.

    Raises:
        InvalidInputError: The arrays differ in length, or a class is unknown to the policy.

    Examples:
        >>> admit(np.array([0.9, 0.9]), np.array([0, 1]), Policy((0.8, None))).tolist()
        [True, False]
    """
    if len(value) != len(predicted) or (
        len(predicted) and not 0 <= predicted.min() <= predicted.max() < len(policy.thresholds)
    ):
        raise InvalidInputError(
            f"expected values and predictions of the same points in [0, {len(policy.thresholds)}), got {len(value)} "
            f"and {len(predicted)}; pass what the policy was certified for"
        )
    thresholds = np.array([math.inf if one is None else one for one in policy.thresholds])
    admitted: BoolArray = value >= thresholds[predicted]
    return admitted
