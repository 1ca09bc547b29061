"""Workers on each broker: who overtakes whom, and that no worker holds up the work of others."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from sqlalchemy import Engine, Row, text

from tests.patience import PATIENCE_SECONDS, wait_until
from tests.running import Bench, workspace
from tests.workers.processes import WorkerProcess, await_workers, running_worker
from tests.workers.samples import (
    CHUNK_ROWS,
    DECISIONS,
    NAME,
    SCORED_ROWS,
    exemplars,
    make_clusters,
    progress,
    relay_until_done,
    request_score,
    rows,
    value,
    written,
)
from venn_admit.flows.calibration.recalibrate import RecalibrationOutcome, recalibrate_due
from venn_admit.flows.jobs.control import relay
from venn_admit.store.database.engine import connect

pytestmark = pytest.mark.processes

LEASE_SECONDS = 10
LATE_CHUNKS = 60
# Several times what a worker does before it has ended.
MANY_CHUNKS = 60
# In each of which both workers have a chunk.
ROUNDS = 5
# What chunks must write to, and so wait for.
BLOCK = "LOCK TABLE decision IN ACCESS EXCLUSIVE MODE"
CLAIMS = """
SELECT job_id, ordinal, kind, worker, attempts, claimed_at
FROM job_chunk JOIN job ON job_id = id
WHERE claimed_at IS NOT NULL AND job_id >= :first
ORDER BY claimed_at
"""
# A worker that stands still while it computes, and not while it writes, when all others would wait for it.
COMPUTES = """
SELECT count(*) FILTER (WHERE job_chunk.worker LIKE '%:' || :pid) = 1 AND count(activity.pid) = 0
FROM job_chunk
LEFT JOIN pg_stat_activity AS activity ON activity.application_name = format('venn-admit chunk %s', lease_token)
WHERE job_chunk.state = 'running'
"""

StartWorker = Callable[..., WorkerProcess]


@pytest.fixture
def sender(make_sender: Callable[..., Celery], url: str, broker_url: str | None) -> Celery:
    return make_sender(url, broker_url)


@pytest.fixture
def start_worker(url: str, broker_url: str | None, tmp_path: Path, sender: Celery) -> Iterator[StartWorker]:
    """Start a worker of one process, with a home of the given name; all are killed before the queues are deleted."""
    assert sender
    settings: dict[str, Any] = {} if broker_url is None else {"broker_url": broker_url}
    with ExitStack() as workers:
        yield lambda name, lease_seconds=LEASE_SECONDS: workers.enter_context(
            running_worker(url, tmp_path / name, lease_seconds=lease_seconds, **settings)
        )


def claims(engine: Engine, first_job: int) -> list[Row[Any]]:
    """The chunks of this job and those after it, in the order of their last claims."""
    return rows(engine, CLAIMS, first=first_job)


def chunks(engine: Engine, state: str) -> int:
    """How many are in this state."""
    return len(rows(engine, "SELECT FROM job_chunk WHERE state = :state", state=state))


def done(engine: Engine, job_id: int) -> bool:
    return progress(engine, job_id).state == "done"


def test_a_recalibration_overtakes_a_job_of_many_chunks(
    engine: Engine, sender: Celery, start_worker: StartWorker, tmp_path: Path
) -> None:
    scoring = request_score(engine, tmp_path, chunk_rows=SCORED_ROWS // MANY_CHUNKS)
    relay(engine, sender, scoring)
    first = start_worker("only")
    wait_until(lambda: progress(engine, scoring).rows_done > 0, "the scoring has begun")
    assert first.stop() == 0
    bench = Bench(engine, tmp_path)
    bench.ingest(NAME, bench.write("new.npz", exemplars("new", 6)), "train")

    def recalibrate() -> list[RecalibrationOutcome]:
        steps = recalibrate_due(
            workspace(engine, chunk_rows=400, keep_calibrations=None), sender, quiet_seconds=0, wait_seconds=0
        )
        assert not [step.error for step in steps if step.error]
        return [step.outcome for step in steps]

    assert recalibrate() == [RecalibrationOutcome.STARTED]
    assert progress(engine, scoring).state == "running"
    start_worker("only")
    wait_until(lambda: RecalibrationOutcome.RECALIBRATED in recalibrate(), "a second snapshot")
    wait_until(lambda: done(engine, scoring), "the scoring is done")
    order = [row.job_id for row in claims(engine, scoring)]
    recalibration = max(order)
    overtaken = order[order.index(recalibration) : len(order) - order[::-1].index(recalibration)]
    recalibrating = overtaken.count(recalibration)
    assert recalibrating > 3
    assert overtaken.count(scoring) <= recalibrating / 3
    assert order[-1] == scoring
    assert len(written(engine)[DECISIONS]) == SCORED_ROWS
    assert {row.attempts for row in claims(engine, scoring)} == {1}


def test_two_classifiers_advance_side_by_side(
    engine: Engine, sender: Celery, start_worker: StartWorker, tmp_path: Path
) -> None:
    with_other = tmp_path / "other"
    with_other.mkdir()
    make_clusters(Bench(engine, with_other), "other")
    first = request_score(engine, tmp_path)
    second = request_score(engine, tmp_path, name="other")
    relay(engine, sender)
    start_worker("only")
    wait_until(lambda: done(engine, first) and done(engine, second), "both jobs are done")
    order = [row.job_id for row in claims(engine, first)]
    assert len(order) == 2 * SCORED_ROWS // CHUNK_ROWS
    assert all(before != after for before, after in pairwise(order))


def test_a_worker_that_stands_still_holds_up_its_own_chunk_and_no_other(
    engine: Engine, sender: Celery, start_worker: StartWorker, tmp_path: Path
) -> None:
    slow = start_worker("slow")
    await_workers(engine, 1)
    job_id = request_score(engine, tmp_path)
    relay(engine, sender, job_id)
    stop_computing(engine, job_id, slow)
    slow.family()[0].suspend()
    (held,) = rows(engine, "SELECT ordinal, worker, finished_at FROM job_chunk WHERE state = 'running'")
    start_worker("quick")
    wait_until(lambda: progress(engine, job_id).rows_done >= SCORED_ROWS - CHUNK_ROWS, "the rest is done")
    relay_until_done(engine, sender, job_id)
    assert_taken_over(engine, job_id, held)
    assert len(written(engine)[DECISIONS]) == SCORED_ROWS


def test_a_slow_worker_does_not_hold_up_a_job(
    engine: Engine, sender: Celery, start_worker: StartWorker, tmp_path: Path
) -> None:
    """It has a lease for longer than anybody waits, which ends only because others did theirs in much less time."""
    slow = start_worker("slow", lease_seconds=2 * PATIENCE_SECONDS)
    await_workers(engine, 1)
    job_id = request_score(engine, tmp_path)
    relay(engine, sender, job_id)
    stop_computing(engine, job_id, slow)
    (held,) = rows(engine, "SELECT ordinal, worker FROM job_chunk WHERE state = 'running'")
    quick = start_worker("quick")
    relay_until_done(engine, sender, job_id)
    assert_taken_over(engine, job_id, held)
    wait_until(lambda: quick.of_event("chunk is late, it is taken over"), "it says so")
    kept = written(engine)
    slow.family()[1].resume()
    wait_until(lambda: slow.of_event("lease was lost, result is dropped"), "the slow one has finished too")
    assert written(engine) == kept
    assert len(kept[DECISIONS]) == SCORED_ROWS


def assert_taken_over(engine: Engine, job_id: int, held: Row[Any]) -> None:
    """Another worker computed the chunk that was held, and no other chunk was computed again."""
    again = {row.ordinal: row.worker for row in claims(engine, job_id) if row.attempts > 1}
    assert list(again) == [held.ordinal]
    assert again[held.ordinal] != held.worker


def stop_computing(engine: Engine, job_id: int, worker: WorkerProcess) -> None:
    """Suspend the only process of a worker that computes, while it computes a chunk of the job."""
    computing = worker.family()[1]

    def stands_still() -> bool:
        computing.suspend()
        if value(engine, COMPUTES, pid=str(computing.pid)):
            return True
        computing.resume()
        assert not done(engine, job_id), "it was never met while it computes"
        return False

    wait_until(stands_still, "the worker stands still")


def test_a_worker_that_comes_late_takes_its_share(
    engine: Engine, sender: Celery, start_worker: StartWorker, tmp_path: Path
) -> None:
    job_id = request_score(engine, tmp_path, chunk_rows=SCORED_ROWS // LATE_CHUNKS)
    early = start_worker("early")
    await_workers(engine, 1)
    with connect(engine) as connection, connection.begin():
        connection.execute(text(BLOCK))
        relay(engine, sender, job_id)
        wait_until(lambda: len(claims(engine, job_id)) == 1, "the first has begun")
        late = start_worker("late")
        await_workers(engine, 2)
        wait_until(lambda: len(claims(engine, job_id)) == 2, "the second has begun")
    for _ in range(ROUNDS):
        with connect(engine) as connection, connection.begin():
            connection.execute(text(BLOCK))
            wait_until(lambda: chunks(engine, "running") == 2 or not chunks(engine, "pending"), "both are at work")
    wait_until(lambda: done(engine, job_id), "the job is done")

    def shares() -> list[int]:
        return [len(worker.of_event("chunk is done")) for worker in (early, late)]

    wait_until(lambda: sum(shares()) >= LATE_CHUNKS, "each chunk is in a log")
    assert sum(shares()) == LATE_CHUNKS
    assert min(shares()) > ROUNDS
