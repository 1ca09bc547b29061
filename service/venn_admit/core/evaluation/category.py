"""What the category of one singleton says of every class, and how far its share right may be off by chance.

Sources: Schmaltz & Rasooly (2022), Algorithms 3 and 4; docs/PROCEDURE.md, section 5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isinf
from typing import Any, TypeAlias

from venn_admit.core.evaluation.tallies import share_interval


@dataclass(frozen=True, slots=True)
class CategoryShares:
    """The Venn probabilities of all classes.

    Attributes:
        lower: (C,) in [0, 1]; that of the prediction is the decision's own, to the last bit.
        upper: (C,) in [0, 1].
        right: The share of the category that has the predicted label; None if it is empty.
        interval: Its 95 % Wilson interval, as a category is a sample: (0, 1) if it is empty. Points of one document
            count as if they were independent.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    right: float | None
    interval: tuple[float, float]


Bounds: TypeAlias = tuple[Sequence[float], Sequence[float]]
"""The lower and the upper probability of each class, (C,) each."""


def category_shares(
    decided: Mapping[str, Any], counts: Sequence[int] | None, bounds: Bounds | None = None
) -> CategoryShares | None:
    """Return what the category of a decision says.

    With an assumed label c, p_c(c') = (counts[c'] + [c = c'] w) / (|T| + w), so that class c' has

        lower = counts[c'] / (|T| + w),  upper = (counts[c'] + w) / (|T| + w)

    Args:
        decided: The fields of the decision, by the names that a stored one has them under.
        counts: (C,), points of each label in the category; None if that is unknown.
        bounds: The probabilities, if they do not follow from the counts: without a division, each label has a category.

    Returns:
        None if the set is not a singleton, the method has no categories, or the counts are unknown.

    Examples:
        >>> found = category_shares({"category_size": 584, "upweight": 4.0, "predicted": 0}, [574, 10])
        >>> found.upper, round(found.right, 3)
        ((0.9829931972789115, 0.023809523809523808), 0.983)
    """
    upweight = decided.get("upweight")
    if counts is None or decided.get("category_size") is None or (upweight is None and bounds is None):
        return None
    size, right = sum(counts), counts[decided["predicted"]]
    lower, upper = _by_counts(counts, upweight) if upweight is not None else bounds or ((), ())
    return CategoryShares(
        lower=tuple(lower),
        upper=tuple(upper),
        right=right / size if size else None,
        interval=share_interval(right, size),
    )


def _by_counts(counts: Sequence[int], upweight: float) -> Bounds:
    if isinf(upweight):
        return (0.0,) * len(counts), (1.0,) * len(counts)
    total = sum(counts) + upweight
    return [count / total for count in counts], [(count + upweight) / total for count in counts]
