"""What is watched of the service while it runs: what is old, what waits, and what alarms."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row

from venn_admit.store.database.statements import execute

MOST_LABELS = 10_000
"""The newest labels of the whole service among which those that wait are counted."""


def of_classifiers(connection: Connection) -> Sequence[Row[Any]]:
    """Return of each classifier the age of its calibration, what has waited and how long, and its standing alarms."""
    return execute(connection, "standing.of_classifiers", most_labels=MOST_LABELS).all()


def oldest_job(connection: Connection) -> float | None:
    """Return how many seconds ago the oldest running job was asked for; None if no job runs."""
    seconds: float | None = execute(connection, "standing.oldest_job").scalar_one()
    return seconds


def oldest_waiting_chunk(connection: Connection) -> float | None:
    """Return how many seconds a chunk has waited for a worker, the one that has waited longest; None if none waits."""
    seconds: float | None = execute(connection, "standing.oldest_waiting_chunk").scalar_one()
    return seconds
