"""Alarms and notices of monitors."""

from collections.abc import Sequence

from sqlalchemy import Connection

from venn_admit.core.monitoring.anytime.plan import Lamp
from venn_admit.core.monitoring.anytime.readings import Reading, StandingAlarm
from venn_admit.core.types import IntArray
from venn_admit.store.database.statements import execute
from venn_admit.store.decisions.monitors import StoredMonitor


def update_alarms(
    connection: Connection, monitor: StoredMonitor, readings: Sequence[Reading], events: IntArray, *, after: int
) -> list[StandingAlarm]:
    """End the alarms that no longer stand, raise the new ones, and return all that stand.

    events: (documents,) int64, the label event by which each document counts, from that number `after` on: the alarms
    of lamps that were lit before stand already.
    """
    newly = [(one, one.lit_at) for one in readings if one.lit_at is not None and one.lit_at > after]
    stand = [reading for reading in readings if reading.stands]
    of_monitor = {"monitor_id": monitor.id}
    execute(
        connection,
        "monitors.end_alarms",
        **of_monitor,
        lamps=[str(reading.about.lamp) for reading in stand],
        numbers=[reading.about.number for reading in stand],
    )
    execute(
        connection,
        "monitors.raise_alarms",
        **of_monitor,
        lamps=[str(reading.about.lamp) for reading, _ in newly],
        numbers=[reading.about.number for reading, _ in newly],
        events=[int(events[lit_at - after - 1]) for _, lit_at in newly],
    )
    return standing_alarms(connection, monitor)


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
