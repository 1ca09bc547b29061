"""Whether a worker is there to take messages, told by a lock in the database."""

import threading
from collections.abc import Callable
from typing import NoReturn

import structlog
from sqlalchemy import Engine

from venn_admit.service.errors import DatabaseError
from venn_admit.service.store.database.engine import connect
from venn_admit.service.store.work import jobs
from venn_admit.workers.consumption import Consumption

CHECK_SECONDS = 2.0

log = structlog.get_logger()


class Presence:
    """A shared lock on a connection of its own, held while nothing keeps the worker from taking messages.

    The server drops it with the connection, however the worker ends. It is taken again after the connection was lost.
    end: is called once no hope is left that the worker takes messages again.
    """

    def __init__(self, engine: Engine, consumption: Consumption, *, end: Callable[[], NoReturn]) -> None:
        self._engine = engine
        self._consumption = consumption
        self._end = end
        self._left = threading.Event()

    def announce(self) -> None:
        """Take the lock, soon, and keep it."""
        threading.Thread(target=self._keep, daemon=True, name="presence").start()

    def leave(self) -> None:
        """Let the lock go, soon; to be called by a signal's handler too."""
        self._left.set()

    def _keep(self) -> None:
        while not self._left.is_set():
            try:
                problem = self._consumption.problem() or self._hold()
            except DatabaseError as error:
                problem = str(error)
            if problem is not None:
                log.warning("this worker does not count as live", problem=problem)
                self._left.wait(CHECK_SECONDS)
            if self._consumption.is_hopeless:
                self._end()

    def _hold(self) -> str | None:
        """Hold the lock until the worker leaves, or a problem comes up, which is returned."""
        with connect(self._engine) as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.detach()  # to be closed at the end: in the pool it would keep the lock
            jobs.announce_worker(connection)
            while not self._left.wait(CHECK_SECONDS):
                jobs.live_workers(connection)
                problem = self._consumption.problem()
                if problem is not None:
                    return problem
        return None
