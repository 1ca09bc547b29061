"""The jobs, their progress, and the workers that compute them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, Row

from venn_admit.errors import Code, NotFoundError
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import classifiers
from venn_admit.store.work import jobs

# A job, or a chunk of one, with the columns of `jobs.sql` and `job_chunks.sql`.
JobRow = Row[Any]
ChunkRow = Row[Any]


@dataclass(frozen=True, slots=True)
class ShownJob:
    """One job in detail. states: its chunks counted by state; chunks: each of them, if they were asked for."""

    summary: JobRow
    states: Sequence[ChunkRow]
    chunks: Sequence[ChunkRow]


def list_jobs(engine: Engine, name: str | None, *, limit: int, before: int | None = None) -> Sequence[JobRow]:
    """Return the newest jobs of a classifier, or of all; before: only those older than a job. Raises NotFoundError."""
    with connect(engine) as connection:
        if name is not None:
            name = classifiers.by_name(connection, name).name
        return jobs.summaries(connection, limit=limit, classifier=name, before=before)


def show_job(engine: Engine, job_id: int, *, with_chunks: bool = False, name: str | None = None) -> ShownJob:
    """Return one job, its progress and its chunks. Raises NotFoundError.

    name: of the classifier that it must be of, in any of its generations; None: of any.
    """
    with connect(engine) as connection:
        if name is not None:
            classifiers.by_name(connection, name)  # which is named first if neither is there
        job = jobs.by_id(connection, job_id)
        if name is not None and classifiers.having(connection, name, job.classifier_id) is None:
            raise NotFoundError(f"classifier {name!r} has no job {job_id}", code=Code.UNKNOWN_JOB, job=job_id)
        (summary,) = jobs.summaries(connection, limit=1, job_id=job_id)
        return ShownJob(
            summary,
            jobs.chunk_states(connection, job_id),
            jobs.chunks(connection, job_id) if with_chunks else [],
        )


def progress(engine: Engine, job_id: int) -> jobs.Progress:
    """Return the progress of a job."""
    with connect(engine) as connection:
        return jobs.progress(connection, job_id)


def live_workers(engine: Engine) -> int:
    """Return how many workers are up and take messages."""
    with connect(engine) as connection:
        return jobs.live_workers(connection)


def has_worker_here(engine: Engine) -> bool:
    """Return whether a worker on this machine, or in this container, is up and takes messages."""
    with connect(engine) as connection:
        return jobs.has_worker_here(connection)
