"""Celery's side of a job: the one message there is, and the conventions both its ends share.

A message says "look at this chunk" and nothing more; what there is to do, and whether it is done, is in
the database (service/store/jobs.py).
"""

from collections.abc import Iterator
from contextlib import contextmanager

from celery import Celery
from kombu import Connection as BrokerConnection
from kombu import Queue
from kombu.exceptions import OperationalError
from sqlalchemy import Connection, make_url

from service.errors import JobError
from service.store.jobs import lock_broker

QUEUE = "venn-admit"
RUN_CHUNK = "workers.tasks.run_chunk"
SWEEP = "workers.tasks.sweep"


def broker_url(given: str | None, database_url: str) -> str:
    """The broker the settings name, or the database itself by kombu's SQLAlchemy transport."""
    if given is not None:
        return given
    url = make_url(database_url).set(drivername="postgresql+psycopg")
    return f"sqla+{url.render_as_string(hide_password=False)}"


def make_app(url: str, *, lease_seconds: float) -> Celery:
    """A Celery application with the conventions of this service.

    A message is acknowledged after its work, and goes back to the queue with a worker that is lost; a
    process takes one at a time; results are rows, so there is no result backend. Past the lease a chunk may
    be another worker's, so that is also the limit of a task's time.
    """
    app = Celery("venn-admit", broker=url)
    app.conf.update(
        accept_content=["json"],
        task_serializer="json",
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_time_limit=lease_seconds,
        task_default_queue=QUEUE,
        task_queues=[Queue(QUEUE)],
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
        # Who is alive is told by a lock in the database: not every transport can ask around.
        worker_enable_remote_control=False,
        # A chunk is computed once whatever is delivered, so an unacknowledged message may come again early.
        broker_transport_options={} if url.startswith("sqla+") else {"visibility_timeout": 2 * lease_seconds},
        enable_utc=True,
    )
    return app


def prepare(url: str, connection: Connection) -> None:
    """Make the queue: the SQLAlchemy transport creates its tables then, which must happen once at a time."""
    lock_broker(connection)
    with _reachable(url), BrokerConnection(url) as broker:
        Queue(QUEUE, channel=broker.default_channel).declare()


@contextmanager
def _reachable(url: str) -> Iterator[None]:
    """Let a broker's failure out as a JobError that says which broker, and what to do."""
    try:
        yield
    except (OperationalError, OSError) as error:
        raise JobError(
            f"the broker {BrokerConnection(url).as_uri()} cannot be reached: {error}; "
            "check that it runs, and VENN_ADMIT_BROKER_URL"
        ) from error


def send(app: Celery, chunks: list[tuple[int, int]]) -> None:
    """Wake workers for these chunks (job, ordinal). A message lost is sent again by the sweeper."""
    with _reachable(app.conf.broker_url), app.producer_pool.acquire(block=True) as producer:
        for job_id, ordinal in chunks:
            app.send_task(RUN_CHUNK, args=[job_id, ordinal], producer=producer, retry=False)
