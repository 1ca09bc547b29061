"""What disturbs jobs while they run; each disturbance is counted."""

import random
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
from sqlalchemy import Row, text

from tests.faults.fleet import LEASE_SECONDS, Fleet
from tests.faults.server import Server
from tests.faults.workload import open_jobs
from tests.patience import PATIENCE_SECONDS, wait_until
from tests.workers.processes import WorkerProcess
from venn_admit.store.database.engine import connect, transaction

REFUSED = "lease was lost, result is dropped"

# The chunks being computed.
CLAIMED = "SELECT job_id, ordinal, worker, lease_until FROM job_chunk WHERE state = 'running' AND lease_until > now()"
CHUNK = "SELECT state, worker FROM job_chunk WHERE job_id = :job_id AND ordinal = :ordinal"
FINISHED = "SELECT count(*) FROM job_chunk WHERE state = 'done'"
# Chunks that nobody may claim until they are released, the last of all.
HOLD_BACK = """
UPDATE job_chunk
SET not_before = 'infinity'
FROM (
    SELECT job_id, ordinal FROM job_chunk WHERE state = 'pending' ORDER BY job_id DESC, ordinal DESC LIMIT :count
) AS held
WHERE job_chunk.job_id = held.job_id AND job_chunk.ordinal = held.ordinal
"""
# Some of them, once no other chunk is open.
RELEASE = """
UPDATE job_chunk
SET not_before = NULL
FROM (
    SELECT job_id, ordinal FROM job_chunk WHERE not_before = 'infinity' ORDER BY job_id, ordinal LIMIT :count
) AS held
WHERE
    job_chunk.job_id = held.job_id
    AND job_chunk.ordinal = held.ordinal
    AND NOT EXISTS (
        SELECT
        FROM job_chunk
        WHERE state IN ('pending', 'running') AND not_before IS DISTINCT FROM 'infinity'
    )
"""
RELEASE_ALL = "UPDATE job_chunk SET not_before = NULL WHERE not_before = 'infinity'"
# How long a kill waits for a process to have a chunk.
AIM_SECONDS = 0.3
# About as long as a chunk takes.
CHUNK_SECONDS = 0.03


class Disturbances:
    """Faults of one run of a fleet; the moments, and whom they hit, are drawn from `rng`."""

    def __init__(self, fleet: Fleet, server: Server, rng: random.Random, counts: Counter[str]) -> None:
        self._fleet = fleet
        self._server = server
        self._rng = rng
        self._counts = counts

    def hold_back(self, count: int) -> None:
        """Keep chunks for later, so that jobs last until they are disturbed, however slow this process is."""
        self._execute(HOLD_BACK, count)

    def kill_child(self) -> None:
        """Kill -9 of the process that computes; its worker starts another."""
        target = self._target()
        if target is not None:
            with suppress(psutil.NoSuchProcess):
                psutil.Process(target[0]).kill()
                self._counts["processes killed"] += 1

    def kill_worker(self) -> None:
        """Kill -9 of a worker and its process at once; another is started in the same home."""
        target = self._target()
        worker = self._rng.choice(self._fleet.workers) if target is None else target[1]
        self._fleet.kill(worker)
        self._fleet.start(worker.home)
        self._counts["workers killed"] += 1

    def flush(self) -> None:
        """Take all messages from the broker."""
        self._counts["messages lost"] += self._fleet.flush()
        self._counts["broker flushed"] += 1

    def cut(self) -> None:
        """Reset the workers' connections to the broker; new ones are accepted."""
        self._counts["connections cut"] += self._fleet.proxy.cut()

    def take_broker_away(self) -> None:
        """Reset the workers' connections to the broker, and refuse new ones for a moment."""
        with self._fleet.proxy.down():
            time.sleep(self._rng.uniform(0, 1))
        self._counts["broker away"] += 1

    def restart_postgres(self) -> None:
        """Stop Postgres at once and start it again, a moment later."""
        self._server.restart(self._rng.uniform(0, 1))
        self._counts["Postgres restarted"] += 1

    def pause(self) -> None:
        """Stop a worker in a chunk until another has finished that chunk; continued, its late write is refused."""
        # An older lease may be of a chunk given up: without Postgres, no error could be recorded.
        since = datetime.now(UTC)
        while open_jobs(self._fleet.engine):
            stopped = self._stop_in_chunk(since)
            if stopped is not None and self._late_write_is_refused(*stopped):
                self._counts["workers paused"] += 1
                self._counts["late writes refused"] += 1
                return

    def _late_write_is_refused(self, worker: WorkerProcess, child: psutil.Process, chunk: Row[Any]) -> bool:
        """Continue a worker after its chunk is done; false where it had done it itself before it was stopped."""
        try:
            wait_until(lambda: self._chunk(chunk).state == "done", "another worker finishes the chunk")
            if self._chunk(chunk).worker == chunk.worker:
                return False
            refused = self._fleet.logged(REFUSED)
            child.resume()
            wait_until(lambda: self._fleet.logged(REFUSED) > refused, "the late write is refused")
            return True
        finally:
            resume(worker)

    def await_chunks(self, count: int) -> bool:
        """Wait until a number of chunks more are done, or no job is open, which is false."""
        former = self._finished()

        def come_so_far() -> bool:
            self._execute(RELEASE, count)
            return self._finished() >= former + count or not open_jobs(self._fleet.engine)

        wait_until(come_so_far, f"{count} chunks are done", PATIENCE_SECONDS)
        return bool(open_jobs(self._fleet.engine))

    def _execute(self, statement: str, count: int) -> None:
        with transaction(self._fleet.engine) as connection:
            connection.execute(text(statement), {"count": count})

    def _finished(self) -> int:
        with connect(self._fleet.engine) as connection:
            finished: int = connection.execute(text(FINISHED)).scalar_one()
        return finished

    def _target(self) -> tuple[int, WorkerProcess] | None:
        """A process that computes a chunk now, where there soon is one, else any; None where none is there."""
        deadline = time.monotonic() + AIM_SECONDS
        while time.monotonic() < deadline:
            self._execute(RELEASE, 1)
            children = self._fleet.children()
            busy = [pid for chunk in self._claimed() if (pid := pid_of(chunk)) in children]
            if busy:
                pid = self._rng.choice(busy)
                time.sleep(self._rng.uniform(0, CHUNK_SECONDS))
                return pid, children[pid]
        return self._rng.choice(list(children.items())) if children else None

    def _stop_in_chunk(self, since: datetime) -> tuple[WorkerProcess, psutil.Process, Row[Any]] | None:
        """Stop a worker that computes a chunk claimed since then; None where it was done too soon."""
        target = self._target()
        if target is None:
            return None
        pid, worker = target
        with suppress(psutil.NoSuchProcess):
            for process in worker.family():
                process.suspend()
            for chunk in self._claimed():
                if pid_of(chunk) == pid and chunk.lease_until > since + timedelta(seconds=LEASE_SECONDS):
                    return worker, psutil.Process(pid), chunk
        resume(worker)
        return None

    def _claimed(self) -> list[Row[Any]]:
        with connect(self._fleet.engine) as connection:
            return list(connection.execute(text(CLAIMED)).all())

    def _chunk(self, chunk: Row[Any]) -> Row[Any]:
        with connect(self._fleet.engine) as connection:
            return connection.execute(text(CHUNK), {"job_id": chunk.job_id, "ordinal": chunk.ordinal}).one()


def pid_of(chunk: Row[Any]) -> int:
    """Which process on this machine claimed it last."""
    return int(chunk.worker.rpartition(":")[2])


def resume(worker: WorkerProcess) -> None:
    """Continue all of a worker that was stopped."""
    with suppress(psutil.NoSuchProcess):
        for process in worker.family():
            process.resume()
