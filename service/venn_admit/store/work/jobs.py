"""Jobs and their chunks, which are the record of work to do. A message to a worker only wakes it up."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row

from venn_admit.errors import Code, NotFoundError
from venn_admit.store.database.statements import execute
from venn_admit.store.work import messages

# A claim is late if it has lasted this many times the median of the job's chunks that are done, and this many seconds.
_LATE_TIMES, _LATE_SECONDS = 3.0, 5.0


@dataclass(frozen=True, slots=True)
class Job:
    """The request of a job, and what became of it.

    knn_parameters_id: None means neighbours only. calibration_id, weighted, require_full_match: for `score` only.
    removed_at: None while its rows and results are kept.
    """

    id: int
    classifier_id: int
    kind: str
    state: str
    knn_parameters_id: int | None
    calibration_id: int | None
    weighted: bool | None
    require_full_match: bool | None
    row_count: int
    error: str | None
    removed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a job: rows of finished chunks, all rows, and chunks whose worker lives or seems to be dead."""

    state: str
    error: str | None
    row_count: int
    rows_done: int
    chunks_alive: int
    chunks_orphaned: int


def mark_late(connection: Connection, job_id: int | None) -> None:
    """Let others take over chunks, of one job or of all, that were claimed much longer ago than others took.

    This happens once to a chunk, and not while another of its job waits. Until somebody takes it over, the worker that
    has it may finish it.
    """
    execute(connection, "job_chunks.mark_late", job_id=job_id, times=_LATE_TIMES, least_seconds=_LATE_SECONDS)


def take_unsent(connection: Connection, job_id: int | None) -> list[tuple[int, int]]:
    """Return open chunks (job, ordinal) that need a message, of one job or of all, and mark them as sent.

    A session that still writes for a claim that has expired is ended, whatever keeps its process. Chunks that are late
    need a message too.
    """
    mark_late(connection, job_id)
    execute(connection, "job_chunks.end_lost_writers")
    return _sent(execute(connection, "job_chunks.take_unsent", job_id=job_id).all())


def overdue(connection: Connection, resend_seconds: float) -> int:
    """Return how many chunks of all jobs wait for a worker although a message was sent this long ago, or longer."""
    return int(execute(connection, "job_chunks.overdue_chunks", resend_seconds=resend_seconds).scalar_one())


def take_overdue(connection: Connection, resend_seconds: float) -> list[tuple[int, int]]:
    """Return these chunks (job, ordinal), and mark them as sent again."""
    return _sent(execute(connection, "job_chunks.take_overdue", resend_seconds=resend_seconds).all())


def _sent(rows: Sequence[Row[Any]]) -> list[tuple[int, int]]:
    return sorted((row.job_id, row.ordinal) for row in rows)


def unsend(connection: Connection, chunks: list[tuple[int, int]]) -> None:
    """Mark chunks (job, ordinal) as never sent, because their messages could not be."""
    job_ids, ordinals = zip(*chunks, strict=True)
    execute(connection, "job_chunks.unsend", job_ids=list(job_ids), ordinals=list(ordinals))


def cancel_unsent(connection: Connection, job_id: int, *, error: str) -> bool:
    """Cancel a job that no worker can know about, and say why; return False if one may, or if the job is over."""
    execute(connection, "jobs.lock_job", job_id=job_id)
    if execute(connection, "jobs.cancel_unsent", job_id=job_id, error=error).one_or_none() is None:
        return False
    messages.announce(connection, job_id)
    return True


def is_last_free(connection: Connection, job_id: int) -> bool:
    """Return whether what is left of a job is a last chunk that no message was sent for."""
    return bool(execute(connection, "job_chunks.is_last_chunk_free", job_id=job_id).scalar_one())


def name_parameters(connection: Connection, job_id: int, knn_parameters_id: int) -> None:
    """Record the parameters that a fit made."""
    execute(connection, "jobs.name_parameters", job_id=job_id, knn_parameters_id=knn_parameters_id)


def by_id(connection: Connection, job_id: int) -> Job:
    row = execute(connection, "jobs.job", job_id=job_id).one_or_none()
    if row is None:
        raise NotFoundError(f"there is no job {job_id}", code=Code.UNKNOWN_JOB, job=job_id)
    return Job(**row._mapping)


def unremoved(connection: Connection, job_id: int) -> Job:
    """Return a job whose rows and results are kept; NotFoundError if there is none, or they were removed."""
    job = by_id(connection, job_id)
    if job.removed_at is not None:
        raise NotFoundError(
            f"the rows and decisions of job {job_id} were removed on {job.removed_at:%Y-%m-%d at %H:%M %Z}; score the "
            "exemplars again for new ones",
            code=Code.REMOVED_JOB,
            job=job_id,
        )
    return job


def progress(connection: Connection, job_id: int, *, least_lease_seconds: float = 0.0) -> Progress:
    """Return the progress of a job. A worker seems dead if its claim ends in less than `least_lease_seconds`."""
    row = execute(connection, "jobs.job_progress", job_id=job_id, least_seconds=least_lease_seconds).one()
    return Progress(row.state, row.error, row.row_count, int(row.rows_done), row.chunks_alive, row.chunks_orphaned)


def lock_requester(connection: Connection, requested_by: str) -> None:
    """Keep others from recording a job for the same requester until this transaction ends."""
    execute(connection, "jobs.lock_requester", requested_by=requested_by)


def running_of(connection: Connection, requested_by: str) -> int:
    """Return how many running jobs a requester has."""
    return int(execute(connection, "jobs.running_jobs_of", requested_by=requested_by).scalar_one())


def summaries(
    connection: Connection,
    *,
    limit: int,
    classifier: str | None = None,
    job_id: int | None = None,
    before: int | None = None,
) -> Sequence[Row[Any]]:
    """Return the newest jobs, newest first, or a given one: its request, state, progress and times.

    before: a job; only older ones are wanted.
    """
    return execute(connection, "jobs.jobs", row_limit=limit, classifier=classifier, job_id=job_id, before=before).all()


def chunk_states(connection: Connection, job_id: int) -> Sequence[Row[Any]]:
    """Return the chunks of a job by state: their number, rows and attempts, and the first error."""
    return execute(connection, "job_chunks.chunk_states", job_id=job_id).all()


def chunks(connection: Connection, job_id: int) -> Sequence[Row[Any]]:
    """Return the chunks of a job in order: state, attempts, worker and last error of each."""
    return execute(connection, "job_chunks.job_chunks", job_id=job_id).all()


def cancel(connection: Connection, job_id: int) -> bool:
    """Cancel a running job; return False if it is not running.

    No further chunk of it is claimed, and what is still computed of it does not count.
    """
    execute(connection, "jobs.lock_job", job_id=job_id)
    if execute(connection, "jobs.cancel_job", job_id=job_id).one_or_none() is None:
        return False
    execute(connection, "job_chunks.take_leases", job_id=job_id)
    messages.announce(connection, job_id)
    return True


def reopen(connection: Connection, job_id: int) -> bool:
    """Run a failed or cancelled job again, from the chunks that are not done.

    The result is False if it is neither, or was removed.
    """
    execute(connection, "jobs.lock_job", job_id=job_id)
    if execute(connection, "jobs.reopen_job", job_id=job_id).one_or_none() is None:
        return False
    execute(connection, "job_chunks.take_leases", job_id=job_id)  # by a process that claimed as it was cancelled
    execute(connection, "job_chunks.reopen_chunks", job_id=job_id)
    execute(connection, "jobs.settle_job", job_id=job_id)
    messages.announce(connection, job_id)
    return True


def announce_worker(connection: Connection) -> None:
    """Count this connection as a live worker until it closes."""
    execute(connection, "jobs.announce_worker")


def live_workers(connection: Connection) -> int:
    """Return the number of workers connected to this database."""
    return int(execute(connection, "jobs.live_workers").scalar_one())


def has_worker_here(connection: Connection) -> bool:
    """Return whether a worker is connected to this database from the machine, or container, of this process."""
    return bool(execute(connection, "jobs.has_worker_here").scalar_one())
