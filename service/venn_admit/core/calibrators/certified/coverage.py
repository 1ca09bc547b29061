"""Which groups the policies of a chain admit, predicted class by predicted class."""

from collections.abc import Sequence

import numpy as np

from venn_admit.core.calibrators.certified.points import CertificatePoints, PointGroups
from venn_admit.core.calibrators.certified.policies import GroupThresholds
from venn_admit.core.types import BoolArray, IntArray

Coverage = tuple[BoolArray, ...]
"""For each attribute that is asked for, (C, V), whether each group is admitted in each predicted class."""


def covers(coverage: Coverage, points: CertificatePoints) -> BoolArray:
    """Return which points are of groups that are admitted, (n,) bool.

    Args:
        coverage: In the order of the points' attributes; none covers all points.
        points: The points; one without an attribute is of no group of it.
    """
    found = np.ones(len(points.score), dtype=np.bool_)
    for mask, of in zip(coverage, points.groups, strict=True):
        found &= (of.codes >= 0) & mask[points.predicted, of.codes]
    return found


def group_thresholds(
    parts: Sequence[tuple[Coverage, IntArray, tuple[float | None, ...]]],
    groups: Sequence[PointGroups],
    class_count: int,
) -> tuple[GroupThresholds, ...]:
    """Return the thresholds of the groups of each attribute under policies that admit disjoint groups.

    Args:
        parts: The groups that each policy covers, the predicted classes that it sets thresholds for, and these.
    """
    found = []
    for place, of in enumerate(groups):
        least: list[dict[str, float]] = [{} for _ in range(class_count)]
        for coverage, predicted, thresholds in parts:
            for number, threshold in zip(predicted.tolist(), thresholds, strict=True):
                if threshold is not None:
                    codes = np.flatnonzero(coverage[place][number]).tolist()
                    least[number] |= {of.values[code]: threshold for code in codes}
        found.append(GroupThresholds(of.attribute, tuple(least)))
    return tuple(found)
