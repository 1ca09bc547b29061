"""The errors venn-admit raises: one root, one family for each kind of cause.

A message says what was expected, what came, where, and what to do about it.
"""


class VennAdmitError(Exception):
    """Root of every error this package raises on purpose.

    `exit_code` is what the command line returns for the family.
    """

    exit_code = 1


class InvalidInputError(VennAdmitError):
    """A file, an array or an argument does not hold what it should; nothing of it was stored."""

    exit_code = 2


class ConflictError(InvalidInputError):
    """What came contradicts what is stored, such as a known id with other content."""


class NotFoundError(VennAdmitError):
    """A name or number refers to nothing that is stored."""

    exit_code = 3


class NotReadyError(VennAdmitError):
    """An earlier step is missing, such as calibrating before fitting, or its data are too few."""

    exit_code = 4


class OutdatedError(NotReadyError):
    """What an earlier step computed does not cover data that came or changed since; that step is to be run again."""


class DatabaseError(VennAdmitError):
    """The database cannot be reached or started, or refused a statement."""

    exit_code = 5


class JobError(VennAdmitError):
    """A job did not complete: a chunk failed for good, or no worker took it."""

    exit_code = 6


class BrokerError(JobError):
    """The broker cannot be reached, refuses us, or does not answer in time."""
