"""What a monitor says, the names of its rows, and its figures in the text format of Prometheus."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from venn_admit.core.calibrators.certification import Kind, PromisedClass
from venn_admit.core.calibrators.certified.certificate import Advance, Certificate, LaterChain
from venn_admit.core.monitoring.anytime.plan import KIND_OF_LAMP, Lamp, Watched
from venn_admit.core.monitoring.anytime.readings import Reading, StandingAlarm
from venn_admit.report.wording import class_text
from venn_admit_client.records.calibrations import Withheld

_PREFIX = "venn_admit_monitor"


@dataclass(frozen=True, slots=True)
class RowName:
    """What a row is about.

    text: in a table. class_name: None for a group of all classes. group: its value. q: the values of q of a partition,
    such as `1-24`.
    """

    text: str
    kind: Kind
    class_name: str | None
    group: str | None
    q: str | None


@dataclass(frozen=True, slots=True)
class GroupsBeside:
    """What the lamp of groups does not show.

    not_tested: certified, and not tested since the monitor was started with too few labels of them. not_promised: the
    labels that each would take, None if no number would do. unknown: by attribute, the labelled points that are in no
    group that the monitor knows.
    """

    not_tested: tuple[PromisedClass, ...] = ()
    not_promised: Mapping[PromisedClass, int | None] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deadline:
    """The label deadline. time: after the decision. decided: the points whose deadline has passed."""

    time: timedelta
    decided: int


def deadline_text(time: timedelta | None) -> str:
    """Return a label deadline in words.

    >>> deadline_text(timedelta(days=14)), deadline_text(timedelta(hours=36)), deadline_text(None)
    ('14 days', '1.5 days', 'none')
    """
    return "none" if time is None else f"{time / timedelta(days=1):g} day{'' if time == timedelta(days=1) else 's'}"


@dataclass(frozen=True, slots=True)
class MonitorReport:
    """What is known of the promise of the calibrator in use.

    neighbour_count: K; None if the classifier has logits only. setting: the calibrator's number. calibration: the
    current snapshot. monitor: the monitor's number; started_at: when it was started. documents, points: labelled ones
    that count. computed: documents that were new, or counted again. alarms: those that stand, notices included.
    promised: the kinds of classes that the promise is about. withheld: why newer snapshots are not in use, by their
    numbers. from_starts: whether its games start again with every document, and there are early warnings. on_average:
    whether the promise is on average over calibrations. groups: what the lamps leave out of them. deadline: None if
    documents count by their labels. standing: the certificate, if it stands while labels arrive. chain_has_ended:
    whether no later label can count for it. later: the chain of its setting that was begun since.
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
    alarms: tuple[StandingAlarm, ...]
    promised: tuple[Kind, ...]
    withheld: Mapping[int, Withheld]
    from_starts: bool
    on_average: bool = False
    groups: GroupsBeside = field(default_factory=GroupsBeside)
    deadline: Deadline | None = None
    standing: Certificate | None = None
    chain_has_ended: bool = False
    later: LaterChain | None = None

    @property
    def target(self) -> Decimal:
        """The share that is promised, 1 - alpha."""
        return 1 - self.alpha

    @property
    def unit(self) -> str:
        """What counts once: a document, or a point if each stands alone."""
        return "document" if self.documents < self.points else "point"

    @property
    def harmful(self) -> tuple[StandingAlarm, ...]:
        """The alarms, which mean that admitted predictions may be wrong more often than they should be."""
        return tuple(alarm for alarm in self.alarms if self.is_harmful(alarm.about.lamp))

    @property
    def notices(self) -> tuple[StandingAlarm, ...]:
        """The others."""
        return tuple(alarm for alarm in self.alarms if not self.is_harmful(alarm.about.lamp))

    @property
    def to_withdraw(self) -> list[PromisedClass]:
        """The classes for which an alarm stands that the standing certificate does not know yet."""
        return [of.promised for of in self._advances if of.promised in self._alarmed and not of.is_withdrawn]

    @property
    def to_give_back(self) -> list[PromisedClass]:
        """The classes that the standing certificate holds for withdrawn by an alarm that stands no longer."""
        return [
            of.promised
            for of in self._advances
            if of.is_withdrawn and of.refuted is None and of.promised not in self._alarmed
        ]

    @property
    def _alarmed(self) -> set[PromisedClass]:
        return {alarm.about.of for alarm in self.harmful if alarm.about.lamp in KIND_OF_LAMP}

    @property
    def _advances(self) -> tuple[Advance, ...]:
        if self.standing is None or self.standing.standing is None or self.chain_has_ended:
            return ()
        return self.standing.standing.classes

    def is_harmful(self, lamp: Lamp) -> bool:
        """Return whether it is an alarm if the lamp is lit, and not a notice."""
        return lamp.is_harmful(self.promised)

    def name(self, about: Watched) -> RowName:
        """Return what a row or an alarm is about, in words."""
        of, most = about.of, self.neighbour_count
        name = None if of.number is None else self.class_names[of.number]
        q = None
        if about.match_group is not None and most is not None:
            q = ("0", "1" if most == 2 else f"1-{most - 1}", str(most))[about.match_group]
        text = class_text(of, self.class_names) if of.value is not None or name is None else name
        return RowName(text, of.kind, name, of.value, q)


def metrics_text(report: MonitorReport) -> str:
    """Return the metrics: gauges, a sample for each class, group and partition."""
    classifier = {"classifier": report.classifier}
    lines = [
        *_header("documents", "Labelled documents that count."),
        _sample("documents", classifier, report.documents),
        *_header("alarms", "Alarms that stand: admitted predictions may be wrong more often than they should be."),
        _sample("alarms", classifier, len(report.harmful)),
        *_header("notices", "Notices that stand, which do no harm by themselves."),
        _sample("notices", classifier, len(report.notices)),
    ]
    figures = {
        "labels": "Admitted points with a label; for the mix, documents.",
        "right": "Admitted points that are predicted right.",
        "share_right_lower_bound": "Bound that the share right exceeds at all times, with 95 percent confidence.",
        "e_value": "Evidence against what the lamp stands for.",
        "e_value_needed": "The evidence that lights the lamp.",
        "lit": "Whether the lamp is lit.",
    }
    for figure, meaning in figures.items():
        lines += _header(figure, meaning)
        for reading in report.readings:
            value = _value(reading, figure)
            if value is not None:
                lines.append(_sample(figure, classifier | _labels(report, reading), value))
    return "\n".join(lines) + "\n"


def _value(reading: Reading, figure: str) -> float | None:
    values: dict[str, float | None] = {
        "labels": reading.points,
        "right": reading.right,
        "share_right_lower_bound": reading.lower_bound,
        "e_value": reading.e_value,
        "e_value_needed": reading.needed,
        "lit": int(reading.lit_at is not None),
    }
    return values[figure]


def _labels(report: MonitorReport, reading: Reading) -> dict[str, str]:
    name = report.name(reading.about)
    kind = None if name.group is None else str(name.kind)
    beside = {"class": name.class_name, "kind": kind, "group": name.group, "q": name.q}
    return {"lamp": str(reading.about.lamp)} | {label: value for label, value in beside.items() if value is not None}


def _header(figure: str, meaning: str) -> tuple[str, str]:
    return f"# HELP {_PREFIX}_{figure} {meaning}", f"# TYPE {_PREFIX}_{figure} gauge"


def _sample(figure: str, labels: dict[str, str], value: float) -> str:
    written = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
    shown = "+Inf" if math.isinf(value) else repr(value)
    return f"{_PREFIX}_{figure}{{{written}}} {shown}"


def _escaped(text: str) -> str:
    r"""A label value: backslash, quote and line break are escaped.

    >>> print(_escaped('a "b"\\\n'))
    a \"b\"\\\n
    """
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
