"""Celery's side of a job: its messages, and the conventions both their ends share.

A message says "look at this chunk", or at what is due, and nothing more; what there is to do, and whether it is done,
is in the database (service/store/jobs.py).
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from queue import Empty
from typing import Any

from celery import Celery
from kombu import Exchange, Queue
from kombu.exceptions import OperationalError
from kombu.transport import TRANSPORT_ALIASES, virtual
from sqlalchemy import Connection, Engine, make_url

from service.errors import DatabaseError, JobError
from service.secrets import mask, shown_address
from service.store import messages
from service.store.engine import connect, create_engine, transaction
from service.store.jobs import database_identity

RUN_CHUNK = "workers.tasks.run_chunk"
SWEEP = "workers.tasks.sweep"
RECALIBRATE = "workers.tasks.recalibrate"

_DATABASE_TRANSPORT = "venn-admit-database"


class _DatabaseChannel(virtual.Channel):
    """Queues as rows of a table; a message taken is gone, and comes back only where its receiver returns it."""

    def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:
        with transaction(self.connection.engine) as connection:
            messages.put(connection, queue, message)

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:  # noqa: ARG002 - kombu's signature
        with transaction(self.connection.engine) as connection:
            message = messages.take(connection, queue)
        if message is None:
            raise Empty
        return message

    def _size(self, queue: str) -> int:
        with transaction(self.connection.engine) as connection:
            return messages.count(connection, queue)

    def _purge(self, queue: str) -> int:
        with transaction(self.connection.engine) as connection:
            return messages.delete_all(connection, queue)


class DatabaseTransport(virtual.Transport):
    """Celery's way to the database as its broker, on connections that no forked child touches.

    Kombu's own for SQLAlchemy leaves transactions open, which the children of a worker then end over the
    socket they share with it.
    """

    Channel = _DatabaseChannel
    # With an event loop, a worker has a pipe to each of its children. Without, they share one under a lock, and
    # a child that is killed while it waits there takes the lock along: none would ever get a message again.
    implements = virtual.Transport.implements.extend(asynchronous=True)
    can_parse_url = True
    driver_type = "postgresql"
    driver_name = "psycopg"
    connection_errors: tuple[Any, ...] = (*virtual.Transport.connection_errors, DatabaseError)
    # Often enough for chunks of a tenth of a second; one look is one statement.
    polling_interval = 0.1

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self._looks: list[Any] = []  # what event loops repeat until the connection is closed

    @cached_property
    def engine(self) -> Engine:
        assert self.client is not None
        return create_engine(self.client.hostname, application_name="venn-admit-broker")

    def establish_connection(self) -> Any:
        with connect(self.engine):
            return super().establish_connection()

    def close_connection(self, connection: Any) -> None:
        while self._looks:
            self._looks.pop().cancel()
        super().close_connection(connection)
        self.engine.dispose()

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:  # noqa: ARG002 - kombu's signature
        self._looks.append(loop.call_repeatedly(self.polling_interval, self._deliver_waiting))

    def _deliver_waiting(self) -> None:
        """Hand over what waits, as much of it as the consumer takes."""
        assert self.cycle is not None
        with suppress(Empty):
            while True:
                self.cycle.get(self._deliver)


TRANSPORT_ALIASES[_DATABASE_TRANSPORT] = f"{__name__}:{DatabaseTransport.__qualname__}"


def broker_url(given: str | None, database_url: str) -> str:
    """The broker the settings name, or the database itself."""
    if given is not None:
        return given
    return f"{_DATABASE_TRANSPORT}+{make_url(database_url).render_as_string(hide_password=False)}"


def queue_name(connection: Connection) -> str:
    """The queue of this database: several may share a broker, and a chunk's number means nothing in another."""
    return f"venn-admit-{database_identity(connection)}"


def make_app(url: str, *, queue: str, lease_seconds: float) -> Celery:
    """A Celery application with the conventions of this service.

    A message is acknowledged after its work, and goes back to the queue with a worker that is lost; a
    process takes one at a time; results are rows, so there is no result backend. Past the lease a chunk may
    be another worker's, so that is also the limit of a task's time. What beat sends has a queue of its own: a worker
    takes from both in turn, so it does not wait behind the chunks of a large job.
    """
    upkeep = f"{queue}-upkeep"
    app = Celery("venn-admit", broker=url)
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_time_limit=lease_seconds,
        task_default_queue=queue,
        task_queues=[Queue(name, Exchange(name), routing_key=name) for name in (queue, upkeep)],
        task_routes={task: {"queue": upkeep, "routing_key": upkeep} for task in (SWEEP, RECALIBRATE)},
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
        # Who is alive is told by a lock in the database: not every transport can ask around.
        worker_enable_remote_control=False,
        # A chunk is computed once whatever is delivered, so an unacknowledged message may come again early.
        broker_transport_options={"visibility_timeout": 2 * lease_seconds},
        enable_utc=True,
    )
    return app


def prepare(app: Celery) -> None:
    """See that the broker answers, and make the queues."""
    with _reachable(app), app.connection_for_write() as broker:
        for queue in app.conf.task_queues:
            queue(broker.default_channel).declare()


@contextmanager
def _reachable(app: Celery) -> Iterator[None]:
    """Let a broker's failure out as a JobError that says which broker, and what to do."""
    try:
        yield
    except (OperationalError, OSError) as error:
        url = app.conf.broker_url
        raise JobError(
            f"the broker {shown_address(url)} cannot be reached: {mask(str(error), url)}; "
            "check that it runs, and VENN_ADMIT_BROKER_URL"
        ) from error


def send(app: Celery, chunks: list[tuple[int, int]]) -> None:
    """Wake workers for these chunks (job, ordinal). A message lost is sent again by the sweeper."""
    with _reachable(app), app.producer_pool.acquire(block=True) as producer:
        for job_id, ordinal in chunks:
            app.send_task(RUN_CHUNK, args=[job_id, ordinal], producer=producer, retry=False)
