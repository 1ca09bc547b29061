"""Waiting for a job: a progress bar, what is awaited if nothing advances, and how to resume after an interruption."""

import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.text import Text

from venn_admit.cli.output import cell, messages, progress

if TYPE_CHECKING:
    from rich.status import Status

    from venn_admit.cli.session import Session
    from venn_admit.store.work import jobs

# How long something is awaited before a notice says so.
NOTICE_SECONDS = 5.0


class Showing:
    """What a verb shows while a flow runs: a bar or a line on standard error."""

    def __init__(self) -> None:
        self._display = ExitStack()
        self._advance: Callable[[int], None] = lambda _: None
        self._status: Status | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._display.__exit__(kind, error, trace)  # an error takes the bar away
        self.clear()

    def show(self, what: str, total: int | None = None) -> None:
        """Show a bar, or a line if the number of rows is unknown."""
        if total is not None:
            self.clear()
            self._advance = self._display.enter_context(progress(what, total))
        elif self._status is None:
            self.clear()
            self._status = self._display.enter_context(messages.status(cell(what)))
        else:
            self._status.update(cell(what))

    def advance(self, rows: int) -> None:
        """Move the bar."""
        self._advance(rows)

    def clear(self) -> None:
        """End the bar, which stays as it is, or the line, which goes."""
        self._display.close()
        self._advance, self._status = lambda _: None, None


class Waiting(Showing):
    """The shell of a verb while a flow runs: it shows what is done, and sees jobs through that workers compute.

    out: the file to which a job's decisions go afterwards, named in what is said after an interruption.
    """

    def __init__(self, session: "Session", out: Path | None = None) -> None:
        super().__init__()
        self._session = session
        self._out = out

    def run_job(self, job_id: int, what: str, then: Callable[[], None] | None = None) -> None:
        """Send a job, wait for it, and do what remains; whatever ends that early, it says how the job is resumed."""
        from venn_admit.flows.jobs import listing

        self.clear()
        job = listing.progress(self._session.engine, job_id)
        if job.row_count and job.state != "done":
            self._wait(job_id, what, job.row_count)
        if then is not None:
            with resumption_explained(self._session, job_id, self._out, even_if_done=True):
                then()

    def _wait(self, job_id: int, what: str, total: int) -> None:
        with resumption_explained(self._session, job_id, self._out):
            self._session.send(job_id)
            with progress(what, total) as advance:
                done = 0

                def move(state: "jobs.Progress") -> None:
                    nonlocal done
                    advance(state.rows_done - done)
                    done = state.rows_done

                self._session.run_job(job_id, move, Notices())


class Notices:
    """Says once, on standard error, what a job that does not advance for a while waits for."""

    def __init__(self) -> None:
        self._obstacle: str | None = None
        self._since = 0.0
        self._is_said = False

    def __call__(self, obstacle: str | None) -> None:
        """Take note of what is awaited now; None: the job advances."""
        if obstacle != self._obstacle:
            self._obstacle, self._since, self._is_said = obstacle, time.monotonic(), False
        elif obstacle is not None and not self._is_said and time.monotonic() - self._since > NOTICE_SECONDS:
            messages.print(Text(obstacle), soft_wrap=True)
            self._is_said = True


@contextmanager
def resumption_explained(
    session: "Session", job_id: int, out: Path | None, *, even_if_done: bool = False
) -> Iterator[None]:
    """Say how a job is resumed if the block ends before it, whatever ended the block.

    even_if_done: whether there is more to do than the job, such as writing its decisions to a file.
    """
    try:
        yield
    except BaseException:
        if even_if_done or _may_be_resumed(session, job_id):
            command = ["venn-admit", "jobs", "resume", str(job_id), *(() if out is None else ("--out", str(out)))]
            lacks = f"{out} was not written." if even_if_done else f"Job {job_id} is not done."
            messages.print(Text(f"{lacks} To finish it, run: {shlex.join(command)}"), soft_wrap=True)
        raise


def _may_be_resumed(session: "Session", job_id: int) -> bool:
    from venn_admit.errors import DatabaseError
    from venn_admit.flows.jobs import listing

    try:
        return listing.progress(session.engine, job_id).state != "done"
    except DatabaseError:  # unknown, but most likely
        return True
