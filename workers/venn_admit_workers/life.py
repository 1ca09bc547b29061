"""What a worker does from its start to its end, on Celery's signals."""

import gc
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

import structlog
from celery import Celery
from celery.signals import task_received, worker_init, worker_process_shutdown, worker_ready, worker_shutting_down
from celery.worker import state
from sqlalchemy import Engine

from venn_admit import broker, telemetry
from venn_admit.cli.advice import advised
from venn_admit.errors import DatabaseError, VennAdmitError
from venn_admit.runtime.log import log_as_json
from venn_admit.runtime.settings import unknown_variables
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.database import schema
from venn_admit.store.database.engine import connect
from venn_admit.store.work import jobs
from venn_admit_workers.consumption import Consumption

# A worker that computes nothing ends within this time.
STOP_SECONDS = 10.0
log = structlog.get_logger()
CHECK_SECONDS = 2.0


class Life:
    """A worker from its start to its end: the runtime, what it takes from the broker, and its presence."""

    def __init__(self, app: Celery, runtime: Runtime) -> None:
        self.runtime = runtime
        self.consumption = Consumption(app)
        self._app = app
        self._presence = Presence(runtime.engine, self.consumption, end=_end_deaf)

    def follow_signals(self) -> None:
        """Have Celery call the methods below. Celery holds only weak references, so this ends with its application."""
        worker_init.connect(self._prepare)
        worker_ready.connect(self._announce)
        task_received.connect(self.consumption.count_message)
        worker_shutting_down.connect(self._leave)
        worker_process_shutdown.connect(self._end_telemetry)

    def _prepare(self, **_: object) -> None:
        """Check what a worker needs, and exit if it is missing: Celery would only log what a receiver raises."""
        log_as_json()
        for reason in unknown_variables(os.environ):
            log.warning("unknown variable", reason=reason)
        if self.runtime.settings.stop_with_stdin:
            threading.Thread(target=self._stop_with_stdin, daemon=True, name="stdin").start()
        try:
            telemetry.check()
            self.runtime.check_device()
            schema.require_usable(self.runtime.engine)
            broker.prepare(self._app)
            self.runtime.cache.delete_outdated(self.runtime.engine)  # what was forgotten since may be in it
        except VennAdmitError as error:
            log.error("worker cannot start", reason=advised(error))  # noqa: TRY400 - the reason is enough
            raise SystemExit(error.exit_code) from error
        gc.freeze()  # no collection should touch what was imported, here or in the children that share it

    def _stop_with_stdin(self) -> None:
        """End with the program that started this worker, which holds the other end of its stdin."""
        # The descriptor is read, because a lock of sys.stdin held here would be held forever in a forked child.
        while os.read(0, 1024):
            pass
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(self.runtime.settings.chunk_seconds)  # no task may take longer
        os.kill(os.getpid(), signal.SIGKILL)

    def _announce(self, sender: Any, **_: object) -> None:
        self.consumption.begin(sender)
        self._presence.announce()

    def _end_telemetry(self, **_: object) -> None:
        """Export the spans of a child that ends in good order."""
        telemetry.end()

    def _leave(self, **_: object) -> None:
        """Finish what is under way, but take nothing more."""
        self._presence.leave()


def _end_deaf() -> NoReturn:
    """End this worker, which takes no messages, once it has finished the chunks that it has."""
    log.error("worker ends: messages wait, and it did not take any even after it reconnected")
    state.should_stop = broker.DEAF_EXIT_CODE
    while state.active_requests:
        time.sleep(STOP_SECONDS)
    time.sleep(STOP_SECONDS)
    os._exit(broker.DEAF_EXIT_CODE)  # the event loop does not heed `should_stop` if it stands still


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
