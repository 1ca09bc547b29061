"""Celery tasks: each takes ids, calls one flow and returns counts; if it is delivered twice, it works once."""

import os
from functools import cache

from celery import Celery

# Imported before the children are forked, so that they share it: torch, which flows import where they need it, too.
import venn_admit.service.core.neighbours.search
import venn_admit.service.flows.computing  # noqa: F401
from venn_admit.service import broker
from venn_admit.service.flows.calibration.recalibrate import recalibrate_due
from venn_admit.service.flows.jobs.chunks import ChunkRunner
from venn_admit.service.flows.jobs.control import relay
from venn_admit.service.flows.monitoring.keep_watch import update_behind
from venn_admit.service.runtime import Runtime
from venn_admit.workers.requests import AttentiveRequest, process_name


def add_tasks(app: Celery, runtime: Runtime) -> None:
    """Give an application its tasks, which work with a runtime."""
    settings = runtime.settings

    @cache
    def own_runner() -> ChunkRunner:
        """Return this process's runner, which is made at its first use, in the child that computes."""
        return runtime.chunk_runner(process_name(os.getpid()))

    @app.task(name=broker.RUN_CHUNK, shared=False, Request=AttentiveRequest)
    def run_chunk(job_id: int, ordinal: int) -> int:
        """Compute a chunk, and return how many of its rows were completed."""
        return own_runner().run(job_id, ordinal)

    @app.task(name=broker.SWEEP, shared=False, Request=AttentiveRequest)
    def sweep_jobs() -> int:
        """Send messages again for chunks without a live lease, and return how many."""
        return relay(runtime.engine, app)

    @app.task(name=broker.RECALIBRATE, shared=False, Request=AttentiveRequest)
    def recalibrate() -> int:
        """Take the recalibrations that are due one step further, and return how many."""
        steps = recalibrate_due(
            runtime.engine,
            app,
            chunk_rows=settings.chunk_rows,
            quiet_seconds=settings.recalibrate_quiet_seconds,
            wait_seconds=settings.recalibrate_wait_seconds,
            keep=settings.keep_calibrations,
            memory_budget=runtime.memory_budget,
        )
        return len(steps)

    @app.task(name=broker.MONITOR, shared=False, Request=AttentiveRequest)
    def monitor() -> int:
        """Update the monitors of classifiers that labels came for, send their alarms, and return how many."""
        return len(update_behind(runtime.engine, settings.monitor_webhook))
