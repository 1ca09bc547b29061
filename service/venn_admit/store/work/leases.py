"""Leases on the chunks of jobs: claimed, renewed, and ended with a result or an error."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import Connection

from venn_admit.core.types import IntArray
from venn_admit.store.database.ids import execute_ids
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars import support
from venn_admit.store.work import messages

# The longest time that a chunk waits after it fails, before it is tried again.
MAX_RETRY_SECONDS = 60.0


# The kind of job that the others overtake; `jobs_in_turn` names it too.
BULK = "score"


@dataclass(frozen=True, slots=True)
class Claim:
    """A lease on a chunk of a classifier's job; only a result that comes with its token counts.

    kind: of the job. is_last: whether all other chunks of the job are done, for which this one has waited. is_unsent:
    whether no message of its own was under way, so that the message that led to it was sent for another chunk.
    taken_from: the token of the claim of a slower worker, which this one ends; None if there was none. was_late:
    whether a claim before this one was late, so that it may have been taken over.
    """

    job_id: int
    ordinal: int
    kind: str
    classifier: str
    lease_token: UUID
    attempts: int
    first_row: int
    end_row: int
    is_last: bool
    is_unsent: bool
    taken_from: UUID | None
    was_late: bool

    @property
    def is_bulk(self) -> bool:
        """Whether the chunk is of a job that others overtake."""
        return self.kind == BULK


def claim(
    connection: Connection, job_id: int, ordinal: int | None, *, worker: str, lease_seconds: float
) -> Claim | None:
    """Lease a chunk, or with None the first of a job that is free or late.

    The result is None if it is finished, cancelled, held by another worker or must be tried later. It takes several
    statements if the chunk is late, so `connection` must commit each.
    """
    row = execute(
        connection, "job_chunks.claim_chunk", job_id=job_id, ordinal=ordinal, worker=worker, lease_seconds=lease_seconds
    ).one_or_none()
    if row is None:
        return None
    claimed = Claim(job_id, **row._mapping)
    if claimed.taken_from is not None:
        execute(connection, "job_chunks.end_writer", lease_token=str(claimed.taken_from))
    return claimed


def claim_next(connection: Connection, *, bulk_first: bool, worker: str, lease_seconds: float) -> Claim | None:
    """Lease the chunk that is next in turn among all jobs; None if none is free.

    It takes several statements, so `connection` must commit each.

    Args:
        bulk_first: Whether scoring comes before the jobs that usually overtake it.
    """
    for job_id in execute(connection, "jobs.jobs_in_turn", bulk_first=bulk_first).scalars().all():
        claimed = claim(connection, job_id, None, worker=worker, lease_seconds=lease_seconds)
        if claimed is not None:
            return claimed
    return None


def chunk_exemplars(connection: Connection, claimed: Claim) -> IntArray:
    """Return the exemplars of a chunk, in the order of the request, (n,) int64."""
    parameters = {"job_id": claimed.job_id, "first_row": claimed.first_row, "end_row": claimed.end_row}
    return execute_ids(connection, "job_chunks.chunk_exemplars", **parameters)


def _of_claim(claimed: Claim) -> dict[str, Any]:
    return {"job_id": claimed.job_id, "ordinal": claimed.ordinal, "lease_token": claimed.lease_token}


def renew(connection: Connection, claimed: Claim, *, lease_seconds: float) -> bool:
    """Extend a claim to this many seconds from now; return False if it is lost, or the chunk is done."""
    parameters = {**_of_claim(claimed), "lease_seconds": lease_seconds}
    return execute(connection, "job_chunks.renew_lease", **parameters).one_or_none() is not None


def release(connection: Connection, worker: str) -> int:
    """End the claims of a process that is dead; return their number."""
    return execute(connection, "job_chunks.release_chunks", worker=worker).rowcount


def begin_writing(connection: Connection, claimed: Claim, *, lease_seconds: int) -> None:
    """Mark the transaction as the one that writes the result of a chunk.

    It is ended if the claim expires, or if its process stands still for as long as a claim lasts.
    """
    execute(connection, "job_chunks.begin_writing", lease_token=str(claimed.lease_token), lease_seconds=lease_seconds)


def finish(connection: Connection, claimed: Claim) -> bool:
    """Mark a chunk as done, and its job if it was the last.

    The result is False if the lease was lost, or the job was cancelled; then roll back.
    """
    execute(connection, "jobs.lock_job", job_id=claimed.job_id)
    finished = execute(connection, "job_chunks.finish_chunk", **_of_claim(claimed)).one_or_none()
    if finished is None:
        return False
    execute(connection, "jobs.settle_job", job_id=claimed.job_id)
    support.complete_neighbours(connection, claimed.job_id)
    messages.announce(connection, claimed.job_id)
    return True


def fail(connection: Connection, claimed: Claim, *, error: str, max_attempts: int, retry_seconds: float) -> str | None:
    """Give a chunk back after an error; return its new state, `pending` or `failed`, or None if the lease was lost.

    retry_seconds: how long it waits after the first attempt; it waits twice as long after each further one, but no more
    than a minute.
    """
    execute(connection, "jobs.lock_job", job_id=claimed.job_id)
    parameters = {
        **_of_claim(claimed),
        "error": error,
        "max_attempts": max_attempts,
        "retry_seconds": retry_seconds,
        "most_seconds": MAX_RETRY_SECONDS,
    }
    state: str | None = execute(connection, "job_chunks.fail_chunk", **parameters).scalar_one_or_none()
    execute(connection, "jobs.settle_job", job_id=claimed.job_id)
    messages.announce(connection, claimed.job_id)
    return state


def postpone(connection: Connection, claimed: Claim, *, error: str, retry_seconds: float) -> str | None:
    """Give a chunk back after an error that is not its own; return its new state, or None if the lease was lost.

    error: why. retry_seconds: how long it waits; it does not count as an attempt.
    """
    parameters = {**_of_claim(claimed), "error": error, "retry_seconds": retry_seconds}
    state: str | None = execute(connection, "job_chunks.postpone_chunk", **parameters).scalar_one_or_none()
    messages.announce(connection, claimed.job_id)
    return state
