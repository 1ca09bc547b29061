"""Files scored by workers on hosts of their own, and what their links carried."""

import asyncio
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

import psutil
from celery import Celery
from sqlalchemy import Engine, make_url, text

from benchmarks.hosts import Carried, Forwarder, Host, forwarding
from benchmarks.scoring import await_worker, under_new_ids
from benchmarks.served import NAME
from tests.running import workspace
from venn_admit.cli.worker_process import STOP_SECONDS, worker_command, worker_environment
from venn_admit.files.sources import FileSource
from venn_admit.flows.decisions.score import request_score
from venn_admit.flows.jobs.control import await_job
from venn_admit.runtime.settings import Settings
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.database.engine import connect
from venn_admit.store.work import jobs

CHUNK_ROWS = 512
LEASE_SECONDS = 10
_DATABASE_PORT = 5432
_TURN_SECONDS = 0.1
_BROKER_PORTS = {"redis": 6379, "amqp": 5672}

# Run on a host: the median of what an answer takes.
_ROUND_TRIP = """
import statistics, sys, time
import psycopg
with psycopg.connect(sys.argv[1], autocommit=True) as connection:
    def seconds():
        began = time.perf_counter()
        connection.execute("SELECT 1")
        return time.perf_counter() - began
    print(statistics.median(seconds() for _ in range(200)))
"""


@dataclass(frozen=True, slots=True)
class Scored:
    """A file that was scored.

    chunks: how many each host computed. carried: by all links. attempts: at all chunks together.
    """

    seconds: float
    rows: int
    chunks: Counter[str]
    carried: Carried
    attempts: int


@dataclass(slots=True, eq=False)
class Scoring:
    """Database and broker, which hosts reach by way of forwarders, and what was decided first; files: how many."""

    engine: Engine
    app: Celery
    folder: Path
    hosts: Sequence[Host]
    forwarders: Sequence[Forwarder]
    broker: str | None
    files: int = 0
    decided: list[Any] = field(default_factory=list)

    @classmethod
    @contextmanager
    def over(cls, hosts: Sequence[Host], engine: Engine, folder: Path, broker: str | None) -> Iterator[Self]:
        """Let the hosts reach the server of an engine, and a broker of this machine; None: the database is it."""
        url = engine.url.render_as_string(hide_password=False)
        runtime = Runtime.start(Settings(home=folder / "home", database_url=url, broker_url=broker))
        socket = f"{engine.url.query['host']}/.s.PGSQL.{_DATABASE_PORT}"
        servers = [(_DATABASE_PORT, partial(asyncio.open_unix_connection, socket))]
        if broker is not None:
            port = _broker_port(broker)
            servers.append((port, partial(asyncio.open_connection, "127.0.0.1", port)))
        with ExitStack() as opened:
            opened.callback(runtime.engine.dispose)
            opened.callback(runtime.broker.close)
            forwarders = []
            for port, server in servers:
                forwarders.append(opened.enter_context(forwarding(server)))
                for host in hosts:
                    forwarders[-1].listen(host.address, port)
            yield cls(engine, runtime.broker, folder, hosts, forwarders, broker)

    @contextmanager
    def delayed(self, seconds: float) -> Iterator[None]:
        """Let what hosts are sent come so much later within the block."""
        for forwarder in self.forwarders:
            forwarder.delay = seconds
        try:
            yield
        finally:
            for forwarder in self.forwarders:
                forwarder.delay = 0.0

    @contextmanager
    def worker(self, host: Host, home: str, *, processes: int = 1) -> Iterator[psutil.Process]:
        """A worker on a host, which is up; its home keeps a cache of the training exemplars."""
        place = self.folder / home
        place.mkdir(exist_ok=True)
        with connect(self.engine) as connection:
            others = jobs.live_workers(connection)
        environment = {
            "VENN_ADMIT_HOME": str(place),
            "VENN_ADMIT_DATABASE_URL": self._at(host),
            "VENN_ADMIT_BROKER_URL": self._broker_at(host),
            "VENN_ADMIT_LEASE_SECONDS": str(LEASE_SECONDS),
        }
        with (place / "log").open("ab") as log:
            process = subprocess.Popen(
                host.command(worker_command(processes)),
                env=worker_environment() | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            await_worker(self.engine, process, others=others)
            yield psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait(STOP_SECONDS)

    def score(self, on_progress: Callable[[int], None] = lambda _rows: None) -> Scored:
        """Score a file of new points, and check what is decided; on_progress is told the rows done, again and again."""
        path = under_new_ids(self.folder / "points.npz", self.files)
        self.files += 1
        before, began = self._carried(), time.perf_counter()
        request = request_score(
            workspace(self.engine, chunk_rows=CHUNK_ROWS),
            NAME,
            FileSource(path),
            weighted=True,
            require_full_match=False,
            calibration_id=None,
        )
        await_job(
            self.engine,
            self.app,
            request.job_id,
            check_workers=lambda: None,
            on_progress=lambda progress: on_progress(progress.rows_done),
        )
        seconds = time.perf_counter() - began
        carried = Carried(*(after - one for after, one in zip(self._carried(), before, strict=True)))
        job = {"job": request.job_id}
        with connect(self.engine) as connection:
            decided = connection.execute(
                text(
                    "SELECT predicted, match_count, distance, lower, upper, decision, reason FROM job_row "
                    "JOIN decision USING (exemplar_id) WHERE job_id = :job ORDER BY row_number"
                ),
                job,
            ).all()
            chunks = connection.execute(text("SELECT worker, attempts FROM job_chunk WHERE job_id = :job"), job).all()
        self.decided = self.decided or list(decided)
        assert list(decided) == self.decided, "the decisions are those of the first run, bit for bit"
        by_host = Counter(chunk.worker.partition(":")[0] for chunk in chunks)
        return Scored(seconds, len(decided), by_host, carried, sum(chunk.attempts for chunk in chunks))

    def round_trip(self, host: Host) -> float:
        """Seconds that a host waits for an answer of the database, as a median."""
        where = self._at(host).replace("postgresql+psycopg", "postgresql")
        asked = host.command([sys.executable, "-c", _ROUND_TRIP, where])
        return float(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)

    def _at(self, host: Host) -> str:
        return self.engine.url.set(host=host.address, port=_DATABASE_PORT, query={}).render_as_string(False)

    def _broker_at(self, host: Host) -> str:
        if self.broker is None:
            return ""
        return make_url(self.broker).set(host=host.address, port=_broker_port(self.broker)).render_as_string(False)

    def _carried(self) -> Carried:
        return Carried(*map(sum, zip(*(host.carried() for host in self.hosts), strict=True)))


@contextmanager
def slowed(worker: psutil.Process, share: float) -> Iterator[None]:
    """Let a worker, its pool processes included, run for only so large a share of the time within the block."""
    processes = [worker, *worker.children(recursive=True)]
    over = threading.Event()

    def hold_back() -> None:
        while not over.is_set():
            for process in processes:
                process.suspend()
            over.wait((1 - share) * _TURN_SECONDS)
            for process in processes:
                process.resume()
            over.wait(share * _TURN_SECONDS)

    with ThreadPoolExecutor(1) as aside:
        held = aside.submit(hold_back)
        try:
            yield
        finally:
            over.set()
            held.result()


def _broker_port(broker: str) -> int:
    url = make_url(broker)
    return url.port or _BROKER_PORTS[url.drivername]
