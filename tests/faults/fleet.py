"""Workers on one database and what keeps their jobs going, as on machines of their own."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
from celery import Celery
from sqlalchemy import Engine

from tests.faults.proxy import Proxy, proxied
from tests.faults.workload import open_jobs
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.workers.processes import WorkerProcess, await_workers, kill_session
from venn_admit import broker
from venn_admit.errors import DatabaseError, JobError
from venn_admit.flows.jobs.control import take_due
from venn_admit.store.database.engine import at_once, create_engine, transaction
from venn_admit.store.work import jobs

LEASE_SECONDS = 4
TASK_SECONDS = 600
SWEEP_SECONDS = 0.2
# Longer than it takes to work off the messages of what is done already, which would otherwise pile up.
RESEND_SECONDS = 5.0
# Enough for all that is killed: attempts are counted elsewhere.
MAX_ATTEMPTS = 10_000


class Sweeper:
    """Sends what no live lease covers, as beat does, but sooner.

    With `copies` above 1 it is a disturbance: every message goes out as many times, and again for each chunk that has
    waited for long, however many messages wait already.
    """

    def __init__(self, engine: Engine, app: Celery, copies: int) -> None:
        self.duplicates = 0
        self._engine = engine
        self._app = app
        self._copies = copies
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sweeper")

    def __enter__(self) -> "Sweeper":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(SWEEP_SECONDS):
            with suppress(DatabaseError, JobError):  # Postgres is down, and maybe with it the broker
                self._sweep()

    def _sweep(self) -> None:
        chunks = self._take()
        # One right after the other, so that two workers have them at once.
        broker.send(self._app, [chunk for chunk in chunks for _ in range(self._copies)])
        self.duplicates += len(chunks) * (self._copies - 1)

    def _take(self) -> list[tuple[int, int]]:
        if self._copies == 1:
            return take_due(self._engine, self._app, None, RESEND_SECONDS)
        with at_once(self._engine) as connection:
            chunks = jobs.take_unsent(connection, None)
            return chunks + jobs.take_overdue(connection, RESEND_SECONDS)


class Fleet:
    """Workers with one process each, and with homes, and so caches, of their own."""

    def __init__(self, url: str, engine: Engine, app: Celery, proxy: Proxy, environment: dict[str, str]) -> None:
        self.engine = engine
        self.app = app
        self.proxy = proxy
        self.workers: list[WorkerProcess] = []
        self._url = url
        self._environment = environment

    def start(self, home: Path) -> WorkerProcess:
        """Start a worker, which is up some seconds later."""
        worker = WorkerProcess(self._url, home, 1, self._environment)
        self.workers.append(worker)
        return worker

    def kill(self, worker: WorkerProcess) -> None:
        """End a worker and its process as a power cut would."""
        kill_session(worker.process.pid)
        worker.process.wait()
        self.workers.remove(worker)

    def children(self) -> dict[int, WorkerProcess]:
        """The processes that compute, by their ids, and whose they are."""
        found: dict[int, WorkerProcess] = {}
        for worker in self.workers:
            with suppress(psutil.NoSuchProcess):
                found |= {child.pid: worker for child in worker.family()[1:]}
        return found

    def logged(self, event: str) -> int:
        """How often the workers there are, and those in the same homes before them, said so."""
        return sum(worker.log.read_text(errors="replace").count(f'"event": "{event}"') for worker in self.workers)

    def flush(self) -> int:
        """Take every message that waits from the broker; how many there were."""
        with self.app.connection_for_write() as connection:
            purged: int = connection.default_channel.queue_purge(self.app.conf.task_default_queue)
        return purged

    def await_jobs(self) -> None:
        """Wait until no job is open."""
        wait_until(lambda: not open_jobs(self.engine), "all jobs are over", PATIENCE_SECONDS)


@contextmanager
def running_fleet(url: str, folder: Path, broker_url: str | None, *, workers: int) -> Iterator[Fleet]:
    """Workers in folders `worker-0`, ... that are up; all of them are killed at the end.

    They reach the broker by way of a proxy; without a broker's URL, the database, which is the broker then.
    """
    engine = create_engine(url)
    with ExitStack() as stack:
        proxy, proxied_url = stack.enter_context(proxied(broker_url or url))
        stack.callback(engine.dispose)
        with transaction(engine) as connection:
            queue = broker.queue_name(connection)
        app = broker.make_app(broker.broker_url(broker_url, url), queue=queue, task_seconds=TASK_SECONDS)
        stack.callback(app.close)
        broker.prepare(app)
        settings = {
            "LEASE_SECONDS": LEASE_SECONDS,
            "MAX_ATTEMPTS": MAX_ATTEMPTS,
            "BROKER_URL": proxied_url if broker_url else "",
        }
        fleet = Fleet(
            url if broker_url else proxied_url,
            engine,
            app,
            proxy,
            {f"VENN_ADMIT_{name}": str(value) for name, value in settings.items()},
        )
        stack.callback(_clear, fleet)
        for number in range(workers):
            fleet.start(folder / f"worker-{number}")
        await_workers(engine, workers)
        yield fleet


def _clear(fleet: Fleet) -> None:
    """Leave no process, and nothing of ours with the broker."""
    for worker in list(fleet.workers):
        fleet.kill(worker)
    with fleet.app.connection_for_write() as connection:
        channel = connection.default_channel
        queue = fleet.app.amqp.queues[fleet.app.conf.task_default_queue](channel)
        if connection.transport.driver_type == "redis":  # else what a killed worker had goes back to a queue of nobody
            for tag, message in channel.client.hgetall(channel.unacked_key).items():
                if queue.name.encode() in message:
                    channel.client.hdel(channel.unacked_key, tag)
                    channel.client.zrem(channel.unacked_index_key, tag)
        queue.declare()  # only who declared it knows its bindings, which go with it
        queue.delete()
        queue.exchange.delete()
