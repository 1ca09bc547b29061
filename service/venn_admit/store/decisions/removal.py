"""Deletion of decisions, some in each transaction, and the record of which were removed."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from psycopg.errors import LockNotAvailable
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from venn_admit.core.types import IntArray
from venn_admit.store.database.statements import statement


class Why(StrEnum):
    """Why decisions were removed."""

    AGE = "age"
    REQUEST = "request"


@dataclass(frozen=True, slots=True)
class Removal:
    """When a decision was removed, and why."""

    removed_at: datetime
    reason: Why


def keep_requests_out(connection: Connection, classifier_id: int, *, wait: timedelta | None) -> bool:
    """Keep exemplars, labels and requests to score out until this transaction ends, so that what is unneeded stays so.

    Those that are coming now may take minutes. A caller that waits for them is next, before those that come meanwhile.
    Nor is anything else removed of the classifier at the same time: of two jobs that are emptied at once, each would
    leave to the other the decisions that both ask for.

    wait: for how long at most, which is more than nothing; None: as long as it takes. The answer is False if that was
    not enough, and then nothing must be removed.
    """
    milliseconds = 0 if wait is None else max(1, round(wait / timedelta(milliseconds=1)))
    savepoint = connection.begin_nested()
    try:
        connection.execute(statement("removals.await_turn"), {"milliseconds": milliseconds})
        connection.execute(statement("removals.keep_requests_out"), {"classifier_id": classifier_id})
    except OperationalError as error:
        savepoint.rollback()
        if isinstance(error.orig, LockNotAvailable):
            return False
        raise
    savepoint.commit()
    connection.execute(statement("removals.in_turn"))
    return True


def remove(connection: Connection, classifier_id: int, decision_ids: IntArray, reason: Why) -> int:
    """Delete decisions of one classifier with their evidence, record which, and return how many there were.

    decision_ids: (n,) int64, some thousands at most: the transaction takes as long as their number asks for. The caller
    keeps requests out, and has made sure that nobody needs them.
    """
    if not len(decision_ids):
        return 0
    parameters = {"classifier_id": classifier_id, "decision_ids": decision_ids.tolist(), "reason": reason}
    return connection.execute(statement("removals.remove"), parameters).scalar_one_or_none() or 0


def removal(connection: Connection, decision_id: int) -> Removal | None:
    """Return when a decision was removed and why; None if it was not."""
    row = connection.execute(statement("removals.removal"), {"decision_id": decision_id}).one_or_none()
    return None if row is None else Removal(row.removed_at, Why(row.reason))


def complete_since(connection: Connection, classifier_id: int) -> datetime | None:
    """Return the time after which no decision of a classifier was removed; None if none was at all."""
    found: datetime | None = connection.execute(
        statement("removals.complete_since"), {"classifier_id": classifier_id}
    ).scalar_one()
    return found
