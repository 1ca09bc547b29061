"""The contents of what a monitor says, and the names of its rows."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from venn_admit.core.calibrators.certified.points import ClassKind
from venn_admit.core.monitoring.anytime.plan import Lamp
from venn_admit.core.monitoring.anytime.readings import Reading, partition_of


@dataclass(frozen=True, slots=True)
class MonitorAlarm:
    """An alarm, or a notice, that stands. created_at: when it was seen. notified: whether a webhook took it."""

    id: int
    lamp: Lamp
    number: int
    created_at: datetime
    notified: bool


@dataclass(frozen=True, slots=True)
class RowName:
    """What a row is about: a class, and for a partition the values of q, such as `1-24`, None without."""

    class_name: str
    q: str | None


@dataclass(frozen=True, slots=True)
class MonitorReport:
    """What is known of the promise of the calibrator in use.

    neighbour_count: K; None if the classifier has logits only. setting: the calibrator's number. calibration: the
    current snapshot. monitor: the monitor's number; started_at: when it was started. documents, points: labelled ones
    that count. computed: documents that were new, or counted again. alarms: those that stand, notices included.
    promised: the kinds of classes that the promise is about.
    """

    classifier: str
    class_names: tuple[str, ...]
    neighbour_count: int | None
    method: str
    alpha: Decimal
    setting: int
    calibration: int
    monitor: int
    started_at: datetime
    documents: int
    points: int
    computed: int
    readings: tuple[Reading, ...]
    alarms: tuple[MonitorAlarm, ...]
    promised: tuple[ClassKind, ...]

    @property
    def target(self) -> Decimal:
        """The share that is promised, 1 - alpha."""
        return 1 - self.alpha

    @property
    def harmful(self) -> tuple[MonitorAlarm, ...]:
        """The alarms, which mean that admitted predictions may be wrong more often than they should be."""
        return tuple(alarm for alarm in self.alarms if self.is_harmful(alarm.lamp))

    @property
    def notices(self) -> tuple[MonitorAlarm, ...]:
        """The others."""
        return tuple(alarm for alarm in self.alarms if not self.is_harmful(alarm.lamp))

    def is_harmful(self, lamp: Lamp) -> bool:
        """Return whether it is an alarm if the lamp is lit, and not a notice."""
        return lamp.is_harmful(self.promised)

    def name(self, lamp: Lamp, number: int) -> RowName:
        """Return what a row or an alarm is about."""
        if lamp in {Lamp.PROMISE, Lamp.TRUE_CLASSES}:
            return RowName(self.class_names[number], None)
        group, predicted = partition_of(number, len(self.class_names))
        return RowName(self.class_names[predicted], self._groups[group])

    @property
    def _groups(self) -> tuple[str | None, ...]:
        most = self.neighbour_count
        if most is None:
            return (None,)
        return ("0", "1" if most == 2 else f"1-{most - 1}", str(most))
