"""What a method admits of each group of an evaluation set, and how much of it is right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from venn_admit.core.documents import Documents
from venn_admit.core.evaluation.losses import MeanLoss, group_losses
from venn_admit.core.evaluation.tallies import Grouping, Tally, tally_groupings
from venn_admit.core.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class GroupShare:
    """A group of an evaluation set.

    Attributes:
        value: The attribute's value that its points have; None for points without one.
        points: How many there are.
        right: The share right of those that are admitted.
        loss: Their mean loss; None unless it is promised.
    """

    attribute: str
    value: str | None
    points: int
    right: Tally
    loss: MeanLoss | None = None

    @property
    def admitted(self) -> float:
        """The share of its points that is admitted."""
        return self.right.count / self.points


def group_shares(
    groups: Mapping[str, Sequence[str | None]],
    label: IntArray,
    predicted: IntArray,
    admitted: BoolArray,
    documents: Documents | None,
    loss: FloatArray | None,
) -> tuple[GroupShare, ...]:
    """Return the shares of each group that occurs, by attribute and value.

    Args:
        groups: The group of each of n points, by attribute; None for a point in none.
        loss: (C, C) float64 >= 0, what errors cost by true and by predicted class, if the mean loss is promised.
    """
    found: list[GroupShare] = []
    correct: BoolArray = predicted == label
    for attribute, of_points in groups.items():
        values = sorted(set(of_points), key=lambda value: (value is None, value or ""))
        place_of = {value: place for place, value in enumerate(values)}
        group: IntArray = np.array([place_of[value] for value in of_points], dtype=np.int64)
        (tallies,) = tally_groupings([Grouping(np.where(admitted, group, -1), correct, len(values))], documents)
        sizes = np.bincount(group, minlength=len(values)).tolist()
        losses = (
            [None] * len(values)
            if loss is None
            else group_losses(loss, label, predicted, group, len(values), admitted, documents)
        )
        found += [GroupShare(attribute, *of_value) for of_value in zip(values, sizes, tallies, losses, strict=True)]
    return tuple(found)
