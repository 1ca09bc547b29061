"""Removal of decisions and jobs.

A job is marked first; then its rows, decisions and chunks are deleted, some in each transaction. A removed job keeps
its row, which says what was asked for. If a process dies in between, the next one goes on.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import numpy as np
from psycopg.errors import LockNotAvailable
from sqlalchemy import Connection, Engine, Row
from sqlalchemy.exc import OperationalError

from venn_admit.core.types import IntArray
from venn_admit.store.database.engine import unlimited
from venn_admit.store.database.ids import execute_ids
from venn_admit.store.database.statements import execute

_TABLES = ("decision", "admit_evidence", "abers_evidence", "job_row", "job_chunk")


class Why(StrEnum):
    """Why decisions were removed."""

    AGE = "age"
    REQUEST = "request"


def keep_requests_out(connection: Connection, classifier_id: int, *, wait: timedelta | None) -> bool:
    """Keep exemplars, labels and requests to score out until this transaction ends, so that what is unneeded stays so.

    Those that are coming now may take minutes. A caller that waits for them is next, before those that come meanwhile.
    Nothing else is removed of the classifier at the same time either: if two jobs were emptied at once, each would
    leave to the other the decisions that both ask for.

    wait: the longest to wait, more than 0; None: without limit. Return False if that was not enough: nothing may be
    removed then.
    """
    milliseconds = 0 if wait is None else max(1, round(wait / timedelta(milliseconds=1)))
    savepoint = connection.begin_nested()
    try:
        execute(connection, "removals.await_turn", milliseconds=milliseconds)
        execute(connection, "classifiers.lock_ingestion", classifier_id=classifier_id)
    except OperationalError as error:
        savepoint.rollback()
        if isinstance(error.orig, LockNotAvailable):
            return False
        raise
    savepoint.commit()
    execute(connection, "removals.in_turn")
    return True


def remove(connection: Connection, classifier_id: int, decision_ids: IntArray, reason: Why) -> int:
    """Delete decisions of one classifier with their evidence, record which, and return how many there were.

    decision_ids: (n,) int64, some thousands at most: the transaction takes as long as their number asks for. The caller
    keeps requests out, and has made sure that nobody needs them.
    """
    if not len(decision_ids):
        return 0
    parameters = {"classifier_id": classifier_id, "decision_ids": decision_ids, "reason": reason}
    return execute(connection, "removals.remove", **parameters).scalar_one_or_none() or 0


def removal(connection: Connection, decision_id: int) -> Row[Any] | None:
    """Return when a decision was removed and why; None if it was not."""
    return execute(connection, "removals.removal", decision_id=decision_id).one_or_none()


@dataclass(frozen=True, slots=True)
class Part:
    """What one transaction deleted; last_row: number of the last row; is_last: whether nothing is left."""

    rows: int
    decisions: int
    last_row: int
    is_last: bool


def age_limit(connection: Connection, kept_for: timedelta) -> datetime:
    """Return the time before which a job must have ended to be removed by its age.

    It lies that far back, and before everything that an answer kept under an Idempotency-Key may name.
    """
    limit: datetime = execute(connection, "removals.age_limit", kept_for=kept_for).scalar_one()
    return limit


def old(connection: Connection, ended_before: datetime) -> Row[Any]:
    """Count the jobs that ended before a time, and the rows that they asked for."""
    return execute(connection, "removals.old", ended_before=ended_before).one()


def mark_next(connection: Connection, ended_before: datetime, *, blocked: Collection[int]) -> int | None:
    """Mark the job as removed that ended first, if that was before a time, and return it; None if there is none.

    One that somebody else has locked is left to a later look. blocked: classifiers whose jobs are left out.
    """
    parameters = {"ended_before": ended_before, "blocked": list(blocked)}
    job_id: int | None = execute(connection, "removals.next_old", **parameters).scalar_one_or_none()
    if job_id is not None:
        mark(connection, job_id, Why.AGE)
    return job_id


def mark(connection: Connection, job_id: int, reason: Why) -> bool:
    """Mark a job as removed; False if it was before, or is running. What is still computed of it does not count."""
    execute(connection, "jobs.lock_job", job_id=job_id)
    marked = execute(connection, "removals.mark", job_id=job_id, reason=reason).one_or_none()
    if marked is None:
        return False
    execute(connection, "job_chunks.take_leases", job_id=job_id)
    return True


def unfinished(
    connection: Connection, *, after: int = 0, job_id: int | None = None, blocked: Collection[int] = ()
) -> Row[Any] | None:
    """Return the first removed job after a given one, or a given one, if rows or chunks of it are left.

    blocked: classifiers whose jobs are left out.
    """
    return execute(connection, "removals.unfinished", after=after, job_id=job_id, blocked=list(blocked)).one_or_none()


def delete_part(connection: Connection, job: Row[Any], *, after: int = -1, most: int) -> Part:
    """Delete at most `most` rows of a removed job, and of their decisions those that nobody needs.

    after: the last row of the part before. The caller keeps requests out, by `keep_requests_out`.
    """
    # Another process may delete rows of it: one at a time.
    execute(connection, "jobs.lock_job", job_id=job.id)
    rows = execute(connection, "removals.delete_rows", job_id=job.id, after=after, most=most).all()
    exemplar_ids = np.array([row.exemplar_id for row in rows], dtype=np.int64)
    decisions = 0
    if job.kind == "score" and len(exemplar_ids):
        unneeded = execute_ids(
            connection,
            "removals.unneeded",
            job_id=job.id,
            exemplar_ids=np.unique(exemplar_ids),
            calibration_id=job.calibration_id,
            weighted=job.weighted,
            require_full_match=job.require_full_match,
        )
        decisions = remove(connection, job.classifier_id, unneeded, job.removed_because)
    is_last = len(rows) < most
    if is_last:
        execute(connection, "removals.empty", job_id=job.id)
    return Part(len(rows), decisions, max((row.row_number for row in rows), default=after), is_last)


def vacuum(engine: Engine) -> None:
    """Free the space of deleted rows for new ones at once, rather than at the next autovacuum.

    The server warns a user who may not do so, and leaves the tables as they are.
    """
    with unlimited(engine) as connection:
        for table in _TABLES:
            execute(connection, f"removals.vacuum_{table}")
