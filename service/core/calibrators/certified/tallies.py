"""What a policy admits in each document, counted for each class that the promise is asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from venn_admit.service.core.calibrators.certified.points import CertificatePoints
from venn_admit.service.core.types import BoolArray, IntArray


class ClassKind(StrEnum):
    """The classes among whose admitted points a share is promised."""

    PREDICTED = "predicted"
    TRUE = "true"


@dataclass(frozen=True, slots=True, eq=False)
class Tallies:
    """Counts for h classes: those of each kind asked for, in the order of `ClassKind`.

    Attributes:
        admitted: (documents, h) int64.
        wrong: (documents, h) int64.
    """

    admitted: IntArray
    wrong: IntArray


def tally(points: CertificatePoints, admitted: BoolArray, kinds: Sequence[ClassKind], class_count: int) -> Tallies:
    """Count the admitted points of each document and class, and the wrong ones among them.

    Args:
        points: In canonical order.
        admitted: (n,) bool.
        kinds: The kinds asked for, in the order of `ClassKind`.
        class_count: C.
    """
    documents = points.document_count
    taken = np.flatnonzero(admitted)
    missed = taken[points.predicted[taken] != points.label[taken]]

    def count(rows: IntArray) -> IntArray:
        by_kind = []
        for kind in kinds:
            classes = points.predicted if kind is ClassKind.PREDICTED else points.label
            cell = points.document[rows] * class_count + classes[rows]
            by_kind.append(np.bincount(cell, minlength=documents * class_count).reshape(documents, class_count))
        return np.concatenate(by_kind, axis=1)

    return Tallies(count(taken), count(missed))
