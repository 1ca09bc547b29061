"""The sessions of the page. What the browser shows is stored nowhere: only its digest is."""

from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Row

from venn_admit.store.database.statements import statement


def add(connection: Connection, *, digest: bytes, key_id: int, lifetime: timedelta, most: int) -> None:
    """Store a session of a key, and remove those that expired and the oldest of the key beyond `most`.

    digest: 32 bytes.
    """
    connection.execute(statement("sessions.lock_key"), {"key_id": key_id})
    connection.execute(statement("sessions.remove_expired_sessions"))
    connection.execute(statement("sessions.remove_oldest_sessions"), {"key_id": key_id, "kept": most - 1})
    connection.execute(statement("sessions.add_session"), {"digest": digest, "key_id": key_id, "lifetime": lifetime})


def key_of(connection: Connection, digest: bytes) -> Row[Any] | None:
    """Return id, name, scope and classifier of the key whose session this is; None if it is not accepted."""
    return connection.execute(statement("sessions.session_key"), {"digest": digest}).one_or_none()


def remove(connection: Connection, digest: bytes) -> None:
    """End a session; ending it again changes nothing."""
    connection.execute(statement("sessions.remove_session"), {"digest": digest})
