"""Requests to decide that wait at the same time are decided together, by one thread and one statement."""

import asyncio

from starlette.concurrency import run_in_threadpool

from venn_admit.core.neighbours.one_pass import MOST_QUERIES
from venn_admit.flows.decisions.score_one import AskedPoints, PointDecision
from venn_admit.runtime.workspace import Runtime

# As many as one pass over the training exemplars is for.
MOST_POINTS = MOST_QUERIES

_Waiting = list[tuple[AskedPoints, asyncio.Future[list[PointDecision] | None]]]


class Together:
    """Decides for the requests of one application.

    A request that finds none under way for its classifier is decided at once, and those that come meanwhile together,
    once it is done: nobody waits for others to come.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        # A line for each event loop, classifier, and what requests must have in common, while a thread decides for it.
        self._lines: dict[tuple[object, ...], _Waiting] = {}
        self._deciding: set[asyncio.Task[None]] = set()

    async def decide(self, name: str, asked: AskedPoints) -> list[PointDecision] | None:
        """Decide on the points of a request, `MOST_POINTS` at most; None as `PointScorer.score_kept` says."""
        loop = asyncio.get_running_loop()
        key, answer = (loop, name, *asked.way), loop.create_future()
        line = self._lines.get(key)
        if line is None:
            self._lines[key] = line = []
            task = asyncio.create_task(self._decide_all(name, key, line))
            self._deciding.add(task)
            task.add_done_callback(self._deciding.discard)
        line.append((asked, answer))
        found: list[PointDecision] | None = await answer
        return found

    async def _decide_all(self, name: str, key: tuple[object, ...], line: _Waiting) -> None:
        try:
            while line:
                together = _first(line)
                asked = [one for one, _ in together]
                waiting = [answer for _, answer in together]
                try:
                    decided = await run_in_threadpool(self._runtime.point_scorer.score_kept, name, asked)
                except Exception as error:
                    for answer in waiting:
                        if not answer.done():  # its request may have been given up
                            answer.set_exception(error)
                else:
                    for answer, found in zip(waiting, decided, strict=True):
                        if not answer.done():
                            answer.set_result(found)
        finally:
            del self._lines[key]


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
