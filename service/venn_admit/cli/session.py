"""What a verb works with: the settings, a running database, the broker, and a worker that it starts if it needs one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from venn_admit.cli.options import Stating
from venn_admit.cli.worker_process import OwnWorker
from venn_admit.errors import DatabaseError
from venn_admit.flows.jobs.listing import live_workers
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.embedded.programs import make_home
from venn_admit.store.work.jobs import Progress

if TYPE_CHECKING:
    from venn_admit.files.sources import FileSource
    from venn_admit.flows.jobs.control import OnWait


@dataclass(frozen=True)
class Session(Runtime):
    """The runtime of one run of a verb, which starts a worker if there is none."""

    _own: list[OwnWorker] = field(default_factory=list)  # the one started here, if any

    def require_worker(self) -> None:
        """Raise DatabaseError, before a job is recorded, if there is no worker and none could be started."""
        if not live_workers(self.engine):
            self.require_home()

    def require_home(self) -> None:
        """Raise DatabaseError unless the home can be written."""
        try:
            make_home(self.settings.home)
            with TemporaryFile(dir=self.settings.home):
                pass
        except OSError as error:
            raise DatabaseError(
                f"{self.settings.home} cannot be written: {error.strerror or error}; "
                "set VENN_ADMIT_HOME to a writable folder"
            ) from error

    def exemplars_in(self, file: Path, stating: Stating) -> "FileSource":
        """A file as a source of exemplars, within the memory that the settings allow."""
        from venn_admit.files.records import Stated
        from venn_admit.files.sources import FileSource  # which brings pyarrow

        return FileSource(file, self.memory_budget, Stated(stating.extractor, stating.are_probabilities))

    def run_job(self, job_id: int, on_progress: Callable[[Progress], None], on_wait: "OnWait" = lambda _: None) -> None:
        """Wait for a job as `await_job` does; if there is no worker to compute it, start one and stop it afterwards."""
        from venn_admit.flows.jobs.control import await_job, cancelled_if_unsent  # which brings Celery
        from venn_admit.flows.jobs.leases import LEAST_PART_LEFT

        with cancelled_if_unsent(self.engine, job_id), self.workers() as check_workers:
            await_job(
                self.engine,
                self.broker,
                job_id,
                check_workers=check_workers,
                on_progress=on_progress,
                on_wait=on_wait,
                least_lease_seconds=self.settings.lease_seconds * LEAST_PART_LEFT,
            )

    @contextmanager
    def workers(self) -> Iterator[Callable[[], str | None]]:
        """Make sure that there is a worker, and yield a check to be called while waiting.

        If no running worker takes messages, the check starts one. It returns what is awaited until a worker takes
        messages, and raises JobError if the worker that it started has ended. A block within another uses the worker
        of the outer one.
        """
        outer = bool(self._own)
        try:
            self._check_workers()
            yield self._check_workers
        finally:
            if self._own and not outer:
                self._own.pop().stop()

    def _check_workers(self) -> str | None:
        live = live_workers(self.engine)
        if self._own and self._own[0].is_deaf:
            self._own.pop()
        if not live:
            from venn_admit import broker  # which brings Celery

            broker.prepare(self.broker)  # no worker takes messages without it
        if self._own:
            self._own[0].check(live)
        elif not live:
            self._own.append(OwnWorker(self.settings.home, self.settings.worker_concurrency))
        return None if live else "waiting for a worker that takes messages: one is starting here"
