"""Refusals of the service as errors: one root, the families that the Python interface has, and those of HTTP alone."""

from collections.abc import Mapping
from typing import Any


class VennAdmitError(Exception):
    """The root of every error that this package raises on purpose. Raised itself, it is a fault of the service.

    Attributes:
        code: What the error is about, which stays the same while its message may be reworded.
        parameters: What the message names, such as `{"classifier": "reviews"}`.
        status: The status of the answer; None if the request was not answered, or not sent.
        request_id: The number under which the service's log has the request; None if it was not answered.
    """

    general = "failed"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        status: int | None = None,
        request_id: str | None = None,
    ) -> None:
        """Make an error; its code is the family's general one unless it is given."""
        super().__init__(message)
        self.code = self.general if code is None else code
        self.parameters = dict(parameters or {})
        self.status = status
        self.request_id = request_id


class InvalidInputError(VennAdmitError):
    """An array, an argument or a request is invalid; nothing of the request was stored."""

    general = "invalid-input"


class ConflictError(InvalidInputError):
    """The input contradicts what is stored, such as a known id with different content."""

    general = "conflict"


class NotFoundError(VennAdmitError):
    """A name, a number or an address refers to nothing that there is."""

    general = "not-found"


class NotReadyError(VennAdmitError):
    """An earlier step is missing, such as calibrating before deciding, or it left too little data."""

    general = "not-ready"


class OutdatedError(NotReadyError):
    """The result of an earlier step does not cover data that arrived or changed since; run that step again."""

    general = "outdated"


class AccessError(VennAdmitError):
    """The key is not valid, or does not allow this."""

    general = "forbidden"


class DatabaseError(VennAdmitError):
    """The database of the service cannot be reached, or refused a statement."""

    general = "database"


class JobError(VennAdmitError):
    """A job did not complete: a chunk failed for good, or no worker took it."""

    general = "job"


class AlarmError(VennAdmitError):
    """An alarm of a monitor stands: admitted predictions may be wrong more often than they should be."""

    general = "alarm"


class BrokerError(JobError):
    """The broker of the service cannot be reached."""

    general = "broker"


class UnavailableError(VennAdmitError):
    """The service could not be reached, or was too busy, until the time for retries was over."""

    general = "unavailable"


_FAMILIES: tuple[tuple[type[VennAdmitError], tuple[str, ...]], ...] = (
    (VennAdmitError, ("internal",)),
    (
        InvalidInputError,
        (
            "label-missing",
            "unlabelled",
            "no-vectors",
            "vectors-unwanted",
            "probabilities",
            "encoder-unnamed",
            "parameters-unreadable",
            "invalid-request",
            "method-not-allowed",
            "body-too-large",
            "body-incomplete",
            "not-acceptable",
            "unsupported-media-type",
        ),
    ),
    (
        ConflictError,
        (
            "name-taken",
            "setting-in-use",
            "index-exists",
            "training-rows",
            "extractor-differs",
            "extractor-missing",
            "extractor-unstated",
            "idempotency-key-reused",
            "still-running",
            "generation-in-use",
            "jobs-running",
            "being-deleted",
            "forgotten",
            "precondition-failed",
            "precondition-required",
        ),
    ),
    (
        NotFoundError,
        (
            "no-classifier",
            "unknown-classifier",
            "no-setting",
            "unknown-setting",
            "unknown-calibration",
            "unknown-exemplar",
            "unknown-decision",
            "removed-decision",
            "unknown-job",
            "removed-job",
            "unknown-key",
            "unknown-index",
            "no-such-route",
        ),
    ),
    (
        NotReadyError,
        (
            "schema-outdated",
            "program-outdated",
            "too-few-training-exemplars",
            "too-few-classes",
            "not-certifiable",
            "no-held-out-data",
            "not-fitted",
            "changed-during-fit",
            "equal-distances",
            "not-calibrated",
            "index-missing",
        ),
    ),
    (OutdatedError, ("changed-during-calibration", "recalibration-due", "points-forgotten")),
    (AccessError, ("unauthenticated",)),
    (DatabaseError, ("schema-mismatch", "database-unreachable", "database-busy", "damaged")),
    (JobError, ("job-not-running", "job-running")),
    (AlarmError, ()),
    (BrokerError, ()),
    (
        UnavailableError,
        ("too-many-requests", "too-busy", "too-many", "no-room", "body-too-slow", "issuer-unreachable"),
    ),
)
_BY_CODE = {code: family for family, codes in _FAMILIES for code in (family.general, *codes)}
# For an answer of a newer service, or of a proxy before it.
_BY_STATUS: dict[int, type[VennAdmitError]] = {
    400: InvalidInputError,
    401: AccessError,
    403: AccessError,
    404: NotFoundError,
    413: InvalidInputError,
    422: InvalidInputError,
    429: UnavailableError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}


def family_of(code: str | None, status: int) -> type[VennAdmitError]:
    """Return the class of errors with this code; of a code that is not known here, that of the status.

    >>> family_of("not-calibrated", 409).__name__, family_of("made-later", 404).__name__
    ('NotReadyError', 'NotFoundError')
    """
    known = None if code is None else _BY_CODE.get(code)
    return known or _BY_STATUS.get(status, VennAdmitError)
