"""Whether a worker is there to take messages, told by a lock in the database."""

import threading

import structlog
from sqlalchemy import Engine

from service.errors import DatabaseError
from service.store import jobs
from service.store.engine import connect

CHECK_SECONDS = 2.0

log = structlog.get_logger()


class Presence:
    """A shared lock on a connection of its own, taken again where the connection was lost.

    The server drops it with the connection, however the worker ends.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
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
                self._hold()
            except DatabaseError as error:
                log.warning("presence was lost", error=str(error))
                self._left.wait(CHECK_SECONDS)

    def _hold(self) -> None:
        with connect(self._engine) as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.detach()  # to be closed at the end: in the pool it would keep the lock
            jobs.announce_worker(connection)
            while not self._left.wait(CHECK_SECONDS):
                jobs.live_workers(connection)
