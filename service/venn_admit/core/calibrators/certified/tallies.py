"""What a policy admits in each document, counted for each class that the promise is asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.types import BoolArray, IntArray

TOGETHER_BYTES = 8 << 20


class ClassKind(StrEnum):
    """The classes among whose admitted points a share is promised."""

    PREDICTED = "predicted"
    TRUE = "true"


@dataclass(frozen=True, slots=True, eq=False)
class Tallies:
    """Counts for h classes: of each policy, side by side, those of each kind asked for, in the order of `ClassKind`.

    Attributes:
        admitted: (documents, h) int64.
        wrong: (documents, h) int64.
    """

    admitted: IntArray
    wrong: IntArray


def tally(points: CertificatePoints, admitted: BoolArray, kinds: Sequence[ClassKind], class_count: int) -> Tallies:
    """Count the admitted points of each document and class under each policy, and the wrong ones among them.

    Args:
        points: In canonical order.
        admitted: (policies, n) bool.
        kinds: The kinds asked for, in the order of `ClassKind`.
        class_count: C.
    """
    policy, taken = np.nonzero(admitted)
    classes = {ClassKind.PREDICTED: points.predicted[taken], ClassKind.TRUE: points.label[taken]}
    width = len(admitted) * len(kinds) * class_count
    place = points.document[taken] * width + policy * (len(kinds) * class_count)
    missed = points.predicted[taken] != points.label[taken]

    def count(rows: BoolArray | slice) -> IntArray:
        cells = [place[rows] + number * class_count + classes[kind][rows] for number, kind in enumerate(kinds)]
        counts = np.bincount(np.concatenate(cells), minlength=points.document_count * width)
        return counts.reshape(points.document_count, width)

    return Tallies(count(slice(None)), count(missed))


def policies_together(points: CertificatePoints, kinds: Sequence[ClassKind], class_count: int) -> int:
    """Return for how many policies to count together, so that the counts take about `TOGETHER_BYTES`; at least 1.

    Statistics of many classes side by side take little longer than of one.

    Args:
        points: The points to count.
        kinds: As in `tally`.
        class_count: C.
    """
    return max(1, TOGETHER_BYTES // (8 * len(points.p0) * len(kinds) * class_count))
