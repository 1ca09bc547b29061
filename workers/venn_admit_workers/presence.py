"""A lock in the database that tells whether a worker is there to take messages."""

import threading
from collections.abc import Callable
from typing import NoReturn

import structlog
from sqlalchemy import Engine

from venn_admit.errors import DatabaseError
from venn_admit.store.database.engine import connect
from venn_admit.store.work import jobs
from venn_admit_workers.consumption import Consumption

CHECK_SECONDS = 2.0

log = structlog.get_logger()


class Presence:
    """A shared lock on a separate connection, held while nothing keeps the worker from taking messages.

    The server drops it with the connection, however the worker ends. It is taken again if the connection was lost.
    end: called once the worker is not expected to take messages again.
    """

    def __init__(self, engine: Engine, consumption: Consumption, *, end: Callable[[], NoReturn]) -> None:
        self._engine = engine
        self._consumption = consumption
        self._end = end
        self._left = threading.Event()

    def announce(self) -> None:
        """Start a thread that takes the lock and keeps it."""
        threading.Thread(target=self._keep, daemon=True, name="presence").start()

    def leave(self) -> None:
        """Make the thread release the lock soon; signal handlers may call this."""
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
        """Hold the lock until the worker leaves or has a problem, and return the problem."""
        with connect(self._engine) as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.detach()  # it is closed at the end: in the pool it would keep the lock
            jobs.announce_worker(connection)
            while not self._left.wait(CHECK_SECONDS):
                jobs.live_workers(connection)
                problem = self._consumption.problem()
                if problem is not None:
                    return problem
        return None
