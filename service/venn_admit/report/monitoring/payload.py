"""What a monitor says, as JSON has it, and what a webhook is sent of an alarm."""

from datetime import timedelta
from typing import Any

from venn_admit.core.calibrators.certification import ClassKind, PromisedClass
from venn_admit.core.monitoring.anytime.plan import CONFIDENCE, LEVEL, RUN_LENGTH, Lamp, Watched
from venn_admit.core.monitoring.anytime.readings import Reading, StandingAlarm
from venn_admit.report.monitoring.report import MonitorReport
from venn_admit.report.standing import chain_payload
from venn_admit_client.members import as_json


def monitor_payload(report: MonitorReport) -> dict[str, Any]:
    """Return everything that a monitor says."""
    lit = {alarm.about.lamp for alarm in report.alarms}
    return {
        "classifier": report.classifier,
        "method": report.method,
        "alpha": str(report.alpha),
        "target": str(report.target),
        "setting": report.setting,
        "calibration": report.calibration,
        "monitor": report.monitor,
        "started_at": report.started_at.isoformat(),
        "documents": report.documents,
        "points": report.points,
        "label_deadline": _deadline_payload(report),
        "level": LEVEL,
        "run_length": RUN_LENGTH,
        "from_starts": report.from_starts,
        "confidence": CONFIDENCE,
        "alarm": bool(report.harmful),
        "lamps": {str(lamp): {"harmful": report.is_harmful(lamp), "lit": lamp in lit} for lamp in Lamp},
        "readings": [_reading_payload(report, reading) for reading in report.readings],
        "alarms": [alarm_payload(report, alarm) for alarm in report.alarms],
        "groups": _groups_payload(report),
        "chain": None
        if report.standing is None
        else chain_payload(report.standing, has_ended=report.chain_has_ended, later=report.later),
        "withheld": [{"calibration": number, **as_json(why)} for number, why in report.withheld.items()],
    }


def _deadline_payload(report: MonitorReport) -> dict[str, Any] | None:
    deadline = report.deadline
    if deadline is None:
        return None
    return {
        "days": deadline.time / timedelta(days=1),
        "decided": deadline.decided,
        "without_label": max(deadline.decided - report.points, 0),
    }


def _reading_payload(report: MonitorReport, reading: Reading) -> dict[str, Any]:
    return _named(report, reading.about) | {
        "documents": reading.documents,
        "labels": reading.points,
        "right": reading.right,
        "labelled": reading.labelled,
        "share_right": reading.share_right,
        "lower_bound": reading.lower_bound,
        "e_value": reading.e_value,
        "largest_e_value": reading.most,
        "needed": reading.needed,
        "lit": reading.lit_at is not None,
        "lit_at_document": reading.lit_at,
        "since_document": reading.since,
    }


def alarm_payload(report: MonitorReport, alarm: StandingAlarm) -> dict[str, Any]:
    """Return an alarm as a webhook is sent it."""
    return (
        {"classifier": report.classifier, "setting": report.setting, "alarm": alarm.id}
        | _named(report, alarm.about)
        | {
            "harmful": report.is_harmful(alarm.about.lamp),
            "since": alarm.created_at.isoformat(),
            "target": str(report.target),
            "figures": next(
                (_reading_payload(report, reading) for reading in report.readings if reading.about == alarm.about), None
            ),
        }
    )


def _named(report: MonitorReport, about: Watched) -> dict[str, Any]:
    name = report.name(about)
    of_class = "class" if name.kind is ClassKind.TRUE else "predicted_class"
    beside = {of_class: name.class_name, "group": name.group, "q": name.q}
    return {"lamp": str(about.lamp), "kind": str(name.kind)} | {
        member: value for member, value in beside.items() if value is not None
    }


def _groups_payload(report: MonitorReport) -> dict[str, Any]:
    """What the lamp of groups does not show."""

    def named(of: PromisedClass) -> dict[str, Any]:
        name = None if of.number is None else report.class_names[of.number]
        return {"kind": str(of.kind), "predicted_class": name, "group": of.value}

    beside = report.groups
    return {
        "not_tested": [named(of) for of in beside.not_tested],
        "not_promised": [named(of) | {"labels_needed": needed} for of, needed in beside.not_promised.items()],
        "unknown": dict(beside.unknown),
    }
