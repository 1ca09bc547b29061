"""Removing jobs: one that somebody names, or all that ended long ago.

A job's rows and chunks go, and of its decisions those that no other job asks for, some in each transaction. Decisions
stay on exemplars that ever had a random label or one of a review, and on drawn ones: monitors and measured accuracies
rest on these. The job's own row stays, too.
"""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, Row

from venn_admit.errors import Code, JobError
from venn_admit.flows.jobs.listing import require_job
from venn_admit.flows.shell import OnRows
from venn_admit.store.access import audit
from venn_admit.store.access.audit import Event, Origin
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.decisions import removal
from venn_admit.store.decisions.removal import Part, Why, keep_requests_out
from venn_admit.store.work import jobs

# Rows of a transaction, which takes less than a second, and keeps requests for the classifier waiting meanwhile.
BATCH_ROWS = 10_000
# How long to wait for exemplars or labels that are coming, or for another removal, before others have their turn.
PATIENCE = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed.

    jobs, rows, decisions: how many, of which some may have been left from a removal before. is_complete: whether
    nothing is left to be deleted of any removed job. longest_seconds: of the transactions, from when it was their turn.
    """

    jobs: int = 0
    rows: int = 0
    decisions: int = 0
    is_complete: bool = True
    longest_seconds: float = 0.0


def old_jobs(engine: Engine, kept_for: timedelta) -> tuple[datetime, Row[Any]]:
    """Return when a job must have ended to be removed now, and how many jobs and rows of jobs these are."""
    with connect(engine) as connection:
        limit = removal.age_limit(connection, kept_for)
        return limit, removal.old(connection, limit)


def prune(
    engine: Engine,
    kept_for: timedelta | None,
    *,
    origin: Origin,
    seconds: float | None = None,
    batch_rows: int = BATCH_ROWS,
    on_rows: OnRows = lambda _: None,
) -> Removed:
    """Remove the jobs that ended long ago, and go on with removals that did not come to their end.

    Several processes may do so at once: of one classifier, one of them deletes at a time. A classifier for which
    exemplars or labels are coming for longer than `PATIENCE` is left out, and no job of it is marked, until all others
    are done; if the time is limited, until the next time.

    Args:
        kept_for: How long jobs are kept after they ended; None: for ever, so that only removals are continued.
        origin: Who has it done, for the audit ledger.
        seconds: After which it ends, though there may be more to do; None: it ends when all is done.
        batch_rows: Rows of a job that one transaction deletes.
    """
    tally = _Tally(engine, batch_rows, on_rows, None if seconds is None else time.monotonic() + seconds, PATIENCE)
    _remove_all(tally, engine, kept_for, origin)
    if seconds is None and tally.blocked:
        tally.wait_for_all()
        _remove_all(tally, engine, kept_for, origin)
    return tally.removed()


def delete_job(engine: Engine, job_id: int, *, name: str | None = None, origin: Origin | None) -> None:
    """Mark a job as removed, so that it has no results any longer; they are deleted by `empty_job`, or by `prune`.

    Marking it again changes nothing.

    Args:
        name: The classifier that it must be of, in any of its generations; None: of any.
        origin: Who asks, for the audit ledger; None: the caller records it.

    Raises:
        JobError: It is running.
    """
    with transaction(engine) as connection:
        require_job(connection, name, job_id)
        if removal.mark(connection, job_id, Why.REQUEST):
            if origin is not None:
                audit.add(connection, Event(origin, "delete_job", target=f"job {job_id}"))
        elif jobs.by_id(connection, job_id).removed_at is None:
            raise JobError(
                f"job {job_id} is running: only a job that is over can be removed; cancel it first",
                code=Code.JOB_RUNNING,
                job=job_id,
            )


def empty_job(engine: Engine, job_id: int, *, on_rows: OnRows = lambda _: None) -> Removed:
    """Delete what is left of a removed job, however long exemplars or labels are coming."""
    tally = _Tally(engine, BATCH_ROWS, on_rows, until=None, patience=None)
    tally.empty(job_id)
    tally.jobs = 1
    return tally.removed()


def vacuum(engine: Engine) -> None:
    """Make the room of what was removed free for what comes."""
    removal.vacuum(engine)


def _remove_all(tally: "_Tally", engine: Engine, kept_for: timedelta | None, origin: Origin) -> None:
    """Go on with removals, then mark old jobs and empty them one by one, except those of classifiers that block it."""
    tally.continue_all()
    while kept_for is not None and not tally.is_over:
        job_id = _mark_next(engine, kept_for, origin, tally)
        if job_id is None:
            return
        tally.jobs += 1
        tally.empty(job_id)


def _mark_next(engine: Engine, kept_for: timedelta, origin: Origin, tally: "_Tally") -> int | None:
    with transaction(engine) as connection:
        limit = removal.age_limit(connection, kept_for)
        job_id = removal.mark_next(connection, limit, blocked=tally.blocked)
        if job_id is not None and not tally.jobs:
            _note_pruning(connection, origin, limit)
    return job_id


def _note_pruning(connection: Connection, origin: Origin, limit: datetime) -> None:
    audit.add(connection, Event(origin, "prune_jobs", target=f"jobs that ended before {limit:%Y-%m-%d %H:%M %Z}"))


class _Tally:
    """Deletes what is left of removed jobs, and counts it. jobs: how many were marked.

    blocked: classifiers for which exemplars or labels are coming, or of which others remove jobs, for longer than it
    waits.
    """

    def __init__(
        self, engine: Engine, batch_rows: int, on_rows: OnRows, until: float | None, patience: timedelta | None
    ) -> None:
        """until: on the monotonic clock; None: without an end. patience: None: as long as it takes."""
        self._engine = engine
        self._batch_rows = batch_rows
        self._on_rows = on_rows
        self._until = until
        self._patience = patience
        self.jobs = 0
        self.blocked = set[int]()
        self._rows = 0
        self._decisions = 0
        self._longest = 0.0

    @property
    def is_over(self) -> bool:
        """Whether its time is over."""
        return self._until is not None and time.monotonic() >= self._until

    def removed(self) -> Removed:
        with connect(self._engine) as connection:
            is_complete = removal.unfinished(connection) is None
        return Removed(self.jobs, self._rows, self._decisions, is_complete, self._longest)

    def wait_for_all(self) -> None:
        """Wait from now on for as long as it takes, also for the classifiers that were blocked."""
        self._patience = None
        self.blocked.clear()

    def continue_all(self) -> None:
        """Delete what is left of all removed jobs, except those of blocked classifiers."""
        after = 0
        while not self.is_over:
            with connect(self._engine) as connection:
                job = removal.unfinished(connection, after=after, blocked=self.blocked)
            if job is None:
                return
            self._empty(job)
            after = job.id

    def empty(self, job_id: int) -> None:
        """Delete what is left of a removed job, as far as its time and its patience allow."""
        with connect(self._engine) as connection:
            job = removal.unfinished(connection, job_id=job_id)
        if job is not None:
            self._empty(job)

    def _empty(self, job: Row[Any]) -> None:
        after = -1
        while not self.is_over:
            part = self._delete_part(job, after)
            if part is None:
                self.blocked.add(job.classifier_id)
                return
            after = part.last_row
            if part.is_last:
                return

    def _delete_part(self, job: Row[Any], after: int) -> Part | None:
        """Delete some rows; None if others kept it waiting for too long."""
        with transaction(self._engine) as connection:
            if not keep_requests_out(connection, job.classifier_id, wait=self._wait()):
                return None
            began = time.monotonic()
            part = removal.delete_part(connection, job, after=after, most=self._batch_rows)
        self._count(part, time.monotonic() - began)
        return part

    def _wait(self) -> timedelta | None:
        if self._until is None or self._patience is None:
            return self._patience
        return min(self._patience, timedelta(seconds=self._until - time.monotonic()))

    def _count(self, part: Part, seconds: float) -> None:
        self._rows += part.rows
        self._decisions += part.decisions
        self._longest = max(self._longest, seconds)
        self._on_rows(part.rows)
