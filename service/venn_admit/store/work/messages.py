"""Messages of the broker that Postgres is, and what the database tells of jobs unasked: that one advanced or ended."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine

from venn_admit.store.database.engine import connect, driver_cursor
from venn_admit.store.database.statements import execute


def put(connection: Connection, queue: str, message: dict[str, Any]) -> None:
    execute(connection, "messages.put", queue=queue, payload=json.dumps(message))


def take(connection: Connection, queue: str) -> dict[str, Any] | None:
    """Return the oldest message, which is removed from the queue on commit; None if there is none."""
    return execute(connection, "messages.take", queue=queue).scalar_one_or_none()


def count(connection: Connection, queue: str) -> int:
    return int(execute(connection, "messages.count", queue=queue).scalar_one())


def delete_all(connection: Connection, queue: str) -> int:
    """Empty a queue; return the number of messages that were in it."""
    return execute(connection, "messages.delete_all", queue=queue).rowcount


def announce(connection: Connection, job_id: int) -> None:
    """Tell listeners, once the transaction is committed, that a job has advanced or ended."""
    execute(connection, "jobs.announce_change", job_id=job_id)


@contextmanager
def listening(engine: Engine, *, poll_seconds: float) -> Iterator[Iterator[int | None]]:
    """Listen on a connection of its own, and yield the jobs that advance or end; it never ends by itself.

    Args:
        poll_seconds: After which None is yielded if there was no job, once the connection was found to last.

    Raises:
        DatabaseError: The connection cannot be made, or is lost.
    """
    with connect(engine) as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        driver = driver_cursor(connection).connection
        connection.detach()  # the pool is for those that come and go
        execute(connection, "jobs.listen")
        yield _changes(connection, driver, poll_seconds)


def _changes(connection: Connection, driver: psycopg.Connection[Any], poll_seconds: float) -> Iterator[int | None]:
    while True:
        for notice in driver.notifies(timeout=poll_seconds, stop_after=1):
            yield int(notice.payload)
            break
        else:
            execute(connection, "jobs.check_session")
            yield None
