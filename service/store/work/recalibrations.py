"""Requests for recalibration: one a calibrator, gathered until it is served."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from service.core.types import CalibratorSettings, Split
from service.store.calibrations import calibrations
from service.store.database.statements import statement
from service.store.exemplars import classifiers
from service.store.exemplars.classifiers import Classifier

# What a snapshot rests on: a change in one of these makes it out of date.
CALIBRATION_SPLITS = frozenset({Split.TRAIN, Split.MC, Split.VP})


@dataclass(frozen=True, slots=True)
class RecalibrationRequest:
    """What waits to be recalibrated.

    requested_at: when it was last asked for. job_id: the job that brings approximations up to date, None before
    there is one; job_state and job_error are that job's.
    """

    calibrator_id: int
    classifier: Classifier
    settings: CalibratorSettings
    requested_at: datetime
    reason: str
    job_id: int | None
    job_state: str | None
    job_error: str | None


def request(connection: Connection, classifier: Classifier, reason: str) -> int:
    """Ask for a recalibration under every setting that has a snapshot and is not retired; how many those are."""
    parameters = {"classifier_id": classifier.id, "reason": reason}
    return len(connection.execute(statement("recalibrations.request_recalibration"), parameters).all())


def due(
    connection: Connection,
    *,
    quiet_seconds: float,
    wait_seconds: float,
    classifier_id: int | None = None,
    calibrator_id: int | None = None,
) -> list[RecalibrationRequest]:
    """Requests whose turn it is, the oldest first; of one classifier or calibrator, or of all.

    quiet_seconds: for which no other request came. wait_seconds: after which that does not matter.
    """
    parameters = {
        "quiet_seconds": quiet_seconds,
        "wait_seconds": wait_seconds,
        "classifier_id": classifier_id,
        "calibrator_id": calibrator_id,
    }
    return [
        RecalibrationRequest(
            calibrator_id=row.calibrator_id,
            classifier=classifiers.by_id(connection, row.classifier_id),
            settings=calibrations.settings_of(row),
            requested_at=row.last_requested_at,
            reason=row.reason,
            job_id=row.job_id,
            job_state=row.job_state,
            job_error=row.job_error,
        )
        for row in connection.execute(statement("recalibrations.due_requests"), parameters).all()
    ]


def requested_at(connection: Connection, classifier: Classifier, settings: CalibratorSettings) -> datetime | None:
    """When recalibration under these settings was last asked for; None where it was not."""
    parameters = {"classifier_id": classifier.id, "settings_digest": calibrations.settings_digest(settings)}
    found: datetime | None = connection.execute(
        statement("recalibrations.requested_at"), parameters
    ).scalar_one_or_none()
    return found


def await_job(connection: Connection, calibrator_id: int, job_id: int | None) -> None:
    """Let a request wait for a job; None: no longer for the one it has."""
    connection.execute(statement("recalibrations.await_job"), {"calibrator_id": calibrator_id, "job_id": job_id})


def serve(connection: Connection, calibrator_id: int, requested_at: datetime, *, whole: bool) -> None:
    """A snapshot holds all that was asked for until then, or not the whole; the rest stays a request."""
    of_calibrator = {"calibrator_id": calibrator_id}
    if whole:
        parameters = of_calibrator | {"requested_at": requested_at}
        whole = bool(connection.execute(statement("recalibrations.delete_request"), parameters).rowcount)
    if not whole:
        connection.execute(statement("recalibrations.renew_request"), of_calibrator)


def fail(connection: Connection, request: RecalibrationRequest, error: str) -> None:
    """Let a request rest until another comes or somebody retries it; the error says why."""
    parameters = {"calibrator_id": request.calibrator_id, "requested_at": request.requested_at, "error": error}
    connection.execute(statement("recalibrations.fail_request"), parameters)


def retry(connection: Connection, classifier_id: int | None) -> None:
    """Try again what could not be served, of one classifier or of all."""
    connection.execute(statement("recalibrations.retry_requests"), {"classifier_id": classifier_id})
