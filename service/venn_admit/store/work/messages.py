"""The queue of messages in the database, which is Celery's broker if the settings name no other."""

import json
from typing import Any

from sqlalchemy import Connection

from venn_admit.store.database.statements import statement


def put(connection: Connection, queue: str, message: dict[str, Any]) -> None:
    connection.execute(statement("messages.put"), {"queue": queue, "payload": json.dumps(message)})


def take(connection: Connection, queue: str) -> dict[str, Any] | None:
    """Return the oldest message, which is removed from the queue on commit; None if there is none."""
    message: dict[str, Any] | None = connection.execute(
        statement("messages.take"), {"queue": queue}
    ).scalar_one_or_none()
    return message


def count(connection: Connection, queue: str) -> int:
    messages: int = connection.execute(statement("messages.count"), {"queue": queue}).scalar_one()
    return messages


def delete_all(connection: Connection, queue: str) -> int:
    """Empty a queue; return the number of messages that were in it."""
    return connection.execute(statement("messages.delete_all"), {"queue": queue}).rowcount
