"""What a method admits of each group of an evaluation set, and how much of it is right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from venn_admit.core.documents import Documents
from venn_admit.core.evaluation.tallies import Grouping, Tally, tally_groupings
from venn_admit.core.types import BoolArray, IntArray


@dataclass(frozen=True, slots=True)
class GroupShare:
    """A group of an evaluation set.

    Attributes:
        value: The attribute's value that its points have; None for points without one.
        points: How many there are.
        right: The share right of those that are admitted.
    """

    attribute: str
    value: str | None
    points: int
    right: Tally

    @property
    def admitted(self) -> float:
        """The share of its points that is admitted."""
        return self.right.count / self.points


def group_shares(
    groups: Mapping[str, Sequence[str | None]], admitted: BoolArray, correct: BoolArray, documents: Documents | None
) -> tuple[GroupShare, ...]:
    """Return the shares of each group that occurs, by attribute and value.

    Args:
        groups: The group of each of n points, by attribute; None for a point in none.
        admitted: (n,) bool.
        correct: (n,) bool.
        documents: Those of the points; None if no two share one.
    """
    found: list[GroupShare] = []
    for attribute, of_points in groups.items():
        values = sorted(set(of_points), key=lambda value: (value is None, value or ""))
        place_of = {value: place for place, value in enumerate(values)}
        group: IntArray = np.array([place_of[value] for value in of_points], dtype=np.int64)
        (tallies,) = tally_groupings([Grouping(np.where(admitted, group, -1), correct, len(values))], documents)
        sizes = np.bincount(group, minlength=len(values)).tolist()
        found += [
            GroupShare(attribute, value, size, tally) for value, size, tally in zip(values, sizes, tallies, strict=True)
        ]
    return tuple(found)
