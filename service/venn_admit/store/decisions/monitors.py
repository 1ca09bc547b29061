"""Monitors of the promise: when they are started, their states, and what these say."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy import Connection

from venn_admit.core.monitoring.anytime.plan import MonitorPlan
from venn_admit.core.monitoring.anytime.readings import Reading
from venn_admit.core.monitoring.anytime.state import MonitorState
from venn_admit.core.monitoring.anytime.stored import plan_document, plan_of_document, state_document, state_of_document
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.statements import execute, statement
from venn_admit.store.decisions import deadlines
from venn_admit.store.decisions.deadlines import LabelDeadline
from venn_admit.store.decisions.monitored import plan_by
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True)
class Seen:
    """The newest label event of all classifiers at some time, and the other transactions that were under way after it.

    Once these are over, no transaction can add a label before the event, or a decision that precedes a label before it.
    """

    event: int
    awaited: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class StoredMonitor:
    """A monitor.

    knn_parameters_id: None if the classifier has logits only. calibration_number: of the snapshot that its plan rests
    on. after_event, after_decision: the last label event and the last decision that do not count. settled_event: the
    last event that need not be read again. seen: what is settled next. deadline: None if documents count by labels.
    """

    id: int
    calibrator_id: int
    knn_parameters_id: int | None
    calibration_number: int
    after_event: int
    after_decision: int
    settled_event: int
    seen: Seen
    plan: MonitorPlan
    created_at: datetime
    deadline: LabelDeadline | None

    @property
    def of_calibrator(self) -> dict[str, int | None]:
        """The parameters that say whose decisions count."""
        return {"calibrator_id": self.calibrator_id, "knn_parameters_id": self.knn_parameters_id}

    @property
    def before_first(self) -> int:
        """The place before that of the first document: of a label event or, if there is a deadline, of a decision."""
        return self.after_event if self.deadline is None else self.after_decision


@dataclass(frozen=True, slots=True)
class StoredState:
    """Which documents a stored state has seen: their number, the place of the last one, and their digest."""

    documents: int
    place: int
    digest: bytes


def lock(connection: Connection, calibrator_id: int) -> None:
    """Wait until nobody else updates the monitors of a calibrator; held to the end of the transaction."""
    execute(connection, "monitors.lock_monitors", calibrator_id=calibrator_id)


def newest_event(connection: Connection) -> Seen:
    """Return the newest label event of all classifiers, with the transactions that are under way."""
    event: int = execute(connection, "monitors.newest_event").scalar_one()
    return Seen(event, frozenset(execute(connection, "monitors.under_way").scalars()))


def newest(connection: Connection, calibration: Calibration) -> StoredMonitor | None:
    """Return the newest monitor of a snapshot's calibrator, or None if its KNN parameters are others or it has none."""
    row = execute(connection, "monitors.newest_monitor", calibrator_id=calibration.calibrator_id).one_or_none()
    if row is None or row.knn_parameters_id != calibration.knn_parameters_id:
        return None
    return StoredMonitor(
        id=row.id,
        calibrator_id=calibration.calibrator_id,
        knn_parameters_id=row.knn_parameters_id,
        calibration_number=row.calibration_number,
        after_event=row.after_event,
        after_decision=row.after_decision,
        settled_event=row.settled_event,
        seen=Seen(row.seen_event, frozenset(row.awaited)),
        plan=plan_of_document(row.plan),
        created_at=row.created_at,
        deadline=None
        if row.label_deadline is None
        else LabelDeadline(row.label_deadline, row.passed_decision, row.decided, row.is_due),
    )


def is_behind(connection: Connection, monitor: StoredMonitor) -> bool:
    """Return whether labels of its classifier came, or label deadlines passed, since it was last looked at."""
    if monitor.deadline is not None and monitor.deadline.is_due:
        return True
    since = {"event": monitor.seen.event, "calibrator_id": monitor.calibrator_id}
    found: bool = execute(connection, "monitors.has_labels_since", **since).scalar_one()
    return found


def start(
    connection: Connection,
    classifier: Classifier,
    calibration: Calibration,
    *,
    afresh: bool,
    label_deadline: timedelta | None,
) -> StoredMonitor:
    """Start a monitor of a snapshot's calibrator.

    afresh: whether it counts the labels of documents that are decided on from now on, against this snapshot; otherwise
    it counts all labels since the oldest snapshot with the same KNN parameters, against that one.
    """
    of_calibrator = {"calibrator_id": calibration.calibrator_id, "knn_parameters_id": calibration.knn_parameters_id}
    snapshot, number, event = calibration.id, calibration.number, newest_event(connection).event
    if not afresh:
        first = execute(connection, "monitors.first_snapshot", **of_calibrator).one()
        snapshot, number, event = first.id, first.number, first.event
    plan = plan_by(connection, classifier, calibration, snapshot, number)
    after_decision = deadlines.newest_decision(connection) if afresh else 0
    execute(connection, "monitors.end_earlier_alarms", **of_calibrator)
    execute(
        connection,
        "monitors.start_monitor",
        **of_calibrator,
        calibration_number=number,
        after_event=event,
        plan=json.dumps(plan_document(plan)),
        label_deadline=label_deadline,
        after_decision=after_decision,
    )
    started = newest(connection, calibration)
    assert started is not None, "it was started for these parameters"
    return started


def with_groups(
    connection: Connection, classifier: Classifier, calibration: Calibration, monitor: StoredMonitor
) -> StoredMonitor:
    """Return a monitor of a snapshot's calibrator that watches groups, if the certificate was asked for any.

    One that was started before monitors did so has its states deleted, and all that it counts is read again: what they
    say of classes stays as it was. If the snapshot that its plan rests on is gone, it stays without groups.
    """
    if monitor.plan.groups is not None or not calibration.group_attributes:
        return monitor
    number = monitor.calibration_number
    snapshot = execute(
        connection, "monitors.snapshot", calibrator_id=monitor.calibrator_id, number=number
    ).scalar_one_or_none()
    if snapshot is None:
        return monitor
    found = plan_by(connection, classifier, calibration, snapshot, number).groups
    if found is None:
        return monitor
    plan = replace(monitor.plan, groups=found)
    execute(connection, "monitors.replace_plan", monitor_id=monitor.id, plan=json.dumps(plan_document(plan)))
    delete_states(connection, monitor, [state.documents for state in states(connection, monitor)])
    return replace(monitor, plan=plan)


def states(connection: Connection, monitor: StoredMonitor) -> list[StoredState]:
    """Return which documents each stored state has seen, in ascending order."""
    rows = execute(connection, "monitors.states", monitor_id=monitor.id)
    return [StoredState(row.documents, row.event, bytes(row.digest)) for row in rows]


def read_state(connection: Connection, monitor: StoredMonitor, documents: int) -> MonitorState:
    """Return the stored state after a number of documents."""
    parameters = {"monitor_id": monitor.id, "documents": documents}
    return state_of_document(execute(connection, "monitors.state", **parameters).scalar_one(), monitor.plan)


def delete_states(connection: Connection, monitor: StoredMonitor, documents: Sequence[int]) -> None:
    """Delete the states after these numbers of documents."""
    execute(connection, "monitors.delete_states", monitor_id=monitor.id, documents=list(documents))


def add_state(connection: Connection, monitor: StoredMonitor, state: MonitorState, seen: StoredState) -> None:
    """Store a state, with what says which documents it has seen."""
    execute(
        connection,
        "monitors.add_state",
        monitor_id=monitor.id,
        documents=seen.documents,
        event=seen.place,
        digest=seen.digest,
        state=json.dumps(state_document(state)),
    )


def settle(
    connection: Connection, monitor: StoredMonitor, settled_event: int, seen: Seen, *, chain_event: int | None
) -> None:
    """Record the last label event that need not be read again, which is settled next, and which deadlines passed.

    chain_event: the last one that the chain in use has seen; None without a chain.
    """
    deadline = monitor.deadline
    passed, decided = (monitor.after_decision, 0) if deadline is None else (deadline.passed, deadline.decided)
    execute(
        connection,
        "monitors.settle",
        monitor_id=monitor.id,
        settled_event=settled_event,
        seen_event=seen.event,
        awaited=sorted(seen.awaited),
        passed_decision=passed,
        decided=decided,
        chain_event=chain_event,
    )


def replace_readings(connection: Connection, monitor: StoredMonitor, readings: Sequence[Reading]) -> None:
    """Store what the newest state says, instead of what an older one said."""
    execute(connection, "monitors.delete_readings", monitor_id=monitor.id)
    if readings:
        connection.execute(
            statement("monitors.add_reading"),
            [
                {
                    "monitor_id": monitor.id,
                    "lamp": one.about.lamp,
                    "number": one.about.number,
                    "correct": one.right,
                    **asdict(one),
                }
                for one in readings
            ],
        )


def behind(connection: Connection, *, unsent: bool) -> list[str]:
    """Return the names of the classifiers whose calibrator in use has labels, or deadlines, that its monitor lacks.

    Its chain may have seen labels since, too. unsent: whether to return those with alarms that no webhook took.
    """
    return list(execute(connection, "monitors.behind", unsent=unsent).scalars())
