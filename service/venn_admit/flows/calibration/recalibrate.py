"""Recalibration by requests: labels and data that arrive accumulate, and each calibrator is kept current."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from operator import itemgetter
from typing import Any

from celery import Celery
from sqlalchemy import Connection, Engine
from structlog.typing import FilteringBoundLogger

from venn_admit.errors import ConflictError, DatabaseError, JobError, NotFoundError, NotReadyError, OutdatedError
from venn_admit.flows.calibration.approximate import held_classifier, take_in_waiting
from venn_admit.flows.calibration.calibrate import (
    Calibrated,
    add_approximation_job,
    lacking_points,
    take_snapshot,
    vacuum_changed,
)
from venn_admit.flows.jobs.control import relay, unsuccessful_text
from venn_admit.flows.jobs.submit import Send, Submission, submit_job
from venn_admit.flows.keys.keys import Asker, asked_by
from venn_admit.flows.shell import Shell
from venn_admit.logger import log
from venn_admit.store.access.audit import Origin
from venn_admit.store.calibrations import calibrations, calibrators, point_changes
from venn_admit.store.database.engine import connect, consistent_view, transaction
from venn_admit.store.decisions import reports
from venn_admit.store.exemplars import classifiers, generations
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.work import recalibrations
from venn_admit.store.work.recalibrations import RecalibrationRequest
from venn_admit.store.workspace import Workspace


class RecalibrationOutcome(StrEnum):
    """What a step did for a request, or what it waits for."""

    STARTED = "a job was recorded"
    RUNNING = "its job is running"
    OUTDATED = "data arrived meanwhile"
    RECALIBRATED = "a snapshot was made"
    FAILED = "it cannot be served"


@dataclass(frozen=True, slots=True)
class RecalibrationStep:
    """What a step did. job_id: the job to wait for. calibrated: the new snapshot. error: why there can be none."""

    request: RecalibrationRequest
    outcome: RecalibrationOutcome
    job_id: int | None = None
    calibrated: Calibrated | None = None
    error: str | None = None

    @property
    def by_chain(self) -> list["RecalibrationStep"]:
        """The step, and before it that of the chain in use, if it advanced a newer one that waits."""
        of_current = None if self.calibrated is None else self.calibrated.of_current
        return [self] if of_current is None else [replace(self, calibrated=of_current), self]


def recalibrate_due(
    workspace: Workspace, app: Celery, *, quiet_seconds: float, wait_seconds: float
) -> list[RecalibrationStep]:
    """Take every request that is due one step further, and return the steps that changed something.

    A calibrator that another process works on is left to it. If the database fails for one request, or its classifier
    is being deleted, the error is logged and the others go on. At last, training exemplars join that a process which
    died left waiting.

    Args:
        quiet_seconds: A request is due once no other has come for this long,
        wait_seconds: or this long after the first.
    """
    with connect(workspace.engine) as connection:
        requests = recalibrations.due(connection, quiet_seconds=quiet_seconds, wait_seconds=wait_seconds)
    steps = []
    for request in requests:
        request_log = log.bind(classifier=request.classifier.name, calibrator=request.calibrator_id)
        try:
            step = recalibrate_step(
                workspace,
                request,
                quiet_seconds=quiet_seconds,
                wait_seconds=wait_seconds,
                wait=False,
                send=lambda job_id: relay(workspace.engine, app, job_id),
            )
        except (ConflictError, DatabaseError, NotFoundError):  # it may be being deleted
            request_log.exception("recalibration failed")
            continue
        if step is None or step.outcome == RecalibrationOutcome.RUNNING:
            continue
        for one in step.by_chain:
            _log(request_log, one)
        steps.append(step)
    take_in_waiting(workspace.engine)
    return steps


def retry_and_list(engine: Engine, name: str | None) -> list[RecalibrationRequest]:
    """Return all requests of a classifier, or of all classifiers, as due now; those that failed are tried again.

    It is requested under settings whose calibration lacks labels or parameters although no request waits.

    name: of a classifier, for all its generations, because labels reach each of them; or of one generation.
    """
    with transaction(engine) as connection:
        of: Sequence[Classifier | None] = [None]
        if name is not None:
            named = classifiers.by_name(connection, name)
            is_shared = named.name == named.shared_name == name
            of = generations.of_same(connection, named) if is_shared else [named]
        # Requests are locked after classifiers, as everywhere.
        for classifier in of:
            recalibrations.take_in_waiting(connection, None if classifier is None else classifier.id)
    ids = [None if classifier is None else classifier.id for classifier in of]
    with consistent_view(engine) as view:
        found = [one for one in classifiers.every(view) if name is None or one.id in ids]
        behind = [(setting, one, reason) for one in found for setting, reason in _behind(view, one)]
    if behind:
        with transaction(engine) as connection:
            for setting, classifier, reason in sorted(behind, key=itemgetter(0)):
                recalibrations.request(connection, classifier, reason, calibrator_id=setting)
    requests = []
    with transaction(engine) as connection:  # whose clock is later than that of the requests
        for classifier_id in ids:
            recalibrations.retry(connection, classifier_id)
            requests += recalibrations.due(
                connection, quiet_seconds=0, wait_seconds=0, classifier_id=classifier_id, known=found
            )
    return requests


def _behind(view: Connection, classifier: Classifier) -> Iterator[tuple[int, str]]:
    """Yield the settings whose calibration lacks what no request waits for, and what: an old one was put in use.

    A chain goes on from its newest snapshot, whichever is in use.
    """
    if classifier.deleting_since is not None:
        return
    for setting in calibrators.of_classifier(view, classifier):
        is_kept = setting.has_current and setting.retired_at is None and not setting.settings.standing
        if not is_kept or setting.due_for is not None:
            continue
        calibration = calibrations.by_id(view, classifier, setting.calibration_id)
        if reports.snapshot_origin(view, calibration).parameters_are_current is False:
            yield setting.id, recalibrations.NEW_PARAMETERS
        elif not point_changes.is_as_it_was(view, classifier, calibration) and (
            reports.snapshot_changes(view, calibration).total
        ):
            yield setting.id, recalibrations.LABELS


def recalibrate(
    workspace: Workspace, name: str | None, *, shell: Shell, by: Asker = Origin.COMMAND_LINE
) -> list[tuple[RecalibrationRequest, RecalibrationStep | None]]:
    """Serve all requests for a recalibration at once, each to its snapshot or to what prevents it.

    Args:
        name: A classifier's name; None: all.

    Returns:
        The requests with their last steps, twice if a newer chain waits beside the one in use; None if another process
        made the snapshot.
    """
    served: list[tuple[RecalibrationRequest, RecalibrationStep | None]] = []
    for request in retry_and_list(workspace.engine, name):
        shell.show(f"Recalibrating {request.classifier.name}")
        step = _step(workspace, request, by)
        while step is not None and step.calibrated is None and step.error is None:
            if step.job_id is not None:
                shell.run_job(step.job_id, f"Approximating {request.classifier.name}")
            step = _step(workspace, request, by)
        served += [(request, one) for one in ([None] if step is None else step.by_chain)]
    return served


def _step(workspace: Workspace, request: RecalibrationRequest, by: Asker) -> RecalibrationStep | None:
    return recalibrate_step(workspace, request, quiet_seconds=0, wait_seconds=0, wait=True, by=by)


def recalibrate_step(
    workspace: Workspace,
    request: RecalibrationRequest,
    *,
    quiet_seconds: float,
    wait_seconds: float,
    wait: bool,
    by: Asker = Origin.COMMAND_LINE,
    send: Send | None = None,
) -> RecalibrationStep | None:
    """Take a request a step further: submit its job, or, once that is done, make the snapshot.

    Training exemplars that wait join before the job is submitted, and those that arrived since, after the last step.

    wait: whether to wait for another process that calibrates under the same setting, because somebody asks for it;
    otherwise, the schedule does. send: as in `submit_job`. The result is None if the request has been served or is no
    longer due or, without waiting, if another process works on it.
    """
    asked = asked_by(by if wait else Origin.SCHEDULE)
    with submit_job(workspace, send) as submission:
        guard = submission.connection
        if wait:
            calibrators.lock(guard, request.classifier, request.settings)
        elif not calibrators.try_lock(guard, request.classifier, request.settings):
            return None
        # Read again, because the process that had the lock may have served it.
        found = recalibrations.due(
            guard,
            quiet_seconds=quiet_seconds,
            wait_seconds=wait_seconds,
            calibrator_id=request.calibrator_id,
            known=[request.classifier],
        )
        step = _next_step(submission, found[0], asked) if found else None
    if step is not None and step.calibrated is not None:
        vacuum_changed(workspace.engine, step.calibrated)
    if step is not None and step.outcome not in (RecalibrationOutcome.STARTED, RecalibrationOutcome.RUNNING):
        take_in_waiting(workspace.engine, request.classifier)
    return step


def _next_step(submission: Submission, request: RecalibrationRequest, asked: Mapping[str, Any]) -> RecalibrationStep:
    """submission: its transaction holds the calibrator's lock. asked: the columns that say who asked for it."""
    guard = submission.connection
    try:
        return _search_or_snapshot(submission, request, asked)
    except OutdatedError:
        recalibrations.await_job(guard, request.calibrator_id, None)
        return RecalibrationStep(request, RecalibrationOutcome.OUTDATED)
    except (NotReadyError, JobError) as error:
        # It is not tried again by itself: it would fail at every look, and record a job each time.
        recalibrations.fail(guard, request, str(error))
        return RecalibrationStep(request, RecalibrationOutcome.FAILED, error=str(error))


def _search_or_snapshot(
    submission: Submission, request: RecalibrationRequest, asked: Mapping[str, Any]
) -> RecalibrationStep:
    guard = submission.connection
    match request.job_state:
        case None:
            take_in_waiting(guard.engine, request.classifier)
            with guard.begin_nested() as locked:
                # What arrives from here on waits, because it finds the job.
                classifier = held_classifier(guard, request.classifier)
                lacking = lacking_points(guard, classifier, request.calibrator_id, has_chain=request.settings.standing)
                if lacking is not None and len(lacking.exemplar_ids):
                    job_id = add_approximation_job(submission, classifier, lacking)
                    recalibrations.await_job(guard, request.calibrator_id, job_id)
                    return RecalibrationStep(request, RecalibrationOutcome.STARTED, job_id=job_id)
                locked.rollback()  # the snapshot needs no lock, and may take long
        case "running":
            return RecalibrationStep(request, RecalibrationOutcome.RUNNING, job_id=request.job_id)
        case "failed" | "cancelled":
            assert request.job_id is not None, "the job has a state"
            raise JobError(unsuccessful_text(request.job_id, request.job_state, request.job_error))
    calibrated = take_snapshot(
        submission.workspace,
        guard,
        request.classifier,
        request.settings,
        reason=request.reason,
        asked=asked,
        calibrator_id=request.calibrator_id,
        requested_at=request.requested_at,
        leave_out=True,
    )
    return RecalibrationStep(request, RecalibrationOutcome.RECALIBRATED, calibrated=calibrated)


def _log(request_log: FilteringBoundLogger, step: RecalibrationStep) -> None:
    if step.calibrated is not None:
        changed, withheld = step.calibrated.changed, step.calibrated.withheld
        if withheld is not None:
            request_log.warning(
                "the calibration admits far less than the one before it, and is stored and not put in use",
                calibration=step.calibrated.calibration_id,
                in_use=withheld.before,
                share=withheld.strength.share,
                share_in_use=withheld.strength.share_in_use,
            )
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
