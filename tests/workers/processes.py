"""Workers as real processes, and what a test can see of them."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import Engine

from tests.patience import PATIENCE_SECONDS, wait_until
from venn_admit.cli.worker_process import worker_command, worker_environment
from venn_admit.store.database.engine import connect
from venn_admit.store.work import jobs


def live_workers(engine: Engine) -> int:
    with connect(engine) as connection:
        return jobs.live_workers(connection)


def await_workers(engine: Engine, count: int) -> None:
    wait_until(lambda: live_workers(engine) == count, f"{count} live workers")


class WorkerProcess:
    """A worker with a home, and so a cache, of its own; one in a home that another had takes over what is there.

    It is started in a folder with packages called `workers` and `service`, which are none of its business.
    """

    def __init__(self, url: str, home: Path, concurrency: int, environment: dict[str, str]) -> None:
        self.home = home
        self.log = home / "log"
        elsewhere = home / "elsewhere"
        for package in ("workers", "service"):
            (elsewhere / package).mkdir(parents=True, exist_ok=True)
            (elsewhere / package / "__init__.py").write_text("raise SystemExit('the wrong package')\n")
        ours = {"VENN_ADMIT_DATABASE_URL": url, "VENN_ADMIT_HOME": str(home), **environment}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                worker_command(concurrency),
                cwd=elsewhere,
                env=worker_environment() | ours,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def family(self) -> list[psutil.Process]:
        """Its process and the children that compute."""
        own = psutil.Process(self.process.pid)
        return [own, *own.children(recursive=True)]

    @property
    def name(self) -> str:
        """As Celery knows it."""
        return f"venn-admit-{os.getpid()}@{socket.gethostname()}"

    def stop(self) -> int:
        """End it in good order; its exit code."""
        self.process.terminate()
        return self.process.wait(PATIENCE_SECONDS)

    def entries(self) -> list[dict[str, Any]]:
        """What it logged, in whole lines; it may be writing the next."""
        lines = self.log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]

    def of_event(self, event: str) -> list[dict[str, Any]]:
        return [entry for entry in self.entries() if entry["event"] == event]


@contextmanager
def running_worker(url: str, home: Path, *, concurrency: int = 1, **environment: object) -> Iterator[WorkerProcess]:
    """A worker on the database at `url`, maybe not up yet; killed at the end with what it started.

    environment: settings, by their names in upper case.
    """
    settings = {f"VENN_ADMIT_{name.upper()}": str(value) for name, value in environment.items()}
    worker = WorkerProcess(url, home, concurrency, settings)
    try:
        yield worker
    finally:
        kill_session(worker.process.pid)
        worker.process.wait()


@contextmanager
def running_beat(url: str, home: Path, **environment: object) -> Iterator[subprocess.Popen[bytes]]:
    """Beat on the database at `url`, with its log in its home; killed at the end.

    environment: as in `running_worker`.
    """
    home.mkdir()
    settings = {f"VENN_ADMIT_{name.upper()}": str(value) for name, value in environment.items()}
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "venn_admit.cli", "beat"],
            env=os.environ | {"VENN_ADMIT_DATABASE_URL": url, "VENN_ADMIT_HOME": str(home), **settings},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            kill_session(process.pid)
            process.wait()


def kill_session(leader: int) -> None:
    """Kill a process that was started in a session of its own, and all that is in it, as a power cut would."""
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader:
                process.send_signal(signal.SIGKILL)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
