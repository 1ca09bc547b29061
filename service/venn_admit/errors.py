"""The errors venn-admit raises: one root, one family for each kind of cause, and a code for each cause to act on.

A message says what was expected, what was received, where, and what to do about it. It names no command, because
commands, Python functions and requests over HTTP raise the same errors: each of these shells looks the code up in a
table of its own, and adds how its users do what the message asks for.
"""

from venn_admit_client.codes import Code

__all__ = [
    "AlarmError",
    "BrokerError",
    "Code",
    "ConflictError",
    "DatabaseError",
    "InvalidInputError",
    "JobError",
    "NotFoundError",
    "NotReadyError",
    "OutdatedError",
    "Parameter",
    "VennAdmitError",
]

Parameter = str | int | float


class VennAdmitError(Exception):
    """The root of every error that this package raises on purpose.

    Attributes:
        exit_code: The status with which the command line exits after an error of this family.
        general: The code of an error of this family that has no code of its own.
        code: What the error is about.
        parameters: What the message names, such as `{"classifier": "reviews"}`: those of the code.
    """

    exit_code = 1
    general = Code.FAILED

    def __init__(self, message: str, *, code: Code | None = None, **parameters: Parameter) -> None:
        """Make an error; its code is the family's general one unless it is given."""
        super().__init__(message)
        self.code = self.general if code is None else code
        self.parameters = parameters


class InvalidInputError(VennAdmitError):
    """A file, an array or an argument is invalid; nothing of it was stored."""

    exit_code = 2
    general = Code.INVALID_INPUT


class ConflictError(InvalidInputError):
    """The input contradicts what is stored, such as a known id with different content."""

    general = Code.CONFLICT


class NotFoundError(VennAdmitError):
    """A name or number refers to nothing that is stored."""

    exit_code = 3
    general = Code.NOT_FOUND


class NotReadyError(VennAdmitError):
    """An earlier step is missing, such as fitting before calibrating, or it left too little data."""

    exit_code = 4
    general = Code.NOT_READY


class OutdatedError(NotReadyError):
    """The result of an earlier step does not cover data that arrived or changed since; run that step again."""

    general = Code.OUTDATED


class DatabaseError(VennAdmitError):
    """The database cannot be reached or started, or it refused a statement."""

    exit_code = 5
    general = Code.DATABASE


class JobError(VennAdmitError):
    """A job did not complete: a chunk failed for good, or no worker took it."""

    exit_code = 6
    general = Code.JOB


class AlarmError(VennAdmitError):
    """An alarm of a monitor stands: admitted predictions may be wrong more often than they should be."""

    exit_code = 7
    general = Code.ALARM


class BrokerError(JobError):
    """The broker cannot be reached, refuses the connection, or does not answer in time."""

    general = Code.BROKER
