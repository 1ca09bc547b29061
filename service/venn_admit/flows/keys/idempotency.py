"""Answering a request once, however often it is sent.

The answer is recorded in the transaction that stores what the request asks for, so that the request is executed once
although a process may die at any moment. The row of a request names an attempt at it and holds the answer. An attempt
records its answer only if the row still names it, and another attempt has the row name itself only if there is no
answer; whichever comes second waits for the first to commit. If the answer came first, the other attempt finds it;
otherwise the first attempt is rolled back, with all that it stored. Leases only say from when on another attempt may
begin: they save computing twice, and storing once does not depend on them.

A calibration is stored by a transaction that sees the database as it was when it began, and fails if it updates a row
that has changed since. So leases are extended in a table of their own, and until there is an answer, nothing but the
beginning of another attempt changes the row.

The effect of some requests and the record of their answer are two transactions. A process may die between them; then
the lease of its attempt ends, and the request is executed again when it is sent again:

- Recalibrating serves the requests for it that are due, each in a transaction of its own. Those that are served are
  due no longer, and the second answer is without them.
- Removing a job that is removed changes nothing.
- Forgetting exemplars that are forgotten changes nothing, and the second answer says that they were before. Its first
  answer is kept once all transactions of it are over, as it must not be given before all is gone.
- Cancelling a job again is refused, with the state that the job has.

Only answers that report success are kept. A request that is refused has changed nothing, so that it may be sent again
under the same name once the reason is removed.
"""

from datetime import timedelta
from uuid import uuid4

from sqlalchemy import Connection, Engine

from venn_admit.store.access import idempotency
from venn_admit.store.access.idempotency import Attempt, KeptAnswer
from venn_admit.store.database.engine import connect, transaction

LEASE = timedelta(seconds=30)

Transaction = Connection
"""What the effect of a request is stored in."""


def begin(
    engine: Engine, caller: str, name: str, route: str, *, kept_for: timedelta
) -> tuple[Attempt, KeptAnswer | None] | None:
    """Begin an attempt at a request.

    Args:
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
        kept = idempotency.stored_answer(connection, attempt)
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
        False if the attempt lost its lease and another one has begun; the effect must not be committed then.
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
