"""How a worker and beat are started as processes, and the worker that a verb starts."""

import atexit
import importlib.util
import os
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import BinaryIO

from venn_admit.errors import DatabaseError, JobError, NotReadyError
from venn_admit.store.embedded.programs import make_home

# One that ends is noticed at once; one that loads its libraries on a busy machine may take minutes.
START_SECONDS = 180.0
STOP_SECONDS = 60.0
KEPT_LOGS = 10
# Beat looks at its schedule every few seconds, or later if the database or the broker keeps it waiting.
BEAT_SECONDS = 60.0
_TICK = "beat-tick"


def worker_command(concurrency: int | None) -> list[str]:
    """Return the command that runs a Celery worker with that many processes; None: one per CPU."""
    # Workers tell each other nothing: what they need to know is in the database.
    alone = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    options = ["--loglevel", "INFO", "-n", f"venn-admit-{os.getpid()}@%h"]
    return [*_celery("worker"), *alone, *options, *(["--concurrency", str(concurrency)] if concurrency else [])]


def beat_command(home: Path) -> list[str]:
    """Return the command that runs Celery's beat, which keeps the times of its messages in a file in the home."""
    return [*_celery("beat"), "--loglevel", "INFO", "--schedule", str(home / "beat-schedule")]


def note_tick(home: Path) -> None:
    """Note that beat has looked at its schedule: the age of a file tells when it did so last.

    Raises:
        OSError: The file cannot be written.
    """
    (home / _TICK).touch()


def require_beat(home: Path) -> None:
    """Raise NotReadyError unless a beat with this home has looked at its schedule lately."""
    try:
        seconds = time.time() - (home / _TICK).stat().st_mtime
    except OSError as error:
        raise NotReadyError(
            f"no beat has run here: {home / _TICK} cannot be read: {error.strerror}; run `venn-admit beat`, or see its "
            "log"
        ) from error
    if seconds > BEAT_SECONDS:
        raise NotReadyError(
            f"beat last looked at its schedule {seconds:.0f} s ago, expected {BEAT_SECONDS:.0f} s at most; see its "
            "log, and start it again"
        )


def _celery(command: str) -> list[str]:
    # -P: Python must not import from the current folder, which may have a module of the same name.
    return [sys.executable, "-P", "-m", "venn_admit_workers", command]


def worker_environment() -> dict[str, str]:
    """Return this environment with the code that runs here, and one thread per process: there is a process per CPU."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **one_thread}
    specs = filter(None, map(importlib.util.find_spec, ("venn_admit", "venn_admit_workers")))
    code = dict.fromkeys(str(Path(spec.origin).parents[1]) for spec in specs if spec.origin)
    if code.keys() != {sysconfig.get_path("purelib")}:  # not where Python looks anyway
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (*code, environment.get("PYTHONPATH"))))
    return environment


class OwnWorker:
    """A worker that ends when this process does, because this process holds the other end of the worker's stdin."""

    def __init__(self, home: Path, concurrency: int | None) -> None:
        """Start the worker, which takes some seconds. Raises DatabaseError if its log cannot be written."""
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
                start_new_session=True,  # Ctrl-C reaches this process alone, which stops the worker in good order
            )
        self._deadline = time.monotonic() + START_SECONDS
        atexit.register(self._end)

    @property
    def is_deaf(self) -> bool:
        """Whether the worker ended because it no longer took messages."""
        from venn_admit.broker import DEAF_EXIT_CODE  # which brings Celery

        return self._process.poll() == DEAF_EXIT_CODE

    def check(self, live_workers: int) -> None:
        """Raise JobError if the worker ended, or did not become live in time."""
        if self._process.poll() is not None:
            tail = self._log.read_text(errors="replace").splitlines()[-5:]
            raise JobError(
                f"the worker ended with code {self._process.returncode}; see {self._log}: {' / '.join(tail)}"
            )
        if live_workers:
            self._deadline = float("inf")
        elif time.monotonic() > self._deadline:
            raise JobError(f"no worker started within {START_SECONDS:.0f} s; see {self._log}")

    def stop(self) -> None:
        """Let the worker finish its chunk and end; this process waits for that before it ends."""
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
    """Open a new log that only its owner can read, and delete all but the last few logs of commands that have ended."""
    import psutil  # which takes as long to load as the rest of the module and its imports

    make_home(path.parents[1])
    path.parent.mkdir(mode=0o700, exist_ok=True)
    older = sorted(path.parent.glob("worker-*.log"), key=_time_of_change, reverse=True)
    for log in older[KEPT_LOGS:]:
        if not psutil.pid_exists(int(log.stem.removeprefix("worker-"))):
            log.unlink(missing_ok=True)
    path.unlink(missing_ok=True)  # left by another process with this number, perhaps with another mode
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _time_of_change(log: Path) -> float:
    try:
        return log.stat().st_mtime
    except FileNotFoundError:  # removed by another command
        return 0.0
