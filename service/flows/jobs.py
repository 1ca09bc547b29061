"""Sending a job's chunks to workers, waiting until they are done, and ending or reopening a job."""

import time
from collections.abc import Callable

from celery import Celery
from sqlalchemy import Engine

from service import broker
from service.errors import JobError
from service.store import jobs
from service.store.engine import connect, transaction

# A message that led to no claim for so long is taken for lost, and sent again.
RESEND_SECONDS = 60.0
POLL_SECONDS = 0.2

OnProgress = Callable[[jobs.Progress], None]


def relay(engine: Engine, app: Celery, job_id: int | None = None, resend_seconds: float = RESEND_SECONDS) -> int:
    """Send messages for the open chunks that none is under way for; how many were sent.

    The chunks are marked as sent first: a crash in between leaves a message to be sent again, and a message
    sent twice does nothing the second time.
    """
    with transaction(engine) as connection:
        chunks = jobs.take_unsent(connection, job_id, resend_seconds)
    broker.send(app, chunks)
    return len(chunks)


def cancel(engine: Engine, job_id: int) -> None:
    """End a running job: no further chunk is taken up. Raises NotFoundError, or JobError where it is over."""
    with transaction(engine) as connection:
        job = jobs.by_id(connection, job_id)
        if not jobs.cancel(connection, job_id):
            raise JobError(f"job {job_id} is {job.state}: only a running job can be cancelled")


def reopen(engine: Engine, job_id: int) -> None:
    """Let a job that failed or was cancelled go on; one that is running or done is left as it is.

    Failed chunks are tried as if for the first time. Raises NotFoundError.
    """
    with transaction(engine) as connection:
        jobs.by_id(connection, job_id)
        jobs.reopen(connection, job_id)


def await_job(
    engine: Engine, app: Celery, job_id: int, *, check_workers: Callable[[], None], on_progress: OnProgress
) -> None:
    """Wait for a job while others compute it, sending again what got lost.

    check_workers: raises where nobody is left to do the work. Raises JobError where the job failed or was
    cancelled.
    """
    while True:
        relay(engine, app, job_id)
        with connect(engine) as connection:
            progress = jobs.progress(connection, job_id)
        on_progress(progress)
        if progress.state != "running":
            break
        check_workers()
        time.sleep(POLL_SECONDS)
    if progress.state != "done":
        raise JobError(f"job {job_id} {progress.state}: {progress.error or 'no reason was given'}")
