"""Answering a request once, however often it is sent.

The answer to a request that registers a classifier, stores exemplars or labels, or submits a job is recorded in the
transaction that does so: a process may die at any moment, and the request is executed once.

The effect of the others and the record of their answer are two transactions. A process may die between them; then the
lease of its attempt ends, and the request is executed again when it is sent again. That is harmless:

- Retiring a calibrator that is retired already is a no-op.
- Calibrating again from the same data under the same settings makes the same snapshot under another number, which
  becomes current. Decisions are the same; the number of the first one is in the list of calibrations. A snapshot is
  made from one view of the data, in a transaction that cannot write to what others have written since, such as the
  lease of an attempt. Adopting given parameters is alike.
- Renaming a classifier again is refused with the name that no longer exists: the caller sees that it was done.

Only answers that report success are kept. A request that is refused has changed nothing, so that it may be sent again
under the same name once the reason is removed.
"""

from datetime import timedelta
from uuid import uuid4

from sqlalchemy import Connection, Engine

from venn_admit.service.store.access import idempotency
from venn_admit.service.store.access.idempotency import Attempt, KeptAnswer
from venn_admit.service.store.database.engine import connect, transaction

LEASE = timedelta(seconds=30)

Transaction = Connection
"""What the effect of a request is stored in."""


def begin(
    engine: Engine, caller: str, name: str, route: str, *, kept_for: timedelta
) -> tuple[Attempt, KeptAnswer | None] | None:
    """Begin an attempt at a request.

    Args:
        engine: The database.
        caller: Who sent it.
        name: What the caller named it.
        route: What it asks for.
        kept_for: How long its answer will be kept.

    Returns:
        The attempt, and the answer if there is one, in which case nothing is to be done; None if another attempt is
        running.
    """
    attempt = Attempt(caller, name, route, uuid4())
    with transaction(engine) as connection:
        if idempotency.claim(connection, attempt, lease=LEASE, kept_for=kept_for):
            return attempt, None
    with connect(engine) as connection:
        kept = idempotency.kept_answer(connection, attempt)
    return None if kept is None else (attempt, kept)


def extend(engine: Engine, attempt: Attempt) -> None:
    """Let an attempt count as running for another lease."""
    with transaction(engine) as connection:
        idempotency.extend(connection, attempt, lease=LEASE)


def record(engine: Engine, attempt: Attempt, answer: KeptAnswer, *, kept_for: timedelta) -> None:
    """Keep the answer that an attempt led to, unless the attempt lost its lease and another one has begun."""
    with transaction(engine) as connection:
        idempotency.record(connection, attempt, answer, kept_for=kept_for)


def record_with_effect(effect: Transaction, attempt: Attempt, answer: KeptAnswer, *, kept_for: timedelta) -> bool:
    """Keep the answer in the transaction of the effect.

    Returns:
        False if the attempt lost its lease and another one has begun, upon which the effect must not be committed.
    """
    return idempotency.record(effect, attempt, answer, kept_for=kept_for)


def forget(engine: Engine, attempt: Attempt) -> None:
    """Delete the answer that an attempt led to, because what it had stored was taken back."""
    with transaction(engine) as connection:
        idempotency.forget(connection, attempt)


def release(engine: Engine, attempt: Attempt) -> None:
    """End an attempt that changed nothing, so that the request can be sent again at once."""
    with transaction(engine) as connection:
        idempotency.release(connection, attempt)
