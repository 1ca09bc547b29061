"""What a verb works with: the settings, the database brought up, the broker, and workers of its own if need be."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from celery import Celery
from sqlalchemy import Engine

from service import broker
from service.errors import DatabaseError, JobError
from service.flows.jobs import await_job
from service.settings import Settings, get_settings
from service.store import jobs, schema
from service.store.array_cache import ArrayCache
from service.store.engine import check_server, connect, create_engine, database_url, transaction

START_SECONDS = 60.0
STOP_SECONDS = 60.0


@dataclass(frozen=True)
class Session:
    """One run of a verb."""

    settings: Settings
    database_url: str
    engine: Engine

    @cached_property
    def cache(self) -> ArrayCache:
        return ArrayCache(self.settings.home / "cache")

    @cached_property
    def broker(self) -> Celery:
        """The broker, with the queue made."""
        url = broker.broker_url(self.settings.broker_url, self.database_url)
        with transaction(self.engine) as connection:
            broker.prepare(url, connection)
        return broker.make_app(url, lease_seconds=self.settings.lease_seconds)

    def run_job(self, job_id: int, on_progress: Callable[[jobs.Progress], None]) -> None:
        """Wait for a job; where no worker is there to compute it, start one and stop it afterwards."""
        with connect(self.engine) as connection:
            if jobs.progress(connection, job_id).state == "done":
                return
        with self.workers() as check_workers:
            await_job(self.engine, self.broker, job_id, check_workers=check_workers, on_progress=on_progress)

    @contextmanager
    def workers(self) -> Iterator[Callable[[], None]]:
        """See to it that there is a worker; yields a check that raises JobError once there is none.

        Within such a block another one finds the workers of the first.
        """
        if self._live_workers():
            yield self._require_workers
            return
        log = self.settings.home / "logs" / f"worker-{os.getpid()}.log"
        process = self._start_worker(log)
        try:
            yield lambda: _require_running(process, log)
        finally:
            _stop(process)

    def _live_workers(self) -> int:
        with connect(self.engine) as connection:
            return jobs.live_workers(connection)

    def _require_workers(self) -> None:
        if not self._live_workers():
            raise JobError(
                "the workers that were running are gone; the job is kept: start `venn-admit worker` and it goes on"
            )

    def _start_worker(self, log: Path) -> "subprocess.Popen[bytes]":
        self.broker  # noqa: B018 - the queue is there before anyone listens
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            output = log.open("wb")
        except OSError as error:
            raise DatabaseError(
                f"{log} cannot be written: {error}; give VENN_ADMIT_HOME a writable folder"
            ) from error
        with output:
            process = subprocess.Popen(  # noqa: S603 - our own command
                worker_command(self.settings.worker_concurrency),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=worker_environment() | {"VENN_ADMIT_STOP_WITH_STDIN": "true"},
                start_new_session=True,  # Ctrl-C is for us: we stop it in good order
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._live_workers():
            _require_running(process, log)
            if time.monotonic() > deadline:
                _stop(process)
                raise JobError(f"no worker came up within {START_SECONDS:.0f} s; see {log}")
            time.sleep(0.1)
        return process


def open_session(*, migrate: bool | None = None) -> Session:
    """Connect, and see that the database has our schema.

    migrate: bring the schema up to date; None: only that of the embedded Postgres, which is ours alone.
    """
    session = connect_unchecked()
    if migrate is None:
        migrate = session.settings.database_url is None
    if not migrate:
        schema.require_head(session.engine)
    elif schema.current_revision(session.engine) != schema.head_revision():
        schema.upgrade_engine(session.engine)
    return session


def connect_unchecked() -> Session:
    """Connect, and see that the server can serve; its schema may be any."""
    settings = get_settings()
    url = database_url(settings)
    engine = create_engine(
        url,
        statement_timeout_seconds=settings.statement_timeout_seconds,
        lock_timeout_seconds=settings.lock_timeout_seconds,
    )
    with connect(engine) as connection:
        check_server(connection)
    return Session(settings, url, engine)


def worker_command(concurrency: int | None) -> list[str]:
    """The command that runs a Celery worker with as many processes, one a CPU where None is given."""
    command = [sys.executable, "-m", "celery", "-A", "workers.app", "worker"]
    options = ["--loglevel", "INFO", "--without-gossip", "--without-mingle", "-n", f"venn-admit-{os.getpid()}@%h"]
    return [*command, *options, *(["--concurrency", str(concurrency)] if concurrency else [])]


def worker_environment() -> dict[str, str]:
    """Ours, with one thread for each process of a worker: they are as many as CPUs already."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **one_thread}


def _require_running(process: "subprocess.Popen[bytes]", log: Path) -> None:
    if process.poll() is not None:
        tail = log.read_text(errors="replace").splitlines()[-5:]
        raise JobError(f"the worker ended with code {process.returncode}; see {log}: {' / '.join(tail)}")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """In good order: what it computes now is finished first, for a while."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
