"""Alarms and notices of monitors."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from venn_admit.core.calibrators.certification import OneClass
from venn_admit.core.monitoring.anytime.plan import KIND_OF_LAMP, Lamp
from venn_admit.core.monitoring.anytime.readings import Reading, StandingAlarm
from venn_admit.core.types import IntArray
from venn_admit.store.database.statements import execute
from venn_admit.store.decisions.monitors import StoredMonitor


@dataclass(frozen=True, slots=True)
class Refuted:
    """The classes of which the labels of a chain refute what it certified. event: the last it has seen, if any."""

    classes: Sequence[OneClass] = ()
    event: int | None = None


def update_alarms(
    connection: Connection,
    monitor: StoredMonitor,
    readings: Sequence[Reading],
    events: IntArray,
    *,
    after: int,
    refuted: Refuted,
) -> list[StandingAlarm]:
    """End the alarms that no longer stand, raise the new ones, and return all that stand.

    events: (documents,) int64, the label event by which each document counts, from that number `after` on: the alarms
    of lamps that were lit before stand already. refuted: classes that have an alarm of the promise all the same.
    """
    lamps = {kind: lamp for lamp, kind in KIND_OF_LAMP.items()}
    by_chain = [(lamps[kind], number) for kind, number in refuted.classes]
    before = standing_alarms(connection, monitor) if by_chain else []
    standing = {(one.about.lamp, one.about.number) for one in before}
    newly = {one: refuted.event for one in by_chain if one not in standing} | {
        (one.about.lamp, one.about.number): int(events[one.lit_at - after - 1])
        for one in readings
        if one.lit_at is not None and one.lit_at > after
    }
    stand = [(one.about.lamp, one.about.number) for one in readings if one.stands] + by_chain
    of_monitor = {"monitor_id": monitor.id}
    execute(connection, "monitors.end_alarms", **of_monitor, **_columns(stand))
    execute(connection, "monitors.raise_alarms", **of_monitor, **_columns(newly), events=list(newly.values()))
    return standing_alarms(connection, monitor)


def _columns(alarms: Iterable[tuple[Lamp, int]]) -> dict[str, list[Any]]:
    pairs = list(alarms)
    return {"lamps": [str(lamp) for lamp, _ in pairs], "numbers": [number for _, number in pairs]}


def standing_alarms(connection: Connection, monitor: StoredMonitor) -> list[StandingAlarm]:
    """Return the alarms and notices that stand."""
    rows, watched = execute(connection, "monitors.standing_alarms", monitor_id=monitor.id), monitor.plan.watched
    return [StandingAlarm(row.id, watched(Lamp(row.lamp), row.number), row.created_at) for row in rows]


def lock_unsent(connection: Connection, monitor_id: int) -> list[int]:
    """Return the standing alarms that no webhook took, locked to the end of the transaction."""
    return list(execute(connection, "monitors.lock_unsent", monitor_id=monitor_id).scalars())


def set_notified(connection: Connection, alarm_id: int) -> None:
    """Record that a webhook took an alarm."""
    execute(connection, "monitors.set_notified", alarm_id=alarm_id)
