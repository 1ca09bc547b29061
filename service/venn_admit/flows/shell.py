"""What a use case needs of the shell that runs it."""

from collections.abc import Callable
from typing import Protocol

OnRows = Callable[[int], None]
"""Told of each number of rows more that are done."""


class Display(Protocol):
    """Shows somebody how far a computation is."""

    def show(self, what: str, total: int | None = None) -> None:
        """Show what is done from now on, and of how many rows if that is known."""

    def advance(self, rows: int) -> None:
        """Show that this number of rows more are done."""


class Unwatched:
    """A display that nobody watches."""

    def show(self, what: str, total: int | None = None) -> None:
        """Show nothing."""

    def advance(self, rows: int) -> None:
        """Show nothing."""


UNWATCHED = Unwatched()


class Shell(Display, Protocol):
    """Sees the jobs of a use case through, and shows what is done, if anybody watches.

    A use case that is given one looks a name up once: its steps are about the generation that the name stands for then.
    """

    def run_job(self, job_id: int, what: str, then: Callable[[], None] | None = None) -> None:
        """See a recorded job through: have workers compute it and wait, or compute it.

        Args:
            what: What it does, in words.
            then: What is to be done with its result before the request is fulfilled, such as writing a file.
        """
