"""The monitor of a classifier's calibrator in use, brought up to date with the ledger of labels.

The state is a function of the ledger alone. Documents count in the order in which their first label came; the states
after every thousand documents and after the last are stored with a digest of these documents, and an update goes on
from the last state whose documents are as they were. A correction outdates the states after it, and nothing else.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, Engine

from venn_admit.service.core.monitoring.anytime.plan import LEVEL
from venn_admit.service.core.monitoring.anytime.readings import readings
from venn_admit.service.core.monitoring.anytime.state import MonitorState, advance, initial_state
from venn_admit.service.flows.monitoring.read_monitor import monitor_report
from venn_admit.service.report.monitoring.contents import MonitorReport
from venn_admit.service.store.calibrations import calibrations
from venn_admit.service.store.database.engine import transaction
from venn_admit.service.store.decisions import monitors
from venn_admit.service.store.decisions.monitors import CountedLabels, StoredMonitor
from venn_admit.service.store.exemplars import classifiers

STATE_DOCUMENTS = 1000
"""A state is kept after every so many documents: a correction is computed anew from there on, in a second or less."""


def update_monitor(engine: Engine, name: str, *, restart: bool = False) -> MonitorReport:
    """Bring the monitor of a classifier's calibrator in use up to date, in one transaction, and return what it says.

    It is started if there is none, or if the KNN parameters in use are others than it was started with.

    Args:
        engine: The database.
        name: The classifier's name.
        restart: Whether to end its alarms and to start anew, with the labels that come from now on.

    Raises:
        NotFoundError: There is no such classifier.
        InvalidInputError: It has logits only; a monitor tells labels apart by q too.
        NotReadyError: It has no calibration yet.
    """
    with transaction(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        classifiers.require_vectors(classifier, "a monitor")
        calibration = calibrations.held(connection, classifier, None)
        monitors.lock(connection, calibration.calibrator_id)
        monitor = None if restart else monitors.newest(connection, calibration)
        if monitor is None:
            monitor = monitors.start(connection, classifier, calibration, anew=restart)
        seen = monitors.newest_event(connection)
        labels = monitors.counted_labels(connection, classifier, monitor)
        path = _path(labels, monitors.states(connection, monitor))
        state = _follow(connection, monitor, labels, path)
        found = tuple(readings(monitor.plan, state))
        if path.ends or path.outdated:
            monitors.replace_readings(connection, monitor, found)
        alarms = monitors.update_alarms(connection, monitor, found, labels.events)
        monitors.set_seen_event(connection, monitor, seen)
    return monitor_report(classifier, calibration, monitor, state, alarms, computed=state.documents - path.start)


@dataclass(frozen=True, slots=True)
class _Path:
    """From which state an update goes on, and which states it makes.

    start: documents of the state to go on from, 0 for the initial one. ends: documents and digest of each state to
    make, ascending. outdated: documents of the states to delete.
    """

    start: int
    ends: dict[int, bytes]
    outdated: list[int]


def _path(labels: CountedLabels, stored: dict[int, bytes]) -> _Path:
    total = labels.points.document_count
    wanted = [*range(STATE_DOCUMENTS, total, STATE_DOCUMENTS), *([total] if total else [])]
    ends = sorted({*wanted, *(documents for documents in stored if documents <= total)})
    digests = dict(zip(ends, labels.points.digests(ends), strict=True))
    holding = [documents for documents, digest in stored.items() if digests.get(documents) == digest]
    start = max(holding, default=0)
    return _Path(
        start=start,
        ends={documents: digests[documents] for documents in wanted if documents > start},
        outdated=[documents for documents in stored if documents not in holding or documents not in wanted],
    )


def _follow(connection: Connection, monitor: StoredMonitor, labels: CountedLabels, path: _Path) -> MonitorState:
    state = monitors.read_state(connection, monitor, path.start) if path.start else initial_state(monitor.plan)
    monitors.delete_states(connection, monitor, path.outdated)
    for end, digest in path.ends.items():
        advance(monitor.plan, state, labels.points.take(state.documents, end), LEVEL)
        monitors.add_state(connection, monitor, state, digest)
    return state
