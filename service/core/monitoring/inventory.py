"""What is stored of a classifier, in numbers."""

from dataclasses import dataclass
from datetime import datetime

from service.core.types import Split


@dataclass(frozen=True, slots=True)
class LabelSelection:
    """Current labels of held-out and scored exemplars that were chosen alike, as their latest event says.

    selection: random or selected. first, newest: when the earliest and the latest of these events arrived.
    """

    selection: str
    exemplars: int
    first: datetime
    newest: datetime


@dataclass(frozen=True, slots=True)
class SnapshotChanges:
    """How the labelled points of mc and vp, as they are now, differ from those of a snapshot.

    arrived: not in it. changed: in it with another label or in the other split. left: in it, and no longer in mc or vp.
    """

    arrived: int
    changed: int
    left: int

    @property
    def total(self) -> int:
        return self.arrived + self.changed + self.left


@dataclass(frozen=True, slots=True)
class Inventory:
    """Exemplars of each split, how many of them have a label, and how the labels were chosen."""

    exemplars: dict[Split, int]
    labelled: dict[Split, int]
    selections: tuple[LabelSelection, ...]
