"""Threads that do not wait behind requests: those of the routes may all be waiting for workers or for the database."""

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

_Given = TypeVarTuple("_Given")
_Found = TypeVar("_Found")


class OwnThreads:
    """Threads for one purpose, apart from those of the routes."""

    def __init__(self, purpose: str, most: int) -> None:
        self._most = most
        # Each event loop has its own.
        self._limiter: RunVar[CapacityLimiter] = RunVar(f"threads for {purpose}")

    async def run(self, function: Callable[[*_Given], _Found], *given: *_Given) -> _Found:
        """Return what a function returns in one of these threads."""
        try:
            limiter = self._limiter.get()
        except LookupError:
            limiter = CapacityLimiter(self._most)
            self._limiter.set(limiter)
        return await to_thread.run_sync(function, *given, limiter=limiter)


# A key is looked up in much less time than most requests take.
FOR_KEYS = OwnThreads("keys", 8)
# Readiness is asked for every few seconds, and takes half a minute if the database does not answer.
FOR_READINESS = OwnThreads("readiness", 8)
# All streams together look at their jobs no more often than this many threads can.
FOR_EVENTS = OwnThreads("events", 4)
