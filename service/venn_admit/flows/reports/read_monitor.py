"""What the monitor of a calibration said when it was last looked at: nothing is counted again or written."""

from sqlalchemy import Connection

from venn_admit.core.monitoring.anytime.readings import readings
from venn_admit.core.monitoring.anytime.state import MonitorState, initial_state
from venn_admit.report.calibration.common.watch import Watch
from venn_admit.report.monitoring.report import MonitorAlarm, MonitorReport
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.decisions import monitors
from venn_admit.store.decisions.monitors import StandingAlarm, StoredMonitor
from venn_admit.store.exemplars.classifiers import Classifier


def read_monitor(connection: Connection, classifier: Classifier, calibration: Calibration) -> Watch:
    """Return what the monitor of a calibration's setting says."""
    if calibrations.latest(connection, classifier).calibrator_id != calibration.calibrator_id:
        return Watch(is_in_use=False, said=None, is_behind=False)
    monitor = monitors.newest(connection, calibration)
    if monitor is None:
        return Watch(is_in_use=True, said=None, is_behind=False)
    newest = max((state.documents for state in monitors.states(connection, monitor)), default=0)
    state = monitors.read_state(connection, monitor, newest) if newest else initial_state(monitor.plan)
    alarms = monitors.standing_alarms(connection, monitor)
    said = monitor_report(classifier, calibration, monitor, state, alarms, computed=0)
    return Watch(is_in_use=True, said=said, is_behind=monitor.seen.event < monitors.newest_event(connection).event)


def monitor_report(
    classifier: Classifier,
    calibration: Calibration,
    monitor: StoredMonitor,
    state: MonitorState,
    alarms: list[StandingAlarm],
    *,
    computed: int,
) -> MonitorReport:
    """Return what a state of a monitor says. computed: documents that were new, or counted again."""
    return MonitorReport(
        classifier=classifier.name,
        class_names=classifier.class_names,
        neighbour_count=None if classifier.knn is None else classifier.knn.neighbour_count,
        method=calibration.method,
        alpha=monitor.plan.alpha,
        setting=calibration.calibrator_id,
        calibration=calibration.id,
        monitor=monitor.id,
        started_at=monitor.created_at,
        documents=state.documents,
        points=state.points,
        computed=computed,
        readings=tuple(readings(monitor.plan, state)),
        alarms=tuple(
            MonitorAlarm(alarm.id, alarm.lamp, alarm.number, alarm.created_at, alarm.notified) for alarm in alarms
        ),
        promised=calibration.promised_kinds,
    )
