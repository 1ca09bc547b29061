"""Reports, monitors and their alarms."""

from typing import Any

from fastapi import Request

from venn_admit.api.models.operation import Alarms, Monitor, Report
from venn_admit.api.routes.parts import OF_CLASSIFIER, CalibrationNumber, ClassifierName, Routes, finite, runtime_of
from venn_admit.flows.reports.monitor import update_monitor
from venn_admit.flows.reports.report import report
from venn_admit.http.advice import request_for
from venn_admit.report.calibration.payload import calibration_payload
from venn_admit.report.monitoring.payload import monitor_payload
from venn_admit.store.access.keys import Scope

routes = Routes("reports and monitors", OF_CLASSIFIER)


@routes.answer("GET", "/report", Scope.READ, Report, 409)
def get_report(request: Request, classifier: ClassifierName, calibration: CalibrationNumber = None) -> dict[str, Any]:
    """Show the state of a calibration: what it can admit, drift, discrepancies, and which labels it lacks."""
    runtime = runtime_of(request)
    found = report(runtime, classifier, calibration_id=calibration)
    return finite(calibration_payload(found, request_for))


@routes.answer("GET", "/monitor", Scope.READ, Monitor, 409)
def get_monitor(request: Request, classifier: ClassifierName) -> dict[str, Any]:
    """Show whether the promise still holds, by random labels of decided points; look as often as you like.

    The monitor is brought up to date with the labels first.
    """
    return finite(monitor_payload(update_monitor(runtime_of(request).engine, classifier)))


@routes.answer("GET", "/alarms", Scope.READ, Alarms, 409, name="list_alarms")
def get_alarms(request: Request, classifier: ClassifierName) -> dict[str, Any]:
    """List the alarms and notices that stand, after the monitor was brought up to date."""
    payload = monitor_payload(update_monitor(runtime_of(request).engine, classifier))
    return finite({"classifier": payload["classifier"], "alarms": payload["alarms"]})
