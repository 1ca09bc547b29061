"""What a monitor fixes before the first label: the error level, the calibration data, and who is tested."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

import numpy as np

from venn_admit.core.calibrators.certification import ClassKind, GroupKind, Kind, PromisedClass
from venn_admit.core.calibrators.certified.policies import Policy
from venn_admit.core.monitoring.anytime.documents import MATCH_GROUPS, LabelledPoints, counts_of_documents, drawn
from venn_admit.core.monitoring.anytime.groups import MINIMUM_DOCUMENTS, GroupPlan, group_plan
from venn_admit.core.types import BoolArray, IntArray

LEVEL = 0.01
"""The chance that a lamp is ever lit by mistake, for each lamp; its games share it equally."""

RUN_LENGTH = 20_000
"""Documents that come on average, at least, before an early warning that is false: the e-value that it takes."""

CONFIDENCE = 0.95
"""The confidence of each lower bound by itself, at all times."""


class Lamp(StrEnum):
    """What is watched; see docs/explanation/monitoring.md."""

    PROMISE = "promise"
    TRUE_CLASSES = "true_classes"
    GROUPS = "groups"
    EARLY_PROMISE = "early_promise"
    EARLY_TRUE_CLASSES = "early_true_classes"
    EARLY_GROUPS = "early_groups"
    PARTITIONS = "partitions"
    MIX = "mix"
    LABELLED_CLASSES = "labelled_classes"
    LABELLED_SCORES = "labelled_scores"

    @property
    def warned_of(self) -> "Lamp | None":
        """The lamp that an early warning is about; None if it is no early warning."""
        return {early: lamp for lamp, early in EARLY.items()}.get(self)

    def is_harmful(self, promised: Collection[Kind] = (ClassKind.PREDICTED,)) -> bool:
        """Return whether it means that admitted predictions may be wrong more often than they should be.

        Args:
            promised: The kinds of classes that the calibrator promises something about.
        """
        if self is Lamp.GROUPS:
            return any(isinstance(kind, GroupKind) for kind in promised)
        return self is Lamp.PARTITIONS or KIND_OF_LAMP.get(self) in promised


KIND_OF_LAMP = {Lamp.PROMISE: ClassKind.PREDICTED, Lamp.TRUE_CLASSES: ClassKind.TRUE}
"""The lamps of shares right in classes, and the classes."""

EARLY = {
    Lamp.PROMISE: Lamp.EARLY_PROMISE,
    Lamp.TRUE_CLASSES: Lamp.EARLY_TRUE_CLASSES,
    Lamp.GROUPS: Lamp.EARLY_GROUPS,
}
"""The lamps of shares right, and their early warnings."""

OF_SAMPLE = (Lamp.LABELLED_CLASSES, Lamp.LABELLED_SCORES)
"""The lamps of whether labelled points are a random sample, by predicted classes, and by scores within each."""


@dataclass(frozen=True, slots=True)
class Watched:
    """What a row of a lamp, and an alarm, is about. SQL has the same rule in `venn_admit.watched_v2`.

    Attributes:
        number: Its place under the lamp, by which it is stored.
        of: The class or group; for a partition, the class that its points are predicted as.
        match_group: The group of q of a partition, in [0, 3); None for the others, and without vectors.
    """

    lamp: Lamp
    number: int
    of: PromisedClass
    match_group: int | None = None


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
        groups: What is watched of groups; None if the certificate was not asked for any.
        from_starts: Whether the games of shares right start again with every document, and there are early warnings. A
            monitor that was started before there were has games that start once, until it is started again.
        compares_sample: Whether labelled points are compared with those beside them, also in monitors from then on.
    """

    class_count: int
    alpha: Decimal
    largest_predicted: IntArray
    largest_true: IntArray
    largest_partition: IntArray
    documents: IntArray
    wrong: IntArray
    groups: GroupPlan | None = None
    from_starts: bool = False
    compares_sample: bool = False

    @property
    def partition_count(self) -> int:
        """P, the number of partitions."""
        return len(self.documents)

    @property
    def tested(self) -> BoolArray:
        """(P,) bool, the partitions with enough documents of the calibration data to be tested."""
        return self.documents >= MINIMUM_DOCUMENTS

    def games(self, lamp: Lamp) -> int:
        """How many games share the level of a lamp, at least 1.

        Each partition of the mix has two, as it may become more and less frequent, and so has each class of a sample.
        """
        if lamp is Lamp.GROUPS:
            return max(0 if self.groups is None else int(self.groups.tested.sum()), 1)
        if lamp in KIND_OF_LAMP:
            return self.class_count
        if lamp in OF_SAMPLE:
            return 2 * self.class_count
        return max(int(self.tested.sum()), 1) * (2 if lamp is Lamp.MIX else 1)

    def needed(self, lamp: Lamp, level: float) -> float:
        """Return the e-value that lights a lamp."""
        return RUN_LENGTH if lamp.warned_of else self.games(lamp) / level

    def watched(self, lamp: Lamp, number: int) -> Watched:
        """Return what the row of a lamp with a number is about.

        Args:
            number: In [0, C), [0, P) or, for groups, the place in their plan.
        """
        shares = lamp.warned_of or lamp
        if shares is Lamp.GROUPS:
            assert self.groups is not None, "a lamp of groups has groups"
            return Watched(lamp, number, self.groups.classes[number])
        group, number_of_class = divmod(number, self.class_count)
        kind = KIND_OF_LAMP.get(shares, ClassKind.PREDICTED)
        has_group = lamp in {Lamp.PARTITIONS, Lamp.MIX} and self.partition_count > self.class_count
        return Watched(lamp, number, PromisedClass(kind, number_of_class, None), group if has_group else None)


def plan_of(
    calibration: LabelledPoints,
    *,
    class_count: int,
    alpha: Decimal,
    match_groups: int = MATCH_GROUPS,
    kinds: Sequence[Kind] = (),
    policy: Policy | None = None,
) -> MonitorPlan:
    """Return the plan that follows from the calibration data.

    Args:
        calibration: The labelled points of a snapshot, all documents of which come before the first that is watched.
        match_groups: The groups of q; 1 if the classifier has logits only.
    """
    rows, partitions = drawn(calibration), match_groups * class_count
    partition, wrong = calibration.partition[rows], calibration.wrong[rows]

    def largest(group: IntArray, groups: int) -> IntArray:
        return counts_of_documents(calibration.document, group, groups)[0]

    return MonitorPlan(
        class_count=class_count,
        alpha=alpha,
        largest_predicted=largest(calibration.predicted, class_count),
        largest_true=largest(calibration.label, class_count),
        largest_partition=largest(calibration.partition, partitions),
        documents=np.bincount(partition, minlength=partitions),
        wrong=np.bincount(partition[wrong], minlength=partitions),
        groups=group_plan(calibration, kinds, policy),
        from_starts=True,
        compares_sample=True,
    )
