"""Points as the stages of a cascade see them, and what becomes of them at each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from venn_admit.core.calibrators.certified.points import CertificatePoints, check_points, content_order
from venn_admit.core.calibrators.certified.policies import Policy, admit
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.errors import InvalidInputError


@dataclass(frozen=True, slots=True, eq=False)
class CascadePoints:
    """Labelled points as each of m stages sees them.

    Attributes:
        score: (m, n) float64 in [0, 1], which must not depend on the labels of these points if they are evidence.
        predicted: (m, n) int64 in [0, C), the class that each stage predicts.
        label: (n,) int64 in [0, C), the true class.
        document: (n,) int64, the same number for the points of one document, and for no others.
    """

    score: FloatArray
    predicted: IntArray
    label: IntArray
    document: IntArray

    def stage(self, place: int) -> CertificatePoints:
        """Return the points as one stage sees them.

        Args:
            place: In [0, m).
        """
        return CertificatePoints(self.score[place], self.predicted[place], self.label, self.document)

    def stacked(self) -> CertificatePoints:
        """Return a row for each stage and point, (m n,), by stage."""
        stages = len(self.score)
        label, document = np.tile(self.label, stages), np.tile(self.document, stages)
        return CertificatePoints(self.score.ravel(), self.predicted.ravel(), label, document)

    def take(self, rows: BoolArray | IntArray) -> "CascadePoints":
        """Return some of the points."""
        return CascadePoints(self.score[:, rows], self.predicted[:, rows], self.label[rows], self.document[rows])


def check_cascade_points(name: str, points: CascadePoints, class_count: int) -> None:
    """Raise InvalidInputError unless the arrays fit together and every value is in its range; it calls them by name."""
    if points.score.shape != points.predicted.shape or points.score.shape[1:] != points.label.shape:
        raise InvalidInputError(
            f"{name}: expected a score and a predicted class for each stage and point, got {points.score.shape}, "
            f"{points.predicted.shape} and {points.label.shape} labels"
        )
    for place in range(len(points.score)):
        check_points(f"{name} at stage {place + 1}", points.stage(place), class_count)


def canonical_order(points: CascadePoints) -> tuple[CascadePoints, np.random.Generator]:
    """Return the points in an order that depends on their content only, and a generator seeded by that content."""
    taken, document, generator = content_order(points.stage(0), [*points.predicted[1:]], [*points.score[1:]])
    return replace(points.take(taken), document=document), generator


@dataclass(frozen=True, slots=True, eq=False)
class StageCounts:
    """What became of some labelled points at one stage.

    Attributes:
        reached: How many reached it.
        served: (C,) int64, how many it served, by predicted class.
        right: (C,) int64, how many of these are right.
    """

    reached: int
    served: IntArray
    right: IntArray


def stage_policies(policy: Policy, class_count: int) -> tuple[Policy, ...]:
    """Return the policy of each stage.

    Args:
        policy: That of a certificate of a cascade.

    Examples:
        >>> [of.thresholds for of in stage_policies(Policy((0.9, 0.8, 0.7, None)), 2)]
        [(0.9, 0.8), (0.7, None)]
    """
    starts = range(0, len(policy.thresholds), class_count)
    return tuple(Policy(policy.thresholds[start : start + class_count], policy.bounded) for start in starts)


def serve(points: CascadePoints, policies: Sequence[Policy]) -> list[StageCounts]:
    """Return what becomes of labelled points at each stage.

    Args:
        points: As m stages see them.
        policies: Those of the stages, of C classes each.
    """
    left = np.ones(len(points.label), dtype=np.bool_)
    found = []
    for place, policy in enumerate(policies):
        of_stage, class_count = points.stage(place), len(policy.thresholds)
        served = left & admit(of_stage.score, of_stage.predicted, policy)
        right = served & (of_stage.predicted == of_stage.label)
        counts = (np.bincount(of_stage.predicted[rows], minlength=class_count) for rows in (served, right))
        found.append(StageCounts(int(np.count_nonzero(left)), *counts))
        left &= ~served
    return found
