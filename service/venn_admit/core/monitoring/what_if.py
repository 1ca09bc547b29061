"""What a change would do: to the KNN's view of points, to a snapshot, and to decisions."""

from dataclasses import dataclass

import numpy as np

from venn_admit.core.types import Approximation, IntArray


@dataclass(frozen=True, slots=True)
class ViewChanges:
    """How the KNN's view of some points would change.

    Attributes:
        touched: Those that have a changed training exemplar among their neighbours.
    """

    points: int
    touched: int
    predicted: int
    match_count: int
    distance: int

    def __add__(self, other: "ViewChanges") -> "ViewChanges":
        """Return the sum over other points."""
        return ViewChanges(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class SnapshotFact:
    """A property of a snapshot, as it is and as it would be."""

    name: str
    before: float | str
    after: float | str


@dataclass(frozen=True, slots=True)
class SnapshotCount:
    """How many parts of a snapshot would differ."""

    name: str
    changed: int
    total: int


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotEffects:
    """How the snapshot that would follow differs from the one in use."""

    facts: tuple[SnapshotFact, ...]
    counts: tuple[SnapshotCount, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Flips:
    """Decisions that would differ, counted for each of C classes; a class is that of an admitted prediction.

    Attributes:
        admitted_before: (C,) int64, admitted as the class.
        admitted_after: (C,) int64, those that would be.
        rejected: (C,) int64, admitted as the class, and rejected then.
        admitted: (C,) int64, rejected, and admitted as the class then.
        moved_from: (C,) int64, admitted as the class, and as another class then.
        moved_to: (C,) int64, admitted as another class, and as this one then.
    """

    admitted_before: IntArray
    admitted_after: IntArray
    rejected: IntArray
    admitted: IntArray
    moved_from: IntArray
    moved_to: IntArray

    @property
    def total(self) -> int:
        """How many decisions would differ."""
        return int(self.rejected.sum() + self.admitted.sum() + self.moved_to.sum())

    def __add__(self, other: "Flips") -> "Flips":
        """Return the sum over the decisions on other points."""
        return Flips(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


def view_changes(before: Approximation, after: Approximation) -> ViewChanges:
    """Count how the view of n points would change; all of them count as touched."""
    return ViewChanges(
        points=len(before.predicted),
        touched=len(before.predicted),
        predicted=int((before.predicted != after.predicted).sum()),
        match_count=int((before.match_count != after.match_count).sum()),
        distance=int((before.distance != after.distance).sum()),
    )


def count_flips(before: IntArray, after: IntArray, class_count: int) -> Flips:
    """Count n decisions that are and that would be.

    Args:
        before: (n,) int64, the admitted class, -1 if rejected.
        after: (n,) int64, the classes afterwards, in the same form.

    Examples:
        >>> flips = count_flips(np.array([0, 0, -1, 1, 1]), np.array([0, -1, 1, 1, 0]), 2)
        >>> flips.rejected.tolist(), flips.admitted.tolist(), flips.moved_from.tolist(), flips.moved_to.tolist()
        ([1, 0], [0, 1], [0, 1], [1, 0])
        >>> flips.total
        3
    """

    def per_class(classes: IntArray) -> IntArray:
        return np.bincount(classes[classes >= 0], minlength=class_count)

    moved = (before >= 0) & (after >= 0) & (before != after)
    return Flips(
        admitted_before=per_class(before),
        admitted_after=per_class(after),
        rejected=per_class(before[after < 0]),
        admitted=per_class(after[before < 0]),
        moved_from=per_class(before[moved]),
        moved_to=per_class(after[moved]),
    )
