"""Celery tasks: each takes ids, calls one flow and returns counts; if it is delivered twice, it works once."""

import os
from functools import cache

import structlog
from celery import Celery, Task

# Imported before the children are forked, so that they share it: torch, which flows import where they need it, too.
import venn_admit.core.neighbours.on_device
import venn_admit.flows.computing  # noqa: F401
from venn_admit import broker, telemetry
from venn_admit.flows.calibration.recalibrate import recalibrate_due
from venn_admit.flows.cascades.certify import certify_due
from venn_admit.flows.jobs.chunks import ChunkRunner
from venn_admit.flows.jobs.control import relay
from venn_admit.flows.jobs.removal import prune as remove_old_jobs
from venn_admit.flows.jobs.turns import compute_next
from venn_admit.flows.reports.notify import update_behind
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.audit import Origin
from venn_admit_workers.requests import AttentiveRequest, process_name

# After so long the next message goes on: meanwhile, the process takes no chunk.
PRUNE_AT_MOST_SECONDS = 60.0

log = structlog.get_logger()


def add_tasks(app: Celery, runtime: Runtime) -> None:
    """Give an application its tasks, which work with a runtime."""
    settings = runtime.settings

    @cache
    def own_runner() -> ChunkRunner:
        """Return this process's runner, which is made at its first use, in the child that computes."""
        telemetry.begin("worker")  # its threads would not survive a fork
        return runtime.chunk_runner(process_name(os.getpid()))

    @app.task(name=broker.RUN_CHUNK, shared=False, Request=AttentiveRequest, bind=True)
    def run_chunk(task: Task, job_id: int, ordinal: int) -> int:
        """Compute the chunk that is next in turn, and return how many of its rows were completed."""
        return compute_next(runtime.engine, app, own_runner(), (job_id, ordinal), task.request.headers or {})

    @app.task(name=broker.SWEEP, shared=False, Request=AttentiveRequest)
    def sweep_jobs() -> int:
        """Send messages again for chunks without a live lease, and return how many."""
        return relay(runtime.engine, app)

    @app.task(name=broker.RECALIBRATE, shared=False, Request=AttentiveRequest)
    def recalibrate() -> int:
        """Take the recalibrations that are due one step further, have cascades follow, and return how many."""
        steps = recalibrate_due(
            runtime,
            app,
            quiet_seconds=settings.recalibrate_quiet_seconds,
            wait_seconds=settings.recalibrate_wait_seconds,
        )
        certificates = certify_due(runtime, runtime.send)
        return len(steps) + len(certificates)

    @app.task(name=broker.MONITOR, shared=False, Request=AttentiveRequest)
    def monitor() -> int:
        """Update the monitors of classifiers that labels came for, send their alarms, and return how many."""
        return len(update_behind(runtime.engine, settings.monitor_webhook))

    @app.task(name=broker.PRUNE, shared=False, Request=AttentiveRequest)
    def prune() -> int:
        """Remove jobs that are old by the settings, go on with removals, and return how many rows were deleted."""
        removed = remove_old_jobs(
            runtime.engine, settings.decisions_kept_for, origin=Origin.SCHEDULE, seconds=PRUNE_AT_MOST_SECONDS
        )
        if removed.rows:
            log.info("removed old jobs", jobs=removed.jobs, rows=removed.rows, decisions=removed.decisions)
        return removed.rows
