"""Monitors of the promise: the labelled decisions that they count, their states, what these say, and alarms."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.monitoring.anytime.documents import LabelledPoints
from venn_admit.core.monitoring.anytime.plan import MonitorPlan
from venn_admit.core.monitoring.anytime.readings import Reading
from venn_admit.core.monitoring.anytime.state import MonitorState
from venn_admit.core.monitoring.anytime.stored import plan_document, plan_of_document, state_document, state_of_document
from venn_admit.core.types import IntArray
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.statements import execute, statement
from venn_admit.store.decisions.monitored import groups, labelled, plan_by
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
    on. after_event: the last label event that does not count. settled_event: the last one that need not be read again.
    seen: what is settled next.
    """

    id: int
    calibrator_id: int
    knn_parameters_id: int | None
    calibration_number: int
    after_event: int
    settled_event: int
    seen: Seen
    plan: MonitorPlan
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StoredState:
    """Which documents a stored state has seen: their number, the event by which the last counts, and their digest."""

    documents: int
    event: int
    digest: bytes


@dataclass(frozen=True, slots=True, eq=False)
class CountedLabels:
    """The labelled points that count. events: (documents,) int64, the label event by which each document counts."""

    points: LabelledPoints
    events: IntArray


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
        settled_event=row.settled_event,
        seen=Seen(row.seen_event, frozenset(row.awaited)),
        plan=plan_of_document(row.plan),
        created_at=row.created_at,
    )


def start(connection: Connection, classifier: Classifier, calibration: Calibration, *, afresh: bool) -> StoredMonitor:
    """Start a monitor of a snapshot's calibrator.

    afresh: whether it counts the labels that come from now on, against this snapshot; otherwise it counts all since the
    oldest snapshot with the same KNN parameters, against that one.
    """
    of_calibrator = {"calibrator_id": calibration.calibrator_id, "knn_parameters_id": calibration.knn_parameters_id}
    snapshot, number, event = calibration.id, calibration.number, newest_event(connection).event
    if not afresh:
        first = execute(connection, "monitors.first_snapshot", **of_calibrator).one()
        snapshot, number, event = first.id, first.number, first.event
    plan = plan_by(connection, classifier, calibration, snapshot, number)
    execute(connection, "monitors.end_earlier_alarms", **of_calibrator)
    row = execute(
        connection,
        "monitors.start_monitor",
        **of_calibrator,
        calibration_number=number,
        after_event=event,
        plan=json.dumps(plan_document(plan)),
    ).one()
    return StoredMonitor(
        id=row.id,
        calibrator_id=calibration.calibrator_id,
        knn_parameters_id=calibration.knn_parameters_id,
        calibration_number=number,
        after_event=event,
        settled_event=event,
        seen=Seen(event),
        plan=plan,
        created_at=row.created_at,
    )


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


def first_change(connection: Connection, classifier: Classifier, monitor: StoredMonitor) -> int | None:
    """Return the label event before which everything counts as it did when labels were settled; None if all does."""
    parameters = {
        "classifier_id": classifier.id,
        "settled_event": monitor.settled_event,
        "after_event": monitor.after_event,
    }
    event: int | None = execute(connection, "monitors.first_change", **parameters).scalar_one()
    return event


def counted_labels(
    connection: Connection, classifier: Classifier, monitor: StoredMonitor, *, from_event: int
) -> CountedLabels:
    """Return the labelled points that a monitor counts, in the order in which their documents do.

    from_event: only documents that count by a later event are returned; at least the last event that does not count.
    """
    parameters = {
        "classifier_id": classifier.id,
        "calibrator_id": monitor.calibrator_id,
        "knn_parameters_id": monitor.knn_parameters_id,
        "after_event": monitor.after_event,
        "from_event": from_event,
    }
    found = execute(connection, "monitors.labelled_decisions", **parameters)
    rows = [row for row in found if row.came_together]
    events, document = np.unique(np.array([row.event_id for row in rows], dtype=np.int64), return_inverse=True)
    known = {} if monitor.plan.groups is None else monitor.plan.groups.values
    of_points, admitted = groups(connection, rows, list(known)), [row.is_admitted for row in rows]
    return CountedLabels(labelled(classifier, rows, document.tolist(), admitted, of_points, known), events)


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
        event=seen.event,
        digest=seen.digest,
        state=json.dumps(state_document(state)),
    )


def settle(connection: Connection, monitor: StoredMonitor, settled_event: int, seen: Seen) -> None:
    """Record the last label event that need not be read again, and which is settled next."""
    execute(
        connection,
        "monitors.settle",
        monitor_id=monitor.id,
        settled_event=settled_event,
        seen_event=seen.event,
        awaited=sorted(seen.awaited),
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
                    "lamp": reading.about.lamp,
                    "number": reading.about.number,
                    "documents": reading.documents,
                    "points": reading.points,
                    "correct": reading.right,
                    "lower_bound": reading.lower_bound,
                    "e_value": reading.e_value,
                    "most": reading.most,
                    "needed": reading.needed,
                    "lit_at": reading.lit_at,
                }
                for reading in readings
            ],
        )


def behind(connection: Connection, *, unsent: bool) -> list[str]:
    """Return the names of the classifiers whose calibrator in use has labels that its monitor has not settled.

    unsent: whether to return those with alarms that no webhook took, too.
    """
    return list(execute(connection, "monitors.behind", unsent=unsent).scalars())
