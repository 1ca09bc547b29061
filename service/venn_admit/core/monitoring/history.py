"""A classifier's stored data in numbers, its days, and what each of its calibrations changed."""

from dataclasses import dataclass
from datetime import date, datetime

from venn_admit.core.calibrators.certification import PromisedClass
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.core.split_names import Split


@dataclass(frozen=True, slots=True)
class LabelSelection:
    """Current labels of held-out and scored exemplars that were chosen in the same way, as their latest event says.

    Attributes:
        calibrating: Those of the exemplars that are held out.
        first: When the earliest of these events arrived.
        newest: When the latest of them arrived.
        rule: Number of the rule of audits that drew them; None unless they were drawn.
        least_probability: The smallest probability with which one of them was drawn, or None.
        largest_probability: The largest one, or None.
    """

    selection: str
    exemplars: int
    calibrating: int
    first: datetime
    newest: datetime
    rule: int | None = None
    least_probability: float | None = None
    largest_probability: float | None = None


@dataclass(frozen=True, slots=True)
class PointChanges:
    """How the labelled points of mc and vp differ from those of an earlier snapshot.

    Attributes:
        changed: Points with another label, or in the other split.
        moved: Points with another q or d.
        forgotten: Points that the earlier snapshot counted, and of which nothing is stored since.
    """

    arrived: int
    changed: int
    left: int
    moved: int = 0
    forgotten: int = 0

    @property
    def total(self) -> int:
        return self.arrived + self.changed + self.left


@dataclass(frozen=True, slots=True)
class Inventory:
    """The exemplars of each split, how many of them have a label, and how the labels were chosen.

    training_waiting: those of split train that wait for jobs that are running, and train afterwards. copies: those held
    out with the vector and logits of another. copies_apart: those of them that have one in another split, as programs
    from before stored them. training_copies: those held out with the vector and logits of one that trains.
    unlikely_logits: those held out whose logits lie in [0, 1] and sum to 1, as probabilities do.
    """

    exemplars: dict[Split, int]
    labelled: dict[Split, int]
    selections: tuple[LabelSelection, ...]
    training_waiting: int
    copies: int
    copies_apart: int
    training_copies: int
    unlikely_logits: int


COUNTED_LABELS = 20_000
"""Labels by day are counted among this many, the newest of all classifiers."""


@dataclass(frozen=True, slots=True)
class Day:
    """A day, in UTC.

    Attributes:
        decisions: Rows of the requests that were done.
        decided: Rows of these that were looked at, a sample of them.
        admitted: Rows of the sample that were admitted.
    """

    day: date
    decisions: int = 0
    decided: int = 0
    admitted: int = 0
    labels: int = 0

    @property
    def share(self) -> Tally:
        """The share that was admitted, with its interval."""
        return Tally(self.admitted, self.decided, self.decisions)


@dataclass(frozen=True, slots=True)
class SnapshotChange:
    """A snapshot, and what it changed against the one before it that is still kept.

    Attributes:
        state: current if its setting still has it, retired, or withheld if it was never put in use.
        previous: The number of the one before; None for the first.
        other_settings: What was asked for otherwise, such as kappa.
        admitted: The share of its calibration data that it would admit; None if these are too many to count that here.
    """

    calibration: int
    created_at: datetime
    reason: str
    method: str
    state: str
    mc_count: int
    vp_count: int
    previous: int | None
    points: PointChanges | None
    other_parameters: bool
    other_training: bool
    other_settings: tuple[str, ...]
    admitted: float | None


@dataclass(frozen=True, slots=True)
class ChainAdvance:
    """What a chain of a certificate that stands had come to in a snapshot.

    Attributes:
        chain: 1, 2, ... among all generations of the classifier.
        documents: Those that counted; labels: of the points in them.
        admitted: The share of these points that it admitted, 0 if nothing was certified.
        evidence: The largest wealth of the next threshold of each predicted class as a part of what it needs; 1 if none
            is left. If true classes are asked for, that of the class whose next policy lacks most, under None.
    """

    calibration: int
    created_at: datetime
    chain: int
    documents: int
    labels: int
    admitted: float
    evidence: dict[int | None, float]


@dataclass(frozen=True, slots=True)
class PromiseAlarm:
    """An alarm of the promise for a class. ended_at: None if it stands."""

    about: PromisedClass
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class ChainHistory:
    """The advances of all chains of a classifier that are kept, and its alarms of the promise, the oldest first."""

    advances: tuple[ChainAdvance, ...]
    alarms: tuple[PromiseAlarm, ...]
