"""Waiting for a job: a progress bar, what is awaited if nothing advances, and how to resume after an interruption."""

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from venn_admit.service.cli.output import messages, progress

if TYPE_CHECKING:
    from venn_admit.service.cli.session import Session
    from venn_admit.service.flows.jobs.submit import Send
    from venn_admit.service.store.work import jobs

# How long something is awaited before a notice says so.
NOTICE_SECONDS = 5.0


def sender(session: "Session", out: Path | None = None) -> "Send":
    """Return what sends the job that a verb submits; if that fails, it says how the job is resumed. out: as below."""

    def send(job_id: int) -> None:
        with resumption_explained(session, job_id, out):
            session.send(job_id)

    return send


def run_job_with_progress(session: "Session", job_id: int, what: str, out: Path | None = None) -> None:
    """Wait for a job behind a bar.

    out: the file to which the job's decisions go afterwards, named in what is said after an interruption.
    """
    from venn_admit.service.flows.jobs import listing

    total = listing.progress(session.engine, job_id).row_count
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
    """Says once, on standard error, what a job that does not advance for a while waits for."""

    def __init__(self) -> None:
        self._reason: str | None = None
        self._since = 0.0
        self._is_said = False

    def __call__(self, reason: str | None) -> None:
        """Take note of what is awaited now; None: the job advances."""
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
            messages.print(Text(f"{lacks} To finish it, run: {shlex.join(command)}"), soft_wrap=True)
        raise


def _may_be_resumed(session: "Session", job_id: int) -> bool:
    from venn_admit.service.errors import DatabaseError
    from venn_admit.service.flows.jobs import listing

    try:
        return listing.progress(session.engine, job_id).state != "done"
    except DatabaseError:  # unknown, but most likely
        return True
