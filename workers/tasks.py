"""Celery tasks: each takes ids, calls one flow and returns counts; delivered twice, it does its work once."""

from service import broker
from service.flows.calibration.recalibrate import recalibrate_due
from service.flows.jobs.control import relay
from workers.app import app, engine, own_runner, settings

# Of every task, by its name, for that module needs the application.
REQUEST = "workers.requests:AttentiveRequest"


@app.task(name=broker.RUN_CHUNK, shared=False, Request=REQUEST)
def run_chunk(job_id: int, ordinal: int) -> int:
    """Compute a chunk; how many of its rows were settled."""
    return own_runner().run(job_id, ordinal)


@app.task(name=broker.SWEEP, shared=False, Request=REQUEST)
def sweep_jobs() -> int:
    """Send again what no live lease covers; how many messages were sent."""
    return relay(engine, app)


@app.task(name=broker.RECALIBRATE, shared=False, Request=REQUEST)
def recalibrate() -> int:
    """Take the recalibrations that are due a step further; how many."""
    steps = recalibrate_due(
        engine,
        app,
        chunk_rows=settings.chunk_rows,
        quiet_seconds=settings.recalibrate_quiet_seconds,
        wait_seconds=settings.recalibrate_wait_seconds,
        keep=settings.keep_calibrations,
    )
    return len(steps)
