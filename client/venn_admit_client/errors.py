"""Refusals of the service as errors: one root, the families that the Python interface has, and those of HTTP alone."""

from collections.abc import Mapping
from typing import Any

from .codes import Code, Problem


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


_FAMILIES: dict[str, type[VennAdmitError]] = {
    one.general: one
    for one in (
        VennAdmitError,
        InvalidInputError,
        ConflictError,
        NotFoundError,
        NotReadyError,
        OutdatedError,
        AccessError,
        DatabaseError,
        JobError,
        AlarmError,
        BrokerError,
        UnavailableError,
    )
}
_BY_CODE: dict[str, type[VennAdmitError]] = {str(one): _FAMILIES[one.family] for one in (*Code, *Problem)} | {
    "unavailable": UnavailableError
}
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
