"""Sending a job's chunks to workers, waiting until they are done, and ending or reopening a job."""

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from celery import Celery
from sqlalchemy import Connection, Engine

from venn_admit import broker
from venn_admit.errors import BrokerError, Code, JobError
from venn_admit.report.wording import counted
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import at_once, connect, transaction
from venn_admit.store.exemplars import classifiers
from venn_admit.store.work import jobs

# If no message waits, those of chunks that were sent this long ago and can be claimed count as lost.
RESEND_SECONDS = 5.0
# How often progress is read while waiting, which is a look-up of the chunks of one job,
POLL_SECONDS = 0.2
# how often first messages are sent and workers are checked, which reads all sessions,
CARE_SECONDS = 1.0
# and how often lost messages are sent again, which reads all jobs, and asks the broker if some have waited for long.
COUNT_SECONDS = 5.0
# How long a job waits for a broker that was reached before.
BROKER_PATIENCE_SECONDS = 120.0

OnProgress = Callable[[jobs.Progress], None]
# Called with what a job waits for; None while it advances.
OnWait = Callable[[str | None], None]

log = logging.getLogger(__name__)


def relay(engine: Engine, app: Celery, job_id: int | None = None, resend_seconds: float = RESEND_SECONDS) -> int:
    """Send the messages that `take_due` names, and return how many were sent. Raises BrokerError.

    The chunks are marked as sent first: a crash in between leaves a message to be sent again, and one message too many
    does nothing. If the broker cannot be reached, they count as not sent.
    """
    return _send(engine, app, take_due(engine, app, job_id, resend_seconds))


def relay_unsent(engine: Engine, app: Celery, job_id: int) -> int:
    """Send the messages that `relay` sends without counting those that wait, which the broker need not be asked for.

    The chunks are those of the job that never had a message, or whose claim has expired since. Return how many were
    sent. Raises BrokerError.
    """
    with at_once(engine) as connection:
        chunks = jobs.take_unsent(connection, job_id)
    return _send(engine, app, chunks)


def _send(engine: Engine, app: Celery, chunks: list[tuple[int, int]]) -> int:
    if not chunks:
        return 0
    try:
        broker.send(app, chunks)
    except BrokerError:
        with at_once(engine) as connection:
            jobs.unsend(connection, chunks)
        raise
    return len(chunks)


def take_due(engine: Engine, app: Celery, job_id: int | None, resend_seconds: float) -> list[tuple[int, int]]:
    """Return the chunks (job, ordinal) that a message must be sent for, and mark them as sent. Raises BrokerError.

    A message wakes a worker for whichever chunk is next, so chunks lack theirs only if no message waits although they
    were sent long ago: while one waits, every worker is busy. All of them are sent again then.

    job_id: the job whose chunks may lack a first message; None for all. resend_seconds: how long ago.
    """
    with at_once(engine) as connection:
        overdue = jobs.overdue(connection, resend_seconds)
    are_lost = overdue > 0 and broker.waiting(app, chunks_only=True) == 0
    with at_once(engine) as connection:
        unsent = jobs.take_unsent(connection, job_id)
        lost = jobs.take_overdue(connection, resend_seconds) if are_lost else []
    if lost:
        are = "is" if len(lost) == 1 else "are"
        log.warning("messages were lost: %s %s sent again", counted(len(lost), "chunk"), are)
    return unsent + lost


def cancel(engine: Engine, job_id: int) -> None:
    """End a running job: no further chunk of it is claimed, and what is still computed of it does not count.

    Raises:
        JobError: The job is over.
    """
    with transaction(engine) as connection:
        job = jobs.by_id(connection, job_id)
        if not jobs.cancel(connection, job_id):
            raise JobError(
                f"job {job_id} is {job.state}: only a running job can be cancelled",
                code=Code.JOB_NOT_RUNNING,
                job=job_id,
            )


def reopen(engine: Engine, job_id: int) -> None:
    """Let a job that failed or was cancelled continue; one that is running or done stays as it is.

    Failed chunks are tried as if for the first time.

    Raises:
        NotFoundError: There is no such job, or it was removed.
        ConflictError: The classifier is being deleted.
    """
    with transaction(engine) as connection:
        job = jobs.unremoved(connection, job_id)
        if job.state in ("failed", "cancelled"):
            _require_resumable(connection, job)
        jobs.reopen(connection, job_id)


def _require_resumable(connection: Connection, job: jobs.Job) -> None:
    """Raise before a job goes on that could not be completed."""
    classifier = classifiers.by_id(connection, job.classifier_id)
    classifiers.require_usable(classifier)
    if job.kind == "score" and job.calibration_id is not None:
        calibration = calibrations.by_id(connection, classifier, job.calibration_id)
        calibrations.require_whole(connection, classifier, calibration)


@contextmanager
def cancelled_if_unsent(engine: Engine, job_id: int) -> Iterator[None]:
    """If the broker fails in the block, cancel the job with that error, unless a worker may know of the job already."""
    try:
        yield
    except BrokerError as error:
        with transaction(engine) as connection:
            cancelled = jobs.cancel_unsent(connection, job_id, error=str(error))
        if cancelled:
            raise BrokerError(f"job {job_id} was cancelled because it could not be sent: {error}") from error
        raise


def await_job(
    engine: Engine,
    app: Celery,
    job_id: int,
    *,
    check_workers: Callable[[], str | None],
    on_progress: OnProgress,
    on_wait: OnWait = lambda _: None,
    least_lease_seconds: float = 0.0,
) -> None:
    """Wait for a job while workers compute it, and send lost messages again.

    Args:
        check_workers: Returns what is awaited if there is no worker, and None if there is one; raises if there will
            be none.
        on_progress: Called with the progress at each look.
        on_wait: Called with what the job waits for at each look.
        least_lease_seconds: A worker whose claim on a chunk ends sooner is taken for dead.

    Raises:
        JobError: The job failed or was cancelled.
        BrokerError: The broker cannot be reached, or has not been reached for a while. A job that was never sent is
            cancelled.
    """
    with cancelled_if_unsent(engine, job_id):
        relay(engine, app, job_id)
    waits_for, cared_at, reached_at = None, -math.inf, time.monotonic()
    counted_at = reached_at
    while True:
        if time.monotonic() - cared_at >= CARE_SECONDS:
            cared_at = time.monotonic()
            try:
                if cared_at - counted_at >= COUNT_SECONDS:
                    relay(engine, app, job_id)
                    counted_at = cared_at  # not if it fails, or a broker that is away would count as reached next time
                else:
                    relay_unsent(engine, app, job_id)
                waits_for = check_workers()
                reached_at = time.monotonic()
            except BrokerError as error:
                if time.monotonic() - reached_at > BROKER_PATIENCE_SECONDS:
                    raise
                waits_for = f"waiting for the broker: {error}"
        with connect(engine) as connection:
            progress = jobs.progress(connection, job_id, least_lease_seconds=least_lease_seconds)
        on_progress(progress)
        if progress.state != "running":
            break
        if progress.chunks_orphaned and not progress.chunks_alive:
            waits_for = waits_for or "waiting for a chunk whose worker died"
        on_wait(waits_for)
        time.sleep(POLL_SECONDS)
    require_done(job_id, progress)


def require_done(job_id: int, progress: jobs.Progress) -> None:
    """Raise JobError unless a job that is over is complete."""
    if progress.state != "done":
        raise JobError(unsuccessful_text(job_id, progress.state, progress.error))


def unsuccessful_text(job_id: int, state: str, error: str | None) -> str:
    """Return what became of a job that failed or was cancelled, and why if that is known.

    >>> unsuccessful_text(7, "cancelled", None), unsuccessful_text(7, "failed", "disk full")
    ('job 7 was cancelled', 'job 7 failed: disk full')
    """
    became = "was cancelled" if state == "cancelled" else state
    return f"job {job_id} {became}{f': {error}' if error else ''}"
