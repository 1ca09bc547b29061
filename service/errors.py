"""The errors venn-admit raises: one root, and one family for each kind of cause.

A message says what was expected, what came, where, and what to do about it.
"""


class VennAdmitError(Exception):
    """The root of every error that this package raises on purpose.

    Attributes:
        exit_code: The status with which the command line exits after an error of this family.
    """

    exit_code = 1


class InvalidInputError(VennAdmitError):
    """A file, an array or an argument is not as it must be; nothing of it was stored."""

    exit_code = 2


class ConflictError(InvalidInputError):
    """The input contradicts what is stored, such as a known id with different content."""


class NotFoundError(VennAdmitError):
    """A name or number refers to nothing that is stored."""

    exit_code = 3


class NotReadyError(VennAdmitError):
    """An earlier step is missing, such as fitting before calibrating, or it left too little data."""

    exit_code = 4


class OutdatedError(NotReadyError):
    """The result of an earlier step does not cover data that arrived or changed since; run that step again."""


class DatabaseError(VennAdmitError):
    """The database cannot be reached or started, or it refused a statement."""

    exit_code = 5


class JobError(VennAdmitError):
    """A job did not complete: a chunk failed for good, or no worker took it."""

    exit_code = 6


class BrokerError(JobError):
    """The broker cannot be reached, refuses the connection, or does not answer in time."""
