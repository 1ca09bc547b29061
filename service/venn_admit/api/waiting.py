"""Jobs that a request waits for: workers compute them, and never this process, which has no torch."""

import time
from collections.abc import Callable

from venn_admit.errors import JobError
from venn_admit.flows.jobs.control import await_job, cancel
from venn_admit.flows.jobs.leases import LEAST_PART_LEFT
from venn_admit.flows.jobs.listing import live_workers, progress
from venn_admit.flows.shell import Unwatched
from venn_admit.runtime.workspace import Runtime

# How long a request waits while no worker takes messages; one may be restarted.
PATIENCE_SECONDS = 60.0


def require_worker(runtime: Runtime) -> None:
    """Raise JobError if no worker is up that could compute what is asked for."""
    if not live_workers(runtime.engine):
        raise JobError(
            "no worker is up, so nothing was recorded: the service's operator must start a worker; then send the "
            "request again"
        )


class WaitingForWorkers(Unwatched):
    """The shell of a request: nobody watches, and jobs are left to workers."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._seen_at = time.monotonic()

    def run_job(self, job_id: int, what: str, then: Callable[[], None] | None = None) -> None:  # noqa: ARG002 - a shell
        """Wait until workers have computed a job; if there is none to begin with, the job is cancelled.

        Raises JobError if it failed, or if there is no worker.
        """
        runtime = self._runtime
        if progress(runtime.engine, job_id).state != "done":
            self._await(job_id)
        if then is not None:
            then()

    def _await(self, job_id: int) -> None:
        runtime = self._runtime
        if not live_workers(runtime.engine):
            cancel(runtime.engine, job_id)
            raise JobError(
                f"no worker is up, so that job {job_id} was cancelled: the service's operator must start a worker"
            )
        self._seen_at = time.monotonic()
        runtime.send(job_id)
        await_job(
            runtime.engine,
            runtime.broker,
            job_id,
            check_workers=self._check_workers,
            on_progress=lambda _: None,
            least_lease_seconds=runtime.settings.lease_seconds * LEAST_PART_LEFT,
        )

    def _check_workers(self) -> str | None:
        if live_workers(self._runtime.engine):
            self._seen_at = time.monotonic()
            return None
        if time.monotonic() - self._seen_at > PATIENCE_SECONDS:
            raise JobError(
                f"no worker has taken messages for {PATIENCE_SECONDS:.0f} s; the job waits for one: the "
                "service's operator must start a worker"
            )
        return "waiting for a worker that takes messages"
