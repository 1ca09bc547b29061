"""Requests that their callers named, and the answers to them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from psycopg.errors import SerializationFailure
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from venn_admit.store.database.statements import execute


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at a request. name: what the caller named the request, in the header Idempotency-Key."""

    caller: str
    name: str
    route: str
    id: UUID

    @property
    def parameters(self) -> dict[str, object]:
        """Return the parameters by which statements find it."""
        return {"caller": self.caller, "idempotency_key": self.name, "attempt": self.id}


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer, and the digest, of 32 bytes, of the request that it is to."""

    digest: bytes
    status: int
    headers: Mapping[str, str]
    body: bytes


def claim(connection: Connection, attempt: Attempt, *, lease: timedelta, kept_for: timedelta) -> bool:
    """Begin an attempt; return False if the request was answered, or another attempt is running."""
    execute(connection, "idempotency.sweep")
    parameters = {**attempt.parameters, "route": attempt.route, "lease": lease, "kept_for": kept_for}
    return execute(connection, "idempotency.claim", **parameters).one_or_none() is not None


def stored_answer(connection: Connection, attempt: Attempt) -> KeptAnswer | None:
    """Return the answer to the request of an attempt; None if there is none yet."""
    row = execute(connection, "idempotency.known", **attempt.parameters).one_or_none()
    if row is None or row.status is None:
        return None
    return KeptAnswer(bytes(row.digest), row.status, row.headers, bytes(row.answer))


def some_answers(connection: Connection, *, after: Attempt | None, most: int) -> list[tuple[Attempt, bytes]]:
    """Return at most `most` answers, in order of callers and names, each with the attempt that led to it.

    after: the one before the first; None: from the beginning.
    """
    parameters = {
        "caller": "" if after is None else after.caller,
        "idempotency_key": "" if after is None else after.name,
        "most": most,
    }
    rows = execute(connection, "idempotency.some_answers", **parameters)
    return [(Attempt(row.caller, row.idempotency_key, row.route, row.attempt), bytes(row.answer)) for row in rows.all()]


def extend(connection: Connection, attempt: Attempt, *, lease: timedelta) -> None:
    """Let an attempt count as running for longer."""
    execute(connection, "idempotency.extend", **attempt.parameters, lease=lease)


def record(connection: Connection, attempt: Attempt, answer: KeptAnswer, *, kept_for: timedelta) -> bool:
    """Keep an answer; return False if there is one already, or another attempt has begun since.

    connection: its transaction may be REPEATABLE READ, if it began after the attempt. If the result is False, nothing
    of it may be committed.
    """
    parameters = {
        **attempt.parameters,
        "digest": answer.digest,
        "status": answer.status,
        "headers": json.dumps(dict(answer.headers)),
        "answer": answer.body,
        "kept_for": kept_for,
    }
    try:
        recorded = execute(connection, "idempotency.record", **parameters)
    except OperationalError as error:
        # Nothing but another attempt changes the row of a request without an answer.
        if isinstance(error.orig, SerializationFailure):
            return False
        raise
    return recorded.one_or_none() is not None


def forget(connection: Connection, attempt: Attempt) -> None:
    """Delete the answer that an attempt led to, because what it had stored was taken back."""
    execute(connection, "idempotency.forget", **attempt.parameters)


def release(connection: Connection, attempt: Attempt) -> None:
    """End an attempt that changed nothing."""
    execute(connection, "idempotency.release", **attempt.parameters)
