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

# A message that led to no claim for so long is taken for lost, and sent again.
RESEND_SECONDS = 60.0
# How often a waiting command looks how far its job is, which is a look-up of the job's own chunks,
POLL_SECONDS = 0.2
# and how often it sends what got lost and sees that there are workers, which looks at all jobs and sessions.
CARE_SECONDS = 1.0
# For how long a job waits for a broker that was reached before.
BROKER_PATIENCE_SECONDS = 120.0

OnProgress = Callable[[jobs.Progress], None]
# Called with what a job waits for; None while it moves.
OnWait = Callable[[str | None], None]


def relay(engine: Engine, app: Celery, job_id: int | None = None, resend_seconds: float = RESEND_SECONDS) -> int:
    """Send messages for the open chunks that none is under way for; how many were sent.

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
    """End a running job: no further chunk is taken up. Raises NotFoundError, or JobError where it is over."""
    with transaction(engine) as connection:
        job = jobs.by_id(connection, job_id)
        if not jobs.cancel(connection, job_id):
            raise JobError(
                f"job {job_id} is {job.state}: only a running job can be cancelled",
                code=Code.JOB_NOT_RUNNING,
                job=job_id,
            )


def reopen(engine: Engine, job_id: int) -> None:
    """Let a job that failed or was cancelled go on; one that is running or done is left as it is.

    Failed chunks are tried as if for the first time. Raises NotFoundError.
    """
    with transaction(engine) as connection:
        jobs.by_id(connection, job_id)
        jobs.reopen(connection, job_id)


@contextmanager
def cancelled_if_unsent(engine: Engine, job_id: int) -> Iterator[None]:
    """Cancel a job, with the error, where the broker fails in the block and no worker can know of the job yet."""
    try:
        yield
    except BrokerError as error:
        with transaction(engine) as connection:
            cancelled = jobs.cancel_unsent(connection, job_id, error=str(error))
        if cancelled:
            raise BrokerError(f"job {job_id} was cancelled, for it could not be sent: {error}") from error
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
    """Wait for a job while others compute it, sending again what got lost.

    Args:
        check_workers: says what is awaited where no worker is there, None where one is; raises where there will be
            none.
        on_wait: is told at each look what the job waits for.
        least_lease_seconds: a worker whose claim on a chunk ends sooner is taken for dead.

    Raises:
        JobError: the job failed or was cancelled.
        BrokerError: the broker cannot be reached, for a while if it was before. A job that was never sent is
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
