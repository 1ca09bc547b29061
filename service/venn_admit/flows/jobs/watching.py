"""Watching jobs: watchers are told as a job advances or ends, over one connection for all of them."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
from sqlalchemy import Engine

from venn_admit.errors import DatabaseError
from venn_admit.store.work.messages import listening

POLL_SECONDS = 1.0
RETRY_SECONDS = 1.0

OnChange = Callable[[], None]

log = structlog.get_logger()


class JobWatch:
    """Listens to the database in a thread, as long as anybody watches.

    A watcher is told nothing but that it should look at its job again. It is told so too if the connection was lost,
    because the job may have advanced meanwhile.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._watchers: list[tuple[int, OnChange]] = []
        self._thread: threading.Thread | None = None

    @contextmanager
    def watching(self, job_id: int, on_change: OnChange) -> Iterator[None]:
        """Call a function, in another thread, whenever a job may have changed while the block runs."""
        watcher = (job_id, on_change)
        with self._lock:
            self._watchers.append(watcher)
            if self._thread is None:
                self._thread = threading.Thread(target=self._listen, daemon=True, name="job watch")
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._watchers.remove(watcher)

    def wake(self, job_id: int | None = None) -> None:
        """Have those that watch a job, or any job, look again."""
        with self._lock:
            told = [on_change for watched, on_change in self._watchers if job_id in (None, watched)]
        for on_change in told:
            on_change()

    def _listen(self) -> None:
        while True:
            try:
                with listening(self._engine, poll_seconds=POLL_SECONDS) as changes:
                    self.wake()
                    for job_id in changes:
                        if job_id is not None:
                            self.wake(job_id)
                        elif self._is_over():
                            return
            except DatabaseError as error:
                log.warning("jobs cannot be watched", reason=str(error))
                if self._is_over():
                    return
                time.sleep(RETRY_SECONDS)

    def _is_over(self) -> bool:
        """Whether nobody watches any more; another thread begins with the next who does."""
        with self._lock:
            if self._watchers:
                return False
            self._thread = None
            return True
