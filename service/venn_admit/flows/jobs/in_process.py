"""A job computed by the process that waits for it, beside workers if there are any."""

import time

from sqlalchemy import Engine

from venn_admit.flows.jobs.chunks import ChunkRunner
from venn_admit.flows.jobs.control import POLL_SECONDS, require_done
from venn_admit.store.database.engine import at_once, connect
from venn_admit.store.work import jobs

_OVER = ("done", "failed")


def compute_job(engine: Engine, runner: ChunkRunner, job_id: int) -> None:
    """Compute a job's chunks until the job is over; chunks that a worker has are left to it unless they are late.

    Args:
        runner: Computes chunks.

    Raises:
        JobError: The job failed or was cancelled.
    """
    while True:
        with connect(engine) as connection:
            progress = jobs.progress(connection, job_id)
            open_chunks = [row.chunk for row in jobs.chunks(connection, job_id) if row.state not in _OVER]
        if progress.state != "running":
            break
        claims = (runner.claim(job_id, ordinal) for ordinal in open_chunks)
        if not sum(runner.compute(claim) for claim in claims if claim is not None):
            time.sleep(POLL_SECONDS)
            with at_once(engine) as connection:
                jobs.mark_late(connection, job_id)
    require_done(job_id, progress)
