"""The progress of a job as server-sent events."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from starlette.concurrency import run_in_threadpool

from venn_admit.errors import DatabaseError
from venn_admit.flows.jobs.listing import JobWatch, progress
from venn_admit.http.problems import Refused
from venn_admit.http.threads import FOR_EVENTS
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.work.jobs import Progress
from venn_admit_client.codes import Problem

MEDIA_TYPE = "text/event-stream"
HEARTBEAT_SECONDS = 15.0
MOST_SECONDS = 3600.0
MOST_STREAMS = 500
MOST_STREAMS_PER_KEY = 50
# Chunks that end together make one event.
_GATHERING_SECONDS = 0.1
_RETRY_MILLISECONDS = 3000


class JobEvents:
    """The streams of an application, all of which one connection to the database serves."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._watch = JobWatch(runtime.engine)
        self._is_ending = False
        self._streams: Counter[str] = Counter()

    def end(self) -> None:
        """End every stream, because the service does; clients ask again once there is another."""
        self._is_ending = True
        self._watch.wake()

    async def is_known(self, job_id: int, last_id: str | None) -> bool:
        """Return whether a client that was sent an event has seen the end of a job."""
        if last_id is None:
            return False
        now = await run_in_threadpool(progress, self._runtime.engine, job_id)
        return now.state != "running" and last_id == _id(now)

    def require_room(self, caller: str) -> None:
        """Raise Refused if there are as many streams as there may be, of a caller or of all."""
        if self._streams[caller] >= MOST_STREAMS_PER_KEY:
            raise _too_many(f"{MOST_STREAMS_PER_KEY} streams of events with a key")
        if self._streams.total() >= MOST_STREAMS:
            raise _too_many(f"{MOST_STREAMS} streams of events in this process")

    async def of(
        self, job_id: int, last_id: str | None, caller: str, is_accepted: Callable[[], bool]
    ) -> AsyncIterator[str]:
        """Yield the events of a job until it is over, or the caller is not accepted any more.

        Args:
            job_id: The job.
            last_id: The id of the last event that the client has seen.
            caller: Among whose streams it is.
            is_accepted: Whether what the caller has shown still is.
        """
        loop, changed, until = asyncio.get_running_loop(), asyncio.Event(), time.monotonic() + MOST_SECONDS

        def wake() -> None:
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(changed.set)

        def look() -> Progress | None:
            return progress(self._runtime.engine, job_id) if is_accepted() else None

        self._streams[caller] += 1
        try:
            with self._watch.watching(job_id, wake):
                yield f"retry: {_RETRY_MILLISECONDS}\n\n"
                while not self._is_ending and time.monotonic() < until:
                    changed.clear()
                    try:
                        now = await FOR_EVENTS.run(look)
                    except DatabaseError:
                        yield ": the database cannot be reached\n\n"
                    else:
                        if now is None:
                            return
                        is_over = now.state != "running"
                        if is_over or _id(now) != last_id:
                            last_id = _id(now)
                            yield _event(job_id, now)
                        if is_over:
                            return
                    try:
                        async with asyncio.timeout(HEARTBEAT_SECONDS):
                            await changed.wait()
                            await asyncio.sleep(_GATHERING_SECONDS)
                    except TimeoutError:
                        yield ": still there\n\n"
        finally:
            self._streams[caller] -= 1
            self._streams += Counter()  # callers without streams are forgotten


def _too_many(most: str) -> Refused:
    return Refused(
        429,
        Problem.TOO_MANY,
        f"expected at most {most} at a time, got another; poll the job instead",
        headers={"Retry-After": "10"},
    )


def _id(now: Progress) -> str:
    return f"{now.rows_done}-{now.state}"


def _event(job_id: int, now: Progress) -> str:
    kind = "progress" if now.state == "running" else "end"
    data = {"job": job_id, "state": now.state, "rows": now.row_count, "rows_done": now.rows_done, "error": now.error}
    return f"id: {_id(now)}\nevent: {kind}\ndata: {json.dumps(data)}\n\n"
