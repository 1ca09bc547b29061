"""Whether this worker takes messages, which Celery itself cannot always tell."""

import time
from typing import Any

from celery import Celery
from celery.worker import state

from venn_admit import broker
from venn_admit.errors import BrokerError, DatabaseError

# How long the event loop may be busy with one event.
STALL_SECONDS = 10.0
# How long messages may wait while this worker takes none although it has a free process.
DEAF_SECONDS = 10.0
# A worker that has taken nothing for this time ends. Celery waits up to 32 s between attempts to reconnect.
HOPELESS_SECONDS = 60.0


class Consumption:
    """The consumer of this worker: its event loop turns, the broker answers, and no message is left waiting for it."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._consumer: Any = None
        self._received = 0
        self._received_before = 0
        self._turned_at = 0.0
        self._fine_at = 0.0
        self._asked_to_reconnect = False

    def begin(self, consumer: Any) -> None:
        """Start to watch a consumer, which is ready."""
        self._consumer = consumer
        self._turned_at = self._fine_at = time.monotonic()

    def count_message(self, **_: object) -> None:
        """Note that the consumer received a message."""
        self._received += 1

    def receives_from(self, channel: Any) -> bool:
        """Whether a channel belongs to the connection in use."""
        consumer = self._consumer and self._consumer.task_consumer
        return consumer is not None and consumer.channel is channel

    def problem(self) -> str | None:
        """Return what keeps this worker from taking messages, or None; it must be called every few seconds."""
        now = time.monotonic()
        self._consumer.hub.call_soon(self._turn)
        try:
            waiting = broker.waiting(self._app)
        except (BrokerError, DatabaseError) as error:
            self._fine_at = now  # the fault is not this worker's
            return str(error)
        if now - self._turned_at > STALL_SECONDS:
            return "the event loop stands still, or has no connection to the broker"
        received, self._received_before = self._received != self._received_before, self._received
        if not waiting or received or len(state.reserved_requests) >= self._consumer.pool.num_processes:
            self._fine_at = now
            self._asked_to_reconnect = False
        if now - self._fine_at <= DEAF_SECONDS:
            return None
        if not self._asked_to_reconnect:
            self._asked_to_reconnect = True
            self._consumer.hub.call_soon(_lose_connection)
        return f"{waiting} messages wait, and none is received"

    @property
    def is_hopeless(self) -> bool:
        """Whether this worker has taken nothing from a broker that answers for so long that it should end."""
        return time.monotonic() - self._fine_at > HOPELESS_SECONDS

    def _turn(self) -> None:
        self._turned_at = time.monotonic()


def _lose_connection() -> None:
    """Make the consumer reconnect, as after an error of its connection."""
    raise ConnectionResetError("messages wait in the broker, and none is received")
