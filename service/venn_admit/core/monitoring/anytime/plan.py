"""What a monitor fixes before the first label: the error level, the calibration data, and who is tested."""

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

import numpy as np

from venn_admit.core.calibrators.certification import ClassKind, Kind
from venn_admit.core.monitoring.anytime.documents import MATCH_GROUPS, LabelledPoints, drawn, largest_counts
from venn_admit.core.types import BoolArray, IntArray

LEVEL = 0.01
"""The chance that a lamp is ever lit by mistake, for each lamp; its games share it equally."""

CONFIDENCE = 0.95
"""The confidence of each lower bound by itself, at all times."""

MINIMUM_DOCUMENTS = 30
"""A partition with fewer documents of the calibration data is counted, and not tested."""


class Lamp(StrEnum):
    """What is watched; see docs/explanation/monitoring.md."""

    PROMISE = "promise"
    TRUE_CLASSES = "true_classes"
    PARTITIONS = "partitions"
    MIX = "mix"

    def is_harmful(self, promised: Collection[Kind] = (ClassKind.PREDICTED,)) -> bool:
        """Return whether it means that admitted predictions may be wrong more often than they should be.

        Args:
            promised: The kinds of classes that the calibrator promises something about.
        """
        kind = {Lamp.PROMISE: ClassKind.PREDICTED, Lamp.TRUE_CLASSES: ClassKind.TRUE}.get(self)
        return self is Lamp.PARTITIONS or kind in promised


@dataclass(frozen=True, slots=True, eq=False)
class MonitorPlan:
    """What does not change as labels arrive.

    Attributes:
        largest_predicted: (C,) int64 >= 1, the most points of each predicted class in a document of the calibration
            data; a later document counts with as many at most.
        largest_true: (C,) int64, the same of each true class.
        largest_partition: (P,) int64, the same of each partition; P is 3C, or C if the classifier has logits only.
        documents: (P,) int64, the documents of the calibration data whose drawn point is in each partition.
        wrong: (P,) int64, those of them whose drawn point is predicted wrong.
    """

    class_count: int
    alpha: Decimal
    largest_predicted: IntArray
    largest_true: IntArray
    largest_partition: IntArray
    documents: IntArray
    wrong: IntArray

    @property
    def partition_count(self) -> int:
        """P, the number of partitions."""
        return len(self.documents)

    @property
    def tested(self) -> BoolArray:
        """(P,) bool, the partitions with enough documents of the calibration data to be tested."""
        enough: BoolArray = self.documents >= MINIMUM_DOCUMENTS
        return enough

    def games(self, lamp: Lamp) -> int:
        """How many games share the level of a lamp, at least 1.

        Args:
            lamp: Its games; each partition of the mix has two, since it may become more and less frequent.
        """
        if lamp in {Lamp.PROMISE, Lamp.TRUE_CLASSES}:
            return self.class_count
        return max(int(self.tested.sum()), 1) * (2 if lamp is Lamp.MIX else 1)


def plan_of(
    calibration: LabelledPoints, *, class_count: int, alpha: Decimal, match_groups: int = MATCH_GROUPS
) -> MonitorPlan:
    """Return the plan that follows from the calibration data.

    Args:
        calibration: The labelled points of a snapshot, all documents of which come before the first that is watched.
        match_groups: The groups of q; 1 if the classifier has logits only.
    """
    rows, partitions = drawn(calibration), match_groups * class_count
    partition, wrong = calibration.partition[rows], calibration.wrong[rows]
    return MonitorPlan(
        class_count=class_count,
        alpha=alpha,
        largest_predicted=largest_counts(calibration, calibration.predicted, class_count),
        largest_true=largest_counts(calibration, calibration.label, class_count),
        largest_partition=largest_counts(calibration, calibration.partition, partitions),
        documents=np.bincount(partition, minlength=partitions),
        wrong=np.bincount(partition[wrong], minlength=partitions),
    )
