"""A worker as a process, and beat: how they are started, and a worker that a verb starts for itself."""

import atexit
import os
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import BinaryIO

import psutil

import venn_admit
from venn_admit.service.broker import DEAF_EXIT_CODE
from venn_admit.service.errors import DatabaseError, JobError
from venn_admit.service.store.embedded.access import make_home

START_SECONDS = 60.0
STOP_SECONDS = 60.0
KEPT_LOGS = 10


def worker_command(concurrency: int | None) -> list[str]:
    """The command that runs a Celery worker with as many processes, one a CPU where None is given."""
    # Workers tell each other nothing: what they need to know is in the database.
    alone = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    options = ["--loglevel", "INFO", "-n", f"venn-admit-{os.getpid()}@%h"]
    return [*_celery("worker"), *alone, *options, *(["--concurrency", str(concurrency)] if concurrency else [])]


def beat_command(home: Path) -> list[str]:
    """The command that runs Celery's beat, which keeps in a file in the home when it last sent what."""
    return [*_celery("beat"), "--loglevel", "INFO", "--schedule", str(home / "beat-schedule")]


def _celery(command: str) -> list[str]:
    # Without the current folder among those that Python imports from: it may have a module of our name.
    return [sys.executable, "-P", "-m", "venn_admit.workers", command]


def worker_environment() -> dict[str, str]:
    """Ours, with the code that runs here, and one thread for each process of a worker: they are as many as CPUs."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **one_thread}
    code = str(Path(venn_admit.__file__).parents[1])
    if code != sysconfig.get_path("purelib"):  # not where Python looks anyway
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (code, environment.get("PYTHONPATH"))))
    return environment


class OwnWorker:
    """A worker that ends with this process, however that ends: it holds the other end of the worker's stdin."""

    def __init__(self, home: Path, concurrency: int | None) -> None:
        """Start it; it is up some seconds later. Raises DatabaseError if its log cannot be written."""
        self._log = home / "logs" / f"worker-{os.getpid()}.log"
        try:
            output = _open_log(self._log)
        except OSError as error:
            raise DatabaseError(
                f"{self._log} cannot be written: {error}; give VENN_ADMIT_HOME a writable folder"
            ) from error
        with output:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                worker_command(concurrency),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=worker_environment() | {"VENN_ADMIT_STOP_WITH_STDIN": "true"},
                start_new_session=True,  # Ctrl-C is for us: we stop it in good order
            )
        self._deadline = time.monotonic() + START_SECONDS
        atexit.register(self._end)

    @property
    def is_deaf(self) -> bool:
        """Whether it ended because it took no messages any more."""
        return self._process.poll() == DEAF_EXIT_CODE

    def check(self, live_workers: int) -> None:
        """Raise JobError where it ended, or is not among the live workers in time."""
        if self._process.poll() is not None:
            tail = self._log.read_text(errors="replace").splitlines()[-5:]
            raise JobError(
                f"the worker ended with code {self._process.returncode}; see {self._log}: {' / '.join(tail)}"
            )
        if live_workers:
            self._deadline = float("inf")
        elif time.monotonic() > self._deadline:
            raise JobError(f"no worker came up within {START_SECONDS:.0f} s; see {self._log}")

    def stop(self) -> None:
        """Let it finish what it computes now, and end; this process waits for that when it ends itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _end(self) -> None:
        self.stop()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _open_log(path: Path) -> BinaryIO:
    """A new log that only its owner can read; of older ones, those of ended commands, the last few are kept."""
    make_home(path.parents[1])
    path.parent.mkdir(mode=0o700, exist_ok=True)
    older = sorted(path.parent.glob("worker-*.log"), key=_time_of_change, reverse=True)
    for log in older[KEPT_LOGS:]:
        if not psutil.pid_exists(int(log.stem.removeprefix("worker-"))):
            log.unlink(missing_ok=True)
    path.unlink(missing_ok=True)  # of another process of that number, with a mode of its own
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _time_of_change(log: Path) -> float:
    try:
        return log.stat().st_mtime
    except FileNotFoundError:  # removed by another command
        return 0.0
