"""What a stretch of work takes of processors, memory and write-ahead log, in all processes that have a part in it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from sqlalchemy import Engine, text

from venn_admit.store.database.engine import connect

_INTERVAL_SECONDS = 0.1
_STOP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Used:
    """seconds: of wall clock. *_cpu: seconds of processors. *_peak: the most bytes that one process had to itself.

    Mapped files do not count, because their pages can be dropped and read again, nor does what processes share.
    client: this process. backend: those of the server. worker: the processes that this one started, and theirs.
    wal_bytes: bytes of write-ahead log.
    """

    seconds: float
    client_cpu: float
    backend_cpu: float
    worker_cpu: float
    client_peak: int
    backend_peak: int
    worker_peak: int
    wal_bytes: int


@dataclass(slots=True)
class Watched:
    """used: what the block took, once it is over."""

    used: Used


class _Watcher:
    """Looks at all processes again and again; CPU of those that end is what they had when they were last seen."""

    def __init__(self, postmaster: psutil.Process) -> None:
        self._postmaster = postmaster
        self._own = psutil.Process()
        self._cpu: dict[tuple[str, int, float], tuple[float, float]] = {}
        self.peaks = {"client": 0, "backend": 0, "worker": 0}
        self.own_seconds = 0.0

    def look(self) -> None:
        """Note what each process has taken so far."""
        self._note("client", self._own)
        for process in self._children(self._postmaster):
            self._note("backend", process)
        for process in self._children(self._own):
            self._note("worker", process)

    def cpu(self, kind: str) -> float:
        """Return the seconds that processes of a kind took while they were watched."""
        return sum(last - first for (found, _, _), (first, last) in self._cpu.items() if found == kind)

    def begin(self) -> None:
        """Count from now on."""
        self.look()
        self._cpu = {key: (last, last) for key, (_, last) in self._cpu.items()}
        self.peaks = dict.fromkeys(self.peaks, 0)

    def _children(self, process: psutil.Process) -> list[psutil.Process]:
        return [child for child in process.children(recursive=True) if child.pid != self._postmaster.pid]

    def _note(self, kind: str, process: psutil.Process) -> None:
        try:
            times, memory = process.cpu_times(), process.memory_info()
            key = (kind, process.pid, process.create_time())
        except psutil.Error:  # it has ended
            return
        seconds = times.user + times.system
        first, _ = self._cpu.get(key, (0.0, 0.0))
        self._cpu[key] = (first, seconds)
        # Not `uss`, for which the system looks at each page: with large mapped files that takes half a processor.
        self.peaks[kind] = max(self.peaks[kind], memory.rss - memory.shared)


@contextmanager
def watch(engine: Engine, home: Path) -> Iterator[Watched]:
    """Measure the block; home: that of the embedded server."""
    postmaster = psutil.Process(int((home / "postgres" / "postmaster.pid").read_text().split()[0]))
    watcher, stop = _Watcher(postmaster), threading.Event()

    def look_again() -> None:
        while not stop.wait(_INTERVAL_SECONDS):
            watcher.look()
        watcher.own_seconds = time.thread_time()

    thread = threading.Thread(target=look_again, name="watching")
    watched = Watched(Used(0, 0, 0, 0, 0, 0, 0, 0))
    wal = _wal_position(engine)
    watcher.begin()
    start = time.perf_counter()
    thread.start()
    try:
        yield watched
    finally:
        stop.set()
        thread.join(_STOP_SECONDS)
        seconds = time.perf_counter() - start
        watcher.look()
    watched.used = Used(
        seconds=seconds,
        client_cpu=watcher.cpu("client") - watcher.own_seconds,
        backend_cpu=watcher.cpu("backend"),
        worker_cpu=watcher.cpu("worker"),
        client_peak=watcher.peaks["client"],
        backend_peak=watcher.peaks["backend"],
        worker_peak=watcher.peaks["worker"],
        wal_bytes=_wal_position(engine) - wal,
    )


def _wal_position(engine: Engine) -> int:
    with connect(engine) as connection:
        query = text("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint")
        position: int = connection.execute(query).scalar_one()
    return position


@dataclass(slots=True)
class Spent:
    """seconds: CPU of this process in the block, once it is over."""

    seconds: float = 0.0


@contextmanager
def cpu_seconds() -> Iterator[Spent]:
    """Measure the CPU time of the block in this process."""
    spent, start = Spent(), time.process_time()
    yield spent
    spent.seconds = time.process_time() - start
