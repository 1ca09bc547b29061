"""Sending a job's chunks to workers, waiting until they are done, and ending or reopening a job."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from celery import Celery
from sqlalchemy import Engine

from venn_admit.service import broker
from venn_admit.service.errors import BrokerError, Code, JobError
from venn_admit.service.store.database.engine import at_once, connect, transaction
from venn_admit.service.store.work import jobs

# A message that has led to no claim after this time counts as lost, and is sent again.
RESEND_SECONDS = 60.0
# How often progress is read while waiting, which is a look-up of the chunks of one job,
POLL_SECONDS = 0.2
# and how often lost messages are sent again and workers are checked, which reads all jobs and sessions.
CARE_SECONDS = 1.0
# How long a job waits for a broker that was reached before.
BROKER_PATIENCE_SECONDS = 120.0

OnProgress = Callable[[jobs.Progress], None]
# Called with what a job waits for; None while it advances.
OnWait = Callable[[str | None], None]


def relay(engine: Engine, app: Celery, job_id: int | None = None, resend_seconds: float = RESEND_SECONDS) -> int:
    """Send a message for each open chunk that has none under way, and return how many were sent.

    The chunks are marked as sent first: a crash in between leaves a message to be sent again, and a message
    sent twice does nothing the second time. Raises BrokerError; the chunks count as not sent then.
    """
    with at_once(engine) as connection:
        chunks = jobs.take_unsent(connection, job_id, resend_seconds)
    if not chunks:
        return 0
    try:
        broker.send(app, chunks)
    except BrokerError:
        with at_once(engine) as connection:
            jobs.unsend(connection, chunks)
        raise
    return len(chunks)


def cancel(engine: Engine, job_id: int) -> None:
    """End a running job: no further chunk of it is claimed.

    Raises:
        NotFoundError: There is no such job.
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

    Failed chunks are tried as if for the first time. Raises NotFoundError.
    """
    with transaction(engine) as connection:
        jobs.by_id(connection, job_id)
        jobs.reopen(connection, job_id)


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
        engine: The database.
        app: The Celery application to send by.
        job_id: The job.
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
    while True:
        if time.monotonic() - cared_at >= CARE_SECONDS:
            cared_at = time.monotonic()
            try:
                relay(engine, app, job_id)
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
    if progress.state != "done":
        raise JobError(f"job {job_id} {progress.state}: {progress.error or 'no reason was given'}")
