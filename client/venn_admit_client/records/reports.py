"""Reports on a calibration, and what a monitor says."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from decimal import Decimal
from typing import Any

from venn_admit_client.members import member, record


@record
class Report:
    """How a calibration stands, and what to do next. As text, but not in the client, it is a report in tables.

    Attributes:
        classifier: The name of the classifier.
        calibration: The calibration, its setting and its size.
        advice: What to do next.
        document: Every figure, as JSON has it.
    """

    classifier: str = member("reviews")
    calibration: Mapping[str, Any] = member({"number": 7, "state": "current"})
    advice: tuple[Any, ...] = member([])
    document: Mapping[str, Any] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return every figure, as `venn-admit report --json` prints it."""
        return dict(self.document)


@record
class Alarm:
    """An alarm, or a notice, of a monitor that stands.

    Attributes:
        id: Its number.
        lamp: What it is about: `promise`, `true_classes`, `groups`, `partitions` or `mix`; `labelled_classes` and
            `labelled_scores` are about whether labelled points are a random sample; `early_promise`,
            `early_true_classes` and `early_groups` are early warnings of the first three.
        kind: The kind of class that it is about: `predicted`, `true`, `group:COLUMN` or `predicted*group:COLUMN`.
        harmful: Whether it is an alarm: admitted predictions may be wrong more often than they should be; otherwise it
            is a notice.
        label: The class that it is about: the true one for `true_classes`, otherwise the one predicted; None for a
            group of all classes.
        group: The value of the attribute that its group has; None if it is about no group.
        match_counts: The values of q in the partition that it is about, such as `1-24`; None if it is about no
            partition, and with logits only.
        target: The share right that is promised, 1 - alpha.
        since: When it was seen.
        document: Everything, with the figures behind it, as a webhook is sent it.
    """

    id: int = member(3, "alarm")
    lamp: str = member("true classes")
    kind: str = member("true")
    harmful: bool = member(True)
    label: str | None = member("positive", "class")
    group: str | None = member("north")
    match_counts: str | None = member("1-24", "q")
    target: Decimal = member("0.9")
    since: datetime = member("2026-07-01T12:00:00+00:00")
    document: Mapping[str, Any] = field(repr=False)


@record
class Monitor:
    """Whether the promise still holds, as far as labels that count tell. As text, but not in the client, it is tables.

    Attributes:
        classifier: The name of the classifier.
        alarm: Whether an alarm stands: admitted predictions may be wrong more often than they should be.
        alarms: The alarms and notices that stand.
        documents: How many documents with labels count.
        points: How many labelled points of theirs count.
        document: Every figure, as JSON has it.
    """

    classifier: str = member("reviews")
    alarm: bool = member(False)
    alarms: tuple[Alarm, ...] = member()
    documents: int = member(400)
    points: int = member(400)
    document: Mapping[str, Any] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return every figure, as `venn-admit monitor --json` prints it; an infinite e-value is `inf`."""
        return dict(self.document)
