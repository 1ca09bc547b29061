"""Celery's side of a job: its messages, and the conventions that senders and workers share.

A message says only "there is a chunk to compute", or "look at what is due"; what there is to do, which of it is next,
and whether it is done, is in the database (service/venn_admit/store/work/jobs.py).
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from typing import Any, NoReturn, TypeVar

from celery import Celery
from kombu import Exchange, Queue
from kombu.transport import TRANSPORT_ALIASES, virtual
from sqlalchemy import Connection, Engine, make_url

from venn_admit import telemetry
from venn_admit.errors import BrokerError, DatabaseError, VennAdmitError
from venn_admit.secrets import mask, shown_address
from venn_admit.store.database.engine import connect, create_engine, database_identity, transaction
from venn_admit.store.work import messages

RUN_CHUNK = "workers.tasks.run_chunk"
SWEEP = "workers.tasks.sweep"
RECALIBRATE = "workers.tasks.recalibrate"
MONITOR = "workers.tasks.monitor"
PRUNE = "workers.tasks.prune"
_UPKEEP = (SWEEP, RECALIBRATE, MONITOR, PRUNE)

# The exit code of a worker that no longer took messages; a new one may (EX_TEMPFAIL of sysexits.h).
DEAF_EXIT_CODE = 75
# A broker must answer within this time.
ANSWER_SECONDS = 15.0
# A connection to RabbitMQ on which nothing arrives for about two heartbeats is lost.
HEARTBEAT_SECONDS = 10
# A connection may have been lost since it was last used, so a message is sent once more.
SEND_RETRIES = {"max_retries": 1, "interval_start": 0, "interval_step": 0}

Answer = TypeVar("Answer")

_DATABASE_TRANSPORT = "venn-admit-database"


class _DatabaseChannel(virtual.Channel):
    """Queues as rows of a table; a message that is taken is deleted, and comes back only if its receiver returns it."""

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
    """Celery's transport with the database as the broker, on connections that no forked child touches.

    Kombu's transport for SQLAlchemy leaves transactions open, which the children of a worker then end over the socket
    that they share with it.
    """

    Channel = _DatabaseChannel
    # With an event loop, a worker has a pipe to each of its children. Without, they share one under a lock, and
    # a child that is killed while it waits there never releases it: no child would ever get a message again.
    implements = virtual.Transport.implements.extend(asynchronous=True)
    can_parse_url = True
    driver_type = "postgresql"
    driver_name = "psycopg"
    connection_errors: tuple[Any, ...] = (*virtual.Transport.connection_errors, DatabaseError)
    # Often enough for chunks that take a tenth of a second; each poll is one statement.
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
        """Deliver waiting messages, as many as the consumer takes."""
        assert self.cycle is not None
        with suppress(Empty):
            while True:
                self.cycle.get(self._deliver)


TRANSPORT_ALIASES[_DATABASE_TRANSPORT] = f"{__name__}:{DatabaseTransport.__qualname__}"


def broker_url(given: str | None, database_url: str) -> str:
    """Return the address of the broker in the settings, or of the database."""
    if given is not None:
        return given
    return f"{_DATABASE_TRANSPORT}+{make_url(database_url).render_as_string(hide_password=False)}"


def queue_name(connection: Connection) -> str:
    """Return the name of the queue of this database: several databases may share a broker, each with its own chunks."""
    return f"venn-admit-{database_identity(connection)}"


def make_app(url: str, *, queue: str, task_seconds: float) -> Celery:
    """Make a Celery application with the conventions of this service.

    A message is acknowledged after its work, and returns to the queue if its worker is lost; a process takes one at a
    time; results are rows, so there is no result backend. Messages of beat have a second queue: a worker takes from
    both in turn, so they do not wait behind the chunks of a large job. A task is ended after `task_seconds`.
    """
    upkeep = f"{queue}-upkeep"
    app = Celery("venn-admit", broker=url)
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_time_limit=task_seconds,
        task_default_queue=queue,
        task_queues=[Queue(name, Exchange(name), routing_key=name) for name in (queue, upkeep)],
        task_routes={task: {"queue": upkeep, "routing_key": upkeep} for task in _UPKEEP},
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
        # A worker whose broker cannot be reached waits for it, and does not count as live meanwhile.
        broker_connection_max_retries=None,
        broker_heartbeat=HEARTBEAT_SECONDS,
        # A lock in the database tells which workers live, because not every transport can ask them.
        worker_enable_remote_control=False,
        broker_transport_options={
            # A chunk is computed once however often its message comes, so redelivery may be early.
            "visibility_timeout": 2 * task_seconds,
            "socket_connect_timeout": ANSWER_SECONDS,
            "socket_timeout": ANSWER_SECONDS,
        },
        enable_utc=True,
    )
    return app


def check_address(app: Celery) -> None:
    """Raise BrokerError unless the address is one of a broker; whether one answers there is not asked."""
    with _reachable(app):
        app.connection_for_read().get_transport_cls()


def prepare(app: Celery) -> None:
    """Make sure that the broker answers, and make the queues. Raises BrokerError."""
    _in_time(app, _make_queues)


def waiting(app: Celery, *, chunks_only: bool = False) -> int:
    """Count the messages, or those about chunks alone, that wait for a worker. Raises BrokerError."""
    every = [queue.name for queue in app.conf.task_queues]
    return _in_time(app, lambda app: _count_waiting(app, [app.conf.task_default_queue] if chunks_only else every))


def _make_queues(app: Celery) -> None:
    with app.connection_for_write() as connection:
        for queue in app.conf.task_queues:
            queue(connection.default_channel).declare()


def _count_waiting(app: Celery, queues: list[str]) -> int:
    with app.connection_for_read() as connection:
        channel = connection.default_channel
        return sum(
            channel.queue_declare(queue=queue, durable=True, exclusive=False, auto_delete=False).message_count
            for queue in queues
        )


def _in_time(app: Celery, ask: Callable[[Celery], Answer]) -> Answer:
    """Return what the broker answers. Raises BrokerError, also if no answer comes within ANSWER_SECONDS.

    The time limit is ours because not every transport has one: a TLS handshake with a port that does not speak TLS,
    for example, may never end.
    """
    answers: SimpleQueue[Callable[[], Answer]] = SimpleQueue()

    def run() -> None:
        try:
            answer = ask(app)
        except BaseException as error:  # it is raised in the thread that waits for the answer
            failure = error
            answers.put(lambda: _raise(failure))
        else:
            answers.put(lambda: answer)

    with _reachable(app):
        threading.Thread(target=run, daemon=True, name="broker").start()
        try:
            given = answers.get(timeout=ANSWER_SECONDS)
        except Empty:
            raise TimeoutError(f"no answer within {ANSWER_SECONDS:.0f} s") from None
        return given()


def _raise(error: BaseException) -> NoReturn:
    raise error


@contextmanager
def _reachable(app: Celery) -> Iterator[None]:
    """Turn a failure of the broker into a BrokerError that names the broker and says what to do."""
    url = app.conf.broker_url
    try:
        yield
    except (VennAdmitError, KeyboardInterrupt):
        raise
    except (KeyError, ValueError):  # the address names no transport, or cannot be parsed
        # Without the chain, because these errors quote parts of the address, perhaps of the password.
        raise BrokerError(
            f"{_named(url)} is not the address of a broker: expected redis://host:port/number or "
            "amqp://user:password@host:port//, with special characters percent-encoded; correct VENN_ADMIT_BROKER_URL"
        ) from None
    except Exception as error:  # transports raise different errors, without a common root
        if url.startswith("redis") and find_spec("redis") is None:
            lacks = "needs the package redis, which is not installed: pip install 'venn-admit[redis]'"
            raise BrokerError(f"the broker {_named(url)} {lacks}") from error
        raise BrokerError(
            f"the broker {_named(url)} cannot be reached: "
            f"{mask(str(error), url).removesuffix('.') or type(error).__name__}; "
            "check that it runs, and the user and password in VENN_ADMIT_BROKER_URL"
        ) from error


def _named(url: str) -> str:
    """Return the address as a message may show it."""
    return "in the database" if url.startswith(_DATABASE_TRANSPORT) else shown_address(url)


def send_upkeep(app: Celery, task: str) -> None:
    """Have a worker run one of beat's tasks now. Raises BrokerError."""
    with _reachable(app):
        app.send_task(task, retry=True, retry_policy=SEND_RETRIES)


def send(app: Celery, chunks: list[tuple[int, int]]) -> None:
    """Wake workers, one for each of these chunks (job, ordinal); which computes which is seen when it claims one.

    The sweeper sends lost messages again. Raises BrokerError, after any number of the messages may have been sent.
    """
    queue = app.conf.task_default_queue
    told = {
        "messaging.system": "celery",
        "messaging.operation.type": "send",
        "messaging.destination.name": queue,
        "messaging.batch.message_count": len(chunks),
    }
    with (
        _reachable(app),
        telemetry.span(f"send {queue}", "producer", told),
        app.producer_pool.acquire(block=True) as producer,
    ):
        headers = telemetry.headers()
        for job_id, ordinal in chunks:
            app.send_task(
                RUN_CHUNK,
                args=[job_id, ordinal],
                headers=headers,
                producer=producer,
                retry=True,
                retry_policy=SEND_RETRIES,
            )
