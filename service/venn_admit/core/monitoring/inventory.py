"""The data stored of a classifier, in numbers."""

from dataclasses import dataclass
from datetime import datetime

from venn_admit.core.types import Split


@dataclass(frozen=True, slots=True)
class LabelSelection:
    """Current labels of held-out and scored exemplars that were chosen in the same way, as their latest event says.

    Attributes:
        selection: random or selected.
        exemplars: The number of exemplars.
        first: When the earliest of these events arrived.
        newest: When the latest of them arrived.
    """

    selection: str
    exemplars: int
    first: datetime
    newest: datetime


@dataclass(frozen=True, slots=True)
class SnapshotChanges:
    """How the labelled points of mc and vp, as they are now, differ from those of a snapshot.

    Attributes:
        arrived: Points that are not in the snapshot.
        changed: Points that have another label in it, or are in the other split.
        left: Points of the snapshot that are no longer in mc or vp.
    """

    arrived: int
    changed: int
    left: int

    @property
    def total(self) -> int:
        return self.arrived + self.changed + self.left


@dataclass(frozen=True, slots=True)
class Inventory:
    """The exemplars of each split, how many of them have a label, and how the labels were chosen.

    training_waiting: those of split train that wait for jobs that are running, and train afterwards.
    """

    exemplars: dict[Split, int]
    labelled: dict[Split, int]
    selections: tuple[LabelSelection, ...]
    training_waiting: int
