"""Waiting for a job: a bar, what is awaited where nothing moves, and how to go on after an interruption."""

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from service.cli.output import messages, progress

if TYPE_CHECKING:
    from service.cli.session import Session
    from service.store.work import jobs

# For how long something is awaited before that is said.
NOTICE_SECONDS = 5.0


def run_job_with_progress(session: "Session", job_id: int, what: str, out: Path | None = None) -> None:
    """Wait for a job behind a bar.

    out: the file to which the job's decisions go afterwards, named in what is said after an interruption.
    """
    from service.store.database.engine import connect
    from service.store.work import jobs

    with connect(session.engine) as connection:
        total = jobs.progress(connection, job_id).row_count
    if not total:
        return
    with resumption_explained(session, job_id, out), progress(what, total) as advance:
        done = 0

        def show(state: "jobs.Progress") -> None:
            nonlocal done
            advance(state.rows_done - done)
            done = state.rows_done

        session.run_job(job_id, show, Notices())


class Notices:
    """Says once, on standard error, what a job waits for that does not move for a while."""

    def __init__(self) -> None:
        self._reason: str | None = None
        self._since = 0.0
        self._is_said = False

    def __call__(self, reason: str | None) -> None:
        """Take note of what is awaited now; None: the job moves."""
        if reason != self._reason:
            self._reason, self._since, self._is_said = reason, time.monotonic(), False
        elif reason is not None and not self._is_said and time.monotonic() - self._since > NOTICE_SECONDS:
            messages.print(Text(reason), soft_wrap=True)
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
            messages.print(Text(f"{lacks} To see it through: {shlex.join(command)}"), soft_wrap=True)
        raise


def _may_be_resumed(session: "Session", job_id: int) -> bool:
    from service.errors import DatabaseError
    from service.store.database.engine import connect
    from service.store.work import jobs

    try:
        with connect(session.engine) as connection:
            return jobs.progress(connection, job_id).state != "done"
    except DatabaseError:  # nobody can tell now, but most likely so
        return True
