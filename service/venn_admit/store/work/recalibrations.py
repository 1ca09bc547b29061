"""Requests for recalibration, one for each calibrator, gathered until it is served."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from venn_admit.core.calibrators.settings import MethodSettings
from venn_admit.core.split_names import Split
from venn_admit.store.calibrations.settings_rows import settings_digest, settings_of
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars import classifiers, support
from venn_admit.store.exemplars.classifiers import Classifier

# The foundations of a snapshot: a change in one of these makes it out of date.
CALIBRATION_SPLITS = frozenset({Split.TRAIN, Split.MC, Split.VP})
LABELS = "labels"
"""The reason of requests for labels of stored exemplars."""
TRAINING_DATA = "training data"
"""The reason of requests for training exemplars that were ingested."""
NEW_PARAMETERS = "new parameters"
"""The reason of requests for parameters of the KNN that were fitted."""


@dataclass(frozen=True, slots=True)
class RecalibrationRequest:
    """A request that waits to be served.

    requested_at: when it was last made. job_id: the job that brings approximations up to date, None before there is
    one, and if one that was recorded before `requested_at` has failed or was cancelled; job_state and job_error are
    those of that job.
    """

    calibrator_id: int
    classifier: Classifier
    settings: MethodSettings
    requested_at: datetime
    reason: str
    job_id: int | None
    job_state: str | None
    job_error: str | None


def request(
    connection: Connection,
    classifier: Classifier,
    reason: str,
    *,
    calibrator_id: int | None = None,
    only_standing: bool = False,
) -> int:
    """Request a recalibration under every setting that has a snapshot and is not retired; return their number.

    calibrator_id: None for all, or of one of them. only_standing: whether it is only for certificates that stand.
    """
    parameters = {
        "classifier_id": classifier.id,
        "calibrator_id": calibrator_id,
        "only_standing": only_standing,
        "reason": reason,
    }
    return len(execute(connection, "recalibrations.request_recalibration", **parameters).all())


def take_in_waiting(connection: Connection, classifier_id: int | None = None) -> int:
    """Let the training exemplars that wait train from now on, unless what they wait for is under way.

    A recalibration is requested for them. It may be called at any time and by several processes at once: the one that
    ends what they wait for does so, and because that process may die in between, so does the one that begins such a
    thing, and beat. A classifier that somebody else has locked is left to the next of these.

    classifier_id: None for all. Returns the number of classifiers that have new training exemplars.
    """
    joined = support.join_waiting(connection, classifier_id)
    for one in joined:
        request(connection, classifiers.by_id(connection, one), TRAINING_DATA)
    return len(joined)


def due(
    connection: Connection,
    *,
    quiet_seconds: float,
    wait_seconds: float,
    classifier_id: int | None = None,
    calibrator_id: int | None = None,
    known: Collection[Classifier] = (),
) -> list[RecalibrationRequest]:
    """Return the requests that are due, oldest first; of one classifier or calibrator, or of all.

    quiet_seconds: a request is due if no other came for this long. wait_seconds: a request that is this old is due in
    any case. known: classifiers that need not be read again.
    """
    found = {one.id: one for one in known}
    parameters = {
        "quiet_seconds": quiet_seconds,
        "wait_seconds": wait_seconds,
        "classifier_id": classifier_id,
        "calibrator_id": calibrator_id,
    }
    return [
        RecalibrationRequest(
            calibrator_id=row.calibrator_id,
            classifier=found.get(row.classifier_id) or classifiers.by_id(connection, row.classifier_id),
            settings=settings_of(row.settings),
            requested_at=row.last_requested_at,
            reason=row.reason,
            job_id=row.job_id,
            job_state=row.job_state,
            job_error=row.job_error,
        )
        for row in execute(connection, "recalibrations.due_requests", **parameters).all()
    ]


def requested_at(connection: Connection, classifier: Classifier, settings: MethodSettings) -> datetime | None:
    """Return when recalibration under these settings was last requested; None if it was not."""
    parameters = {"classifier_id": classifier.id, "settings_digest": settings_digest(settings)}
    return execute(connection, "recalibrations.requested_at", **parameters).scalar_one_or_none()


def await_job(connection: Connection, calibrator_id: int, job_id: int | None) -> None:
    """Let a request wait for a job; None means that it no longer waits for one."""
    execute(connection, "recalibrations.await_job", calibrator_id=calibrator_id, job_id=job_id)


def serve(connection: Connection, calibrator_id: int, requested_at: datetime, *, whole: bool) -> None:
    """Record that a snapshot serves a request, in whole or in part; later requests remain."""
    of_calibrator = {"calibrator_id": calibrator_id}
    if whole:
        parameters = of_calibrator | {"requested_at": requested_at}
        whole = bool(execute(connection, "recalibrations.delete_request", **parameters).rowcount)
    if not whole:
        execute(connection, "recalibrations.renew_request", **of_calibrator)


def fail(connection: Connection, request: RecalibrationRequest, error: str) -> None:
    """Suspend a request until another comes or somebody retries it; the error says why."""
    parameters = {"calibrator_id": request.calibrator_id, "requested_at": request.requested_at, "error": error}
    execute(connection, "recalibrations.fail_request", **parameters)


def retry(connection: Connection, classifier_id: int | None) -> None:
    """Let requests that could not be served be tried again, of one classifier or of all."""
    execute(connection, "recalibrations.retry_requests", classifier_id=classifier_id)
