"""Requests to decide that wait at the same time are decided together, by one thread and one statement."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread

from venn_admit.core.neighbours.one_pass import MOST_QUERIES
from venn_admit.flows.decisions.score_one import AskedPoints, PointDecision
from venn_admit.runtime.workspace import Runtime

# As many as one pass over the training exemplars is for.
MOST_POINTS = MOST_QUERIES

_Waiting = list[tuple[AskedPoints, asyncio.Future[list[PointDecision] | None]]]
_Decided = Sequence[list[PointDecision] | None] | Exception


class Together:
    """Decides for the requests of one application.

    A request that finds none under way for its classifier is decided at once, and those that come meanwhile together,
    once it is done: nobody waits for others to come.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        # A line for each event loop, classifier, and what requests must have in common, while a thread decides for it.
        self._lines: dict[tuple[object, ...], _Waiting] = {}
        self._idle: list[_Thread] = []

    async def decide(self, name: str, asked: AskedPoints) -> list[PointDecision] | None:
        """Decide on the points of a request, `MOST_POINTS` at most; None as `PointScorer.score_kept` says."""
        loop = asyncio.get_running_loop()
        key, answer = (loop, name, *asked.way), loop.create_future()
        line = self._lines.get(key)
        if line is None:
            self._lines[key] = line = []
            loop.call_soon(self._decide_next, loop, name, key)
        line.append((asked, answer))
        found: list[PointDecision] | None = await answer
        return found

    def _decide_next(self, loop: asyncio.AbstractEventLoop, name: str, key: tuple[object, ...]) -> None:
        together = _first(self._lines[key])

        def decide() -> None:
            decided: _Decided
            try:
                decided = self._runtime.point_scorer.score_kept(name, [asked for asked, _ in together])
            except Exception as error:
                decided = error
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(take, decided)

        def take(decided: _Decided) -> None:
            self._idle.append(thread)
            answer(decided)

        def answer(decided: _Decided) -> None:
            _tell(together, decided)
            if self._lines[key]:
                self._decide_next(loop, name, key)
            else:
                del self._lines[key]

        try:
            thread = self._idle.pop() if self._idle else _Thread()
        except RuntimeError as error:  # there are too many
            answer(error)
        else:
            thread.work.put(decide)


class _Thread:
    """A thread that waits for work, which takes a fraction of the time that those for routes take to be found."""

    def __init__(self) -> None:
        self.work = SimpleQueue[Callable[[], None]]()
        Thread(target=self._run, daemon=True, name="decisions").start()

    def _run(self) -> None:
        while True:
            self.work.get()()


def _tell(together: _Waiting, decided: _Decided) -> None:
    for row, (_, waiting) in enumerate(together):
        if waiting.done():  # its request was given up
            continue
        if isinstance(decided, Exception):
            waiting.set_exception(decided)
        else:
            waiting.set_result(decided[row])


def _first(line: _Waiting) -> _Waiting:
    """Take those that have waited longest out of a line, as many as one pass is for."""
    count, points = 0, 0
    for asked, _ in line:
        points += len(asked.points)
        if count and points > MOST_POINTS:
            break
        count += 1
    together, line[:count] = line[:count], []
    return together
