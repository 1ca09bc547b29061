"""Runs the jobs of use cases: on workers if there are any, in this process otherwise."""

import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from venn_admit.errors import VennAdmitError
from venn_admit.flows.jobs.chunks import compute_job
from venn_admit.flows.jobs.control import await_job, cancel
from venn_admit.flows.jobs.leases import LEAST_PART_LEFT
from venn_admit.flows.jobs.listing import live_workers
from venn_admit.logger import in_process
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.work.jobs import Progress as Job
from venn_admit_client.interface import Progress

log = logging.getLogger("venn_admit")


class _WorkersGoneError(Exception):
    """No worker takes messages any more."""


class ProcessShell:
    """The shell of a Python program. What is done is logged to the logger `venn_admit`, at level INFO.

    progress: is told the rows that are done and all rows; None: nobody is.
    """

    def __init__(self, runtime: Runtime, progress: Progress | None = None) -> None:
        self._runtime = runtime
        self._progress = progress
        self._done, self._total = 0, 0

    def following(self, progress: Progress | None) -> Self:
        """Return the same shell, which tells somebody how far it is."""
        return type(self)(self._runtime, progress)

    def show(self, what: str, total: int | None = None) -> None:
        """Log what is done from now on."""
        log.info("%s%s", what, "" if total is None else f": {total:,} rows")
        self._done, self._total = 0, total or 0

    def advance(self, rows: int) -> None:
        """Tell that rows are done; what is done is logged as it begins."""
        self._tell(self._done + rows, self._total)

    def _tell(self, done: int, total: int) -> None:
        if self._progress is not None and done > self._done:
            self._progress(done, total)
        self._done = done

    def _follow(self, job: Job) -> None:
        self._tell(job.rows_done, job.row_count)

    def run_job(self, job_id: int, what: str, then: Callable[[], None] | None = None) -> None:
        """Have workers compute a job as long as there are any, otherwise compute it here; then do what remains."""
        self.show(what)
        self._compute(job_id)
        if then is not None:
            then()

    def _compute(self, job_id: int) -> None:
        if live_workers(self._runtime.engine):
            try:
                self._await(job_id)
            except _WorkersGoneError:
                log.warning("no worker takes messages any more: job %d is computed in this process", job_id)
            else:
                return
        runner = self._runtime.chunk_runner(f"{socket.gethostname()}:{os.getpid()}", log=in_process)
        try:
            compute_job(self._runtime.engine, runner, job_id, on_progress=self._follow)
        except VennAdmitError:
            raise
        except BaseException:  # by Ctrl-C for example: nobody would ever finish it, and `forget` would wait for it
            with suppress(VennAdmitError):
                cancel(self._runtime.engine, job_id)
            raise

    def _await(self, job_id: int) -> None:
        runtime = self._runtime
        runtime.send(job_id)
        await_job(
            runtime.engine,
            runtime.broker,
            job_id,
            check_workers=self._require_workers,
            on_progress=self._follow,
            least_lease_seconds=runtime.settings.lease_seconds * LEAST_PART_LEFT,
        )

    def _require_workers(self) -> None:
        if not live_workers(self._runtime.engine):
            raise _WorkersGoneError
