"""The jobs, their progress, and the workers that compute them."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, Row

from venn_admit.errors import Code, DatabaseError, NotFoundError
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import classifiers, generations
from venn_admit.store.work import jobs
from venn_admit.store.work.messages import listening

# A job, or a chunk of one, with the columns of `jobs.sql` and `job_chunks.sql`.
JobRow = Row[Any]
ChunkRow = Row[Any]
POLL_SECONDS = 1.0
RETRY_SECONDS = 1.0
OnChange = Callable[[], None]


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


def require_job(connection: Connection, name: str | None, job_id: int) -> None:
    """Raise NotFoundError unless there is a job, and a classifier has it in any of its generations; name: None: any."""
    if name is not None:
        classifiers.by_name(connection, name)  # which is named first if neither is there
    job = jobs.by_id(connection, job_id)
    if name is not None and generations.having(connection, name, job.classifier_id) is None:
        raise NotFoundError(f"classifier {name!r} has no job {job_id}", code=Code.UNKNOWN_JOB, job=job_id)


def show_job(engine: Engine, job_id: int, *, with_chunks: bool = False, name: str | None = None) -> ShownJob:
    """Return one job, its progress and its chunks. Raises NotFoundError.

    name: of the classifier that it must be of, in any of its generations; None: of any.
    """
    with connect(engine) as connection:
        require_job(connection, name, job_id)
        (summary,) = jobs.summaries(connection, limit=1, job_id=job_id)
        return ShownJob(
            summary, jobs.chunk_states(connection, job_id), jobs.chunks(connection, job_id) if with_chunks else []
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


class JobWatch:
    """Listens to the database in a thread, as long as anybody watches.

    A watcher learns only that it should look at its job again, also after the connection was lost, because the job may
    have advanced meanwhile.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._watchers: list[tuple[int, OnChange]] = []
        self._thread: threading.Thread | None = None

    @contextmanager
    def watching(self, job_id: int, on_change: OnChange) -> Iterator[None]:
        """Call a function, in another thread, whenever a job may have changed while the block runs."""
        watcher = (job_id, on_change)
        with self._lock:
            self._watchers.append(watcher)
            if self._thread is None:
                self._thread = threading.Thread(target=self._listen, daemon=True, name="job watch")
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._watchers.remove(watcher)

    def wake(self, job_id: int | None = None) -> None:
        """Have those that watch a job, or any job, look again."""
        with self._lock:
            told = [on_change for watched, on_change in self._watchers if job_id in (None, watched)]
        for on_change in told:
            on_change()

    def _listen(self) -> None:
        while True:
            try:
                with listening(self._engine, poll_seconds=POLL_SECONDS) as changes:
                    self.wake()
                    for job_id in changes:
                        if job_id is not None:
                            self.wake(job_id)
                        elif self._is_over():
                            return
            except DatabaseError as error:
                from venn_admit.logger import log  # only here: what shows jobs starts sooner without structlog

                log.warning("jobs cannot be watched", reason=str(error))
                if self._is_over():
                    return
                time.sleep(RETRY_SECONDS)

    def _is_over(self) -> bool:
        """Whether nobody watches any more; another thread begins with the next who does."""
        with self._lock:
            if self._watchers:
                return False
            self._thread = None
            return True
