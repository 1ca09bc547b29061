"""What a monitor says, as JSON has it, and what a webhook is sent of an alarm."""

from typing import Any

from venn_admit.core.monitoring.anytime.plan import CONFIDENCE, LEVEL, Lamp
from venn_admit.core.monitoring.anytime.readings import Reading, StandingAlarm
from venn_admit.report.monitoring.report import MonitorReport
from venn_admit_client.members import as_json


def monitor_payload(report: MonitorReport) -> dict[str, Any]:
    """Return everything that a monitor says."""
    lit = {alarm.lamp for alarm in report.alarms}
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
        "level": LEVEL,
        "confidence": CONFIDENCE,
        "alarm": bool(report.harmful),
        "lamps": {str(lamp): {"harmful": report.is_harmful(lamp), "lit": lamp in lit} for lamp in Lamp},
        "readings": [_reading_payload(report, reading) for reading in report.readings],
        "alarms": [alarm_payload(report, alarm) for alarm in report.alarms],
        "withheld": [{"calibration": number, **as_json(why)} for number, why in report.withheld.items()],
    }


def _reading_payload(report: MonitorReport, reading: Reading) -> dict[str, Any]:
    return _named(report, reading.lamp, reading.number) | {
        "documents": reading.documents,
        "labels": reading.points,
        "right": reading.right,
        "share_right": reading.share_right,
        "lower_bound": reading.lower_bound,
        "e_value": reading.e_value,
        "largest_e_value": reading.most,
        "needed": reading.needed,
        "lit": reading.lit_at is not None,
        "lit_at_document": reading.lit_at,
    }


def alarm_payload(report: MonitorReport, alarm: StandingAlarm) -> dict[str, Any]:
    """Return an alarm as a webhook is sent it."""
    return (
        {"classifier": report.classifier, "setting": report.setting, "alarm": alarm.id}
        | _named(report, alarm.lamp, alarm.number)
        | {
            "harmful": report.is_harmful(alarm.lamp),
            "since": alarm.created_at.isoformat(),
            "target": str(report.target),
            "figures": next(
                (
                    _reading_payload(report, reading)
                    for reading in report.readings
                    if (reading.lamp, reading.number) == (alarm.lamp, alarm.number)
                ),
                None,
            ),
        }
    )


def _named(report: MonitorReport, lamp: Lamp, number: int) -> dict[str, Any]:
    name = report.name(lamp, number)
    kind = "class" if lamp is Lamp.TRUE_CLASSES else "predicted_class"
    of_partition = {} if name.q is None else {"q": name.q}
    return {"lamp": str(lamp), kind: name.class_name} | of_partition
