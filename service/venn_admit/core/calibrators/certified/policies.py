"""Policies: one threshold for each predicted class, on its score or on its lower probability."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from venn_admit.core.calibrators.certification import GroupKind, Kind, PromisedClass
from venn_admit.core.reasons import Reason
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError


class Bounded(StrEnum):
    """What the thresholds of a policy bound from below."""

    SCORE = "score"
    LOWER = "lower"
    """p0, in certificates made before thresholds were tested in sequences."""


Attributes = Mapping[str, Sequence[str | None]]
"""The value of each of n points by the name of an attribute; None for a point without one."""


@dataclass(frozen=True, slots=True)
class GroupThresholds:
    """The thresholds of the groups of an attribute.

    Attributes:
        least: (C,) for each predicted class, the least value at which each group is admitted; a group that is not
            there is never admitted.
    """

    attribute: str
    least: tuple[Mapping[str, float], ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """The thresholds at which predictions are admitted.

    Attributes:
        thresholds: (C,) in [0, 1], the least value at which each predicted class is admitted, in any group; None is
            never.
        bounded: What the value is.
        groups: Those of the attributes that the policy was certified for, which must be reached too.
        withdrawn: The predicted classes that are never admitted because what was certified of them is withdrawn.
        uncertified: The others that are never admitted, in policies whose decisions say so; see `without_threshold`.
    """

    thresholds: tuple[float | None, ...]
    bounded: Bounded = Bounded.SCORE
    groups: tuple[GroupThresholds, ...] = ()
    withdrawn: tuple[int, ...] = ()
    uncertified: tuple[int, ...] = ()

    @property
    def never(self) -> Mapping[Reason, tuple[int, ...]]:
        """Why which classes are never admitted, as far as its decisions say so."""
        return {Reason.CLASS_NOT_CERTIFIED: self.uncertified, Reason.CERTIFICATE_WITHDRAWN: self.withdrawn}


def without_threshold(thresholds: Sequence[float | None]) -> tuple[int, ...]:
    """Return the predicted classes that are never admitted.

    >>> without_threshold((0.8, None))
    (1,)
    """
    return tuple(number for number, threshold in enumerate(thresholds) if threshold is None)


def each_threshold(policy: Policy) -> dict[tuple[int, str, str], float | None]:
    """Return every threshold by predicted class, attribute and group; both are empty for that of any group.

    Examples:
        >>> each_threshold(Policy((0.8, None), groups=(GroupThresholds("region", ({"north": 0.9}, {})),)))
        {(0, '', ''): 0.8, (1, '', ''): None, (0, 'region', 'north'): 0.9}
    """
    of_classes: dict[tuple[int, str, str], float | None] = {
        (number, "", ""): threshold for number, threshold in enumerate(policy.thresholds)
    }
    return of_classes | {
        (number, of.attribute, group): least
        for of in policy.groups
        for number, groups in enumerate(of.least)
        for group, least in groups.items()
    }


def least_values(predicted: IntArray, policy: Policy, attributes: Attributes) -> FloatArray:
    """Return the least value at which each point is admitted, (n,) float64; inf for one that never is."""
    least = np.array([math.inf if one is None else one for one in policy.thresholds])[predicted]
    for of in policy.groups:
        values = attributes.get(of.attribute) or [None] * len(predicted)
        pairs = zip(predicted.tolist(), values, strict=True)
        least = np.maximum(least, [math.inf if one is None else of.least[c].get(one, math.inf) for c, one in pairs])
    return least


def admitted_groups(policy: Policy, kinds: Sequence[Kind]) -> list[PromisedClass]:
    """Return the groups, and the predicted classes within groups, of which a policy admits anything.

    Args:
        kinds: What it was certified for; those of groups count.

    Examples:
        >>> policy = Policy((0.8, None), groups=(GroupThresholds("region", ({"north": 0.9}, {})),))
        >>> [of.value for of in admitted_groups(policy, [GroupKind("group:region")])]
        ['north']
    """
    found = [
        PromisedClass(kind, number if kind.by_predicted else None, value)
        for kind in kinds
        for of in policy.groups
        if isinstance(kind, GroupKind) and of.attribute == kind.attribute
        for number, least in enumerate(of.least)
        for value in least
    ]
    return list(dict.fromkeys(found))


def are_covered(predicted: IntArray, policy: Policy, attributes: Attributes) -> BoolArray:
    """Return which points are of a class that is never admitted, or of groups that are, (n,) bool."""
    never = np.array([one is None for one in policy.thresholds])[predicted]
    return never | np.isfinite(least_values(predicted, policy, attributes))


def admit(value: FloatArray, predicted: IntArray, policy: Policy, attributes: Attributes | None = None) -> BoolArray:
    """Return which points a policy admits, (n,) bool.

    Args:
        value: (n,) float64, what the policy's thresholds bound; NaN is not admitted.

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
    return value >= least_values(predicted, policy, attributes or {})
