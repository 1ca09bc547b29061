"""How a worker handles a message: it acknowledges it reliably, and releases what a dead process held."""

import socket

import structlog
from billiard.einfo import ExceptionInfo
from celery.exceptions import WorkerLostError
from celery.worker.request import Request

from venn_admit.errors import DatabaseError
from venn_admit.store.database.engine import at_once
from venn_admit.store.work import leases

log = structlog.get_logger()


def process_name(pid: int) -> str:
    """Return the name of a process on this machine in the chunks that it claims."""
    return f"{socket.gethostname()}:{pid}"


class AttentiveRequest(Request):  # type: ignore[misc] # Celery has no types
    """A message that a worker holds until its chunk is computed."""

    acknowledged = False

    def acknowledge(self) -> None:
        """Acknowledge the message. If its connection is broken, the consumer reconnects.

        Celery would log the error and go on. On Redis the message would then count forever among those that this worker
        may hold at a time, so that it would never take another.
        """
        if not self.acknowledged:
            self._on_ack(log, self._ignored_errors())
            self.acknowledged = True

    def reject(self, requeue: bool = False) -> None:
        """Return the message, or drop it. If its connection is broken, the consumer reconnects."""
        if not self.acknowledged:
            self._on_reject(log, self._ignored_errors(), requeue)
            self.acknowledged = True

    def on_failure(self, exc_info: ExceptionInfo, send_failed_event: bool = True, return_ok: bool = False) -> None:
        """Release the chunk of a process that died, before its message goes back to the queue."""
        error = getattr(
            exc_info.exception, "exc", exc_info.exception
        )  # with the traceback of the other process, or bare
        if isinstance(error, (WorkerLostError, SystemExit)) and self.worker_pid:
            dead = process_name(self.worker_pid)
            try:
                with at_once(self.app.life.runtime.engine) as connection:
                    released = leases.release(connection, dead)
            except DatabaseError as error:
                log.warning("the chunk of a dead process waits for the end of its lease", worker=dead, error=str(error))
            else:
                log.warning("a process died, its chunk is free", worker=dead, chunks=released)
        super().on_failure(exc_info, send_failed_event=send_failed_event, return_ok=return_ok)

    def _ignored_errors(self) -> tuple[type[BaseException], ...]:
        """None of the connection in use; all of one given up, because the broker delivers its messages again."""
        return () if self.app.life.consumption.receives_from(self._message.channel) else self._connection_errors
