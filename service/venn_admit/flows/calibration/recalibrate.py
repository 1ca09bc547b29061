"""Recalibration by requests: labels and data that arrive accumulate, and each calibrator is kept current."""

from dataclasses import dataclass
from enum import StrEnum

import structlog
from celery import Celery
from sqlalchemy import Engine

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.errors import (
    ConflictError,
    DatabaseError,
    JobError,
    NotFoundError,
    NotReadyError,
    OutdatedError,
)
from venn_admit.flows.calibration.approximate import held_classifier, take_in_waiting
from venn_admit.flows.calibration.calibrate import (
    Calibrated,
    add_approximation_job,
    lacking_points,
    take_snapshot,
    vacuum_changed,
)
from venn_admit.flows.jobs.control import relay
from venn_admit.flows.jobs.submit import Send, Submission, submit_job
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import classifiers
from venn_admit.store.work import recalibrations
from venn_admit.store.work.recalibrations import RecalibrationRequest

log = structlog.get_logger()


class RecalibrationOutcome(StrEnum):
    """What a step did for a request, or what it waits for."""

    STARTED = "a job was recorded"
    RUNNING = "its job is running"
    OUTDATED = "data arrived meanwhile"
    RECALIBRATED = "a snapshot was made"
    FAILED = "it cannot be served"


@dataclass(frozen=True, slots=True)
class Step:
    """What a step did. job_id: the job to wait for. calibrated: the new snapshot. error: why there can be none."""

    request: RecalibrationRequest
    outcome: RecalibrationOutcome
    job_id: int | None = None
    calibrated: Calibrated | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _Limits:
    """What bounds a step: rows of a chunk, snapshots to keep, and bytes of temporary arrays."""

    chunk_rows: int
    keep: int | None
    memory_budget: int


def recalibrate_due(
    engine: Engine,
    app: Celery,
    *,
    chunk_rows: int,
    quiet_seconds: float,
    wait_seconds: float,
    keep: int | None,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> list[Step]:
    """Take every request that is due one step further, and return the steps that changed something.

    A calibrator that another process works on is left to it. If the database fails for one request, or its classifier
    is being deleted, the error is logged and the others go on. At last, training exemplars join that a process which
    died left waiting.

    Args:
        engine: The database.
        app: The Celery application to send jobs by.
        chunk_rows: Rows of a chunk.
        quiet_seconds: A request is due once no other has come for this long,
        wait_seconds: or this long after the first.
        keep: As in `calibrate`.
        memory_budget: As in `calibrate`.
    """
    with connect(engine) as connection:
        requests = recalibrations.due(connection, quiet_seconds=quiet_seconds, wait_seconds=wait_seconds)
    steps = []
    for request in requests:
        request_log = log.bind(classifier=request.classifier.name, calibrator=request.calibrator_id)
        try:
            step = recalibrate_step(
                engine,
                request,
                chunk_rows=chunk_rows,
                quiet_seconds=quiet_seconds,
                wait_seconds=wait_seconds,
                keep=keep,
                memory_budget=memory_budget,
                wait=False,
                send=lambda job_id: relay(engine, app, job_id),
            )
        except (ConflictError, DatabaseError, NotFoundError):  # it may be being deleted
            request_log.exception("recalibration failed")
            continue
        if step is None or step.outcome == RecalibrationOutcome.RUNNING:
            continue
        _log(request_log, step)
        steps.append(step)
    take_in_waiting(engine)
    return steps


def retry_and_list(engine: Engine, name: str | None) -> list[RecalibrationRequest]:
    """Return all requests of a classifier, or of all classifiers, as due now; those that failed are tried again.

    name: of a classifier, for all its generations, because labels reach each of them; or of one generation.
    """
    with transaction(engine) as connection:
        ids: list[int | None] = [None]
        if name is not None:
            found = classifiers.by_name(connection, name)
            is_shared = found.name == found.shared_name == name
            ids = [one.id for one in (classifiers.generations(connection, found) if is_shared else [found])]
        # Requests are locked after classifiers, as everywhere.
        for classifier_id in ids:
            recalibrations.take_in_waiting(
                connection, None if classifier_id is None else classifiers.by_id(connection, classifier_id)
            )
        requests = []
        for classifier_id in ids:
            recalibrations.retry(connection, classifier_id)
            requests += recalibrations.due(connection, quiet_seconds=0, wait_seconds=0, classifier_id=classifier_id)
        return requests


def recalibrate_step(
    engine: Engine,
    request: RecalibrationRequest,
    *,
    chunk_rows: int,
    quiet_seconds: float,
    wait_seconds: float,
    keep: int | None,
    wait: bool,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    send: Send | None = None,
) -> Step | None:
    """Take a request a step further: submit its job, or, once that is done, make the snapshot.

    Training exemplars that wait join before the job is submitted, and those that arrived since, after the last step.

    wait: whether to wait for another process that calibrates under the same setting. send: as in `submit_job`. The
    result is None if the request has been served or is no longer due or, without waiting, if another process works on
    it.
    """
    with submit_job(engine, send) as submission:
        guard = submission.connection
        if wait:
            calibrations.lock_calibrator(guard, request.classifier, request.settings)
        elif not calibrations.try_lock_calibrator(guard, request.classifier, request.settings):
            return None
        # Read again, because the process that had the lock may have served it.
        found = recalibrations.due(
            guard, quiet_seconds=quiet_seconds, wait_seconds=wait_seconds, calibrator_id=request.calibrator_id
        )
        limits = _Limits(chunk_rows, keep, memory_budget)
        step = _next_step(submission, found[0], limits) if found else None
    if step is not None and step.calibrated is not None:
        vacuum_changed(engine, step.calibrated)
    if step is not None and step.outcome not in (RecalibrationOutcome.STARTED, RecalibrationOutcome.RUNNING):
        take_in_waiting(engine, request.classifier.address)
    return step


def _next_step(submission: Submission, request: RecalibrationRequest, limits: _Limits) -> Step:
    """submission: its transaction holds the calibrator's lock."""
    guard = submission.connection
    try:
        return _search_or_snapshot(submission, request, limits)
    except OutdatedError:
        recalibrations.await_job(guard, request.calibrator_id, None)
        return Step(request, RecalibrationOutcome.OUTDATED)
    except (NotReadyError, JobError) as error:
        # It is not tried again by itself: it would fail at every look, and record a job each time.
        recalibrations.fail(guard, request, str(error))
        return Step(request, RecalibrationOutcome.FAILED, error=str(error))


def _search_or_snapshot(submission: Submission, request: RecalibrationRequest, limits: _Limits) -> Step:
    guard = submission.connection
    match request.job_state:
        case None:
            take_in_waiting(guard.engine, request.classifier.address)
            with guard.begin_nested() as locked:
                # What arrives from here on waits, because it finds the job.
                classifier = held_classifier(guard, request.classifier)
                lacking = lacking_points(guard, classifier)
                if lacking is not None and len(lacking.exemplar_ids):
                    job_id = add_approximation_job(submission, classifier, lacking, chunk_rows=limits.chunk_rows)
                    recalibrations.await_job(guard, request.calibrator_id, job_id)
                    return Step(request, RecalibrationOutcome.STARTED, job_id=job_id)
                locked.rollback()  # the snapshot needs no lock, and may take long
        case "running":
            return Step(request, RecalibrationOutcome.RUNNING, job_id=request.job_id)
        case "failed" | "cancelled":
            because = f": {request.job_error}" if request.job_error else ""
            raise JobError(f"job {request.job_id} {request.job_state}{because}")
    calibrated = take_snapshot(
        guard,
        request.classifier,
        request.settings,
        reason=request.reason,
        keep=limits.keep,
        memory_budget=limits.memory_budget,
        calibrator_id=request.calibrator_id,
        leave_out=True,
    )
    return Step(request, RecalibrationOutcome.RECALIBRATED, calibrated=calibrated)


def _log(request_log: structlog.stdlib.BoundLogger, step: Step) -> None:
    if step.calibrated is not None:
        changed = step.calibrated.changed
        request_log.info(
            "recalibrated",
            calibration=step.calibrated.calibration_id,
            reason=step.request.reason,
            rows_closed=changed.closed,
            rows_opened=changed.opened,
        )
    elif step.error is not None:
        request_log.warning("recalibration is not possible", error=step.error)
    else:
        request_log.info("recalibration is under way", outcome=str(step.outcome), job=step.job_id)
