"""Workers as processes, with the database as the broker."""

import functools
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from celery import Celery
from sqlalchemy import Engine, Row, text

from tests.patience import PATIENCE_SECONDS, wait_until
from tests.workers.processes import WorkerProcess, await_workers, kill_session, live_workers, running_worker
from tests.workers.samples import (
    CHUNK_ROWS,
    DECISIONS,
    SCORED_ROWS,
    progress,
    relay_until_done,
    request_score,
    rows,
    value,
    written,
)
from venn_admit import broker
from venn_admit.cli.worker_process import worker_environment
from venn_admit.errors import JobError, NotReadyError
from venn_admit.flows.jobs.control import await_job, relay
from venn_admit.store.database.engine import connect

pytestmark = pytest.mark.processes

OpenEngine = Callable[[str], Engine]

# What the computation of a chunk needs to write, and so waits for.
BLOCK = "LOCK TABLE decision IN ACCESS EXCLUSIVE MODE"
# One that nobody ends, as a forked child would over the socket of its parent, stays for ever.
OPEN_TRANSACTIONS = """
SELECT count(*)
FROM pg_stat_activity
WHERE datname = current_database() AND state LIKE 'idle in transaction%'
"""
# Each is gone when its row is returned.
CUT_CONNECTIONS = """
SELECT pg_terminate_backend(pid, 60000)
FROM pg_stat_activity
WHERE datname = current_database() AND application_name IN ('venn-admit-worker', 'venn-admit-broker')
"""
MESSAGES = "SELECT count(*) FROM message"
# What a chunk waits for when its rows are written and it is to be marked as done.
BLOCK_END = "SELECT id FROM job FOR UPDATE"
WAITING_FOR_LOCK = """
SELECT count(*)
FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'venn-admit chunk %' AND wait_event_type = 'Lock'
"""
STARTED = "SELECT count(*) FROM job_chunk WHERE state = 'running'"

# A program that starts a worker for itself, and hangs.
PARENT = """
import sys, time
from pathlib import Path
from typing import Any
from venn_admit.cli.worker_process import OwnWorker

worker = OwnWorker(Path(sys.argv[1]), 1)
print(worker._process.pid, flush=True)
time.sleep(1000)
"""


@contextmanager
def blocked(engine: Engine, block: str = BLOCK) -> Iterator[None]:
    """Within it, chunks are begun but do not end."""
    with connect(engine) as connection, connection.begin():
        connection.execute(text(block))
        yield


def ended(processes: list[psutil.Process]) -> bool:
    """Whether none of them runs; one may still wait for its parent to notice."""
    return not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


def complete(engine: Engine, sender: Celery, job_id: int) -> None:
    """Wait until a job is done, as a requester does."""

    def check_workers() -> None:
        assert live_workers(engine), "the workers are gone"

    await_job(engine, sender, job_id, check_workers=check_workers, on_progress=lambda _: None)


def only_chunk(engine: Engine, job_id: int) -> Row[Any]:
    (chunk,) = rows(engine, "SELECT * FROM job_chunk WHERE job_id = :job_id", job_id=job_id)
    return chunk


def all_have_a_chunk(engine: Engine, workers: int) -> bool:
    """Whether workers of one process have begun as many chunks as there are of them."""
    return bool(value(engine, STARTED) == workers)


def no_message_waits(engine: Engine) -> bool:
    """Whether each message was acknowledged, which follows the end of its chunk."""
    return bool(value(engine, MESSAGES) == 0)


def logged_chunks(workers: list[WorkerProcess], count: int) -> list[list[dict[str, Any]]]:
    """What each worker logged of the chunks that it did, once all have: they log a chunk after it is done."""

    def shares() -> list[list[dict[str, Any]]]:
        return [worker.of_event("chunk is done") for worker in workers]

    wait_until(lambda: sum(map(len, shares())) >= count, "each chunk is in a log")
    return shares()


def test_two_workers_give_the_rows_of_one(
    copy_of_clusters: Callable[[], str], open_engine: OpenEngine, make_sender: Callable[..., Celery], tmp_path: Path
) -> None:
    results = []
    for names in (["only"], ["first", "second"]):
        url = copy_of_clusters()
        engine, sender = open_engine(url), make_sender(url)
        with ExitStack() as stack:
            workers = [stack.enter_context(running_worker(url, tmp_path / name)) for name in names]
            await_workers(engine, len(workers))
            job_id = request_score(engine, tmp_path)
            with blocked(engine):
                relay(engine, sender, job_id)
                wait_until(functools.partial(all_have_a_chunk, engine, len(workers)), "each worker has a chunk")
            complete(engine, sender, job_id)
            shares = logged_chunks(workers, SCORED_ROWS // CHUNK_ROWS)
            wait_until(functools.partial(no_message_waits, engine), "each message is acknowledged")
        results.append(written(engine))

        assert all(shares), "a worker had no share in the job"
        assert sum(entry["rows"] for share in shares for entry in share) == SCORED_ROWS
        assert {entry["job"] for share in shares for entry in share} == {job_id}
        assert sorted(entry["chunk"] for share in shares for entry in share) == list(range(SCORED_ROWS // CHUNK_ROWS))
        assert all((worker.home / "cache").glob("support-*") for worker in workers)
    assert len(results[0][DECISIONS]) == SCORED_ROWS
    assert results[0] == results[1]


def test_presence_goes_up_and_down(url: str, engine: Engine, tmp_path: Path) -> None:
    assert live_workers(engine) == 0
    with running_worker(url, tmp_path / "first") as first, running_worker(url, tmp_path / "second") as second:
        await_workers(engine, 2)
        wait_until(lambda: value(engine, OPEN_TRANSACTIONS) == 0, "no transaction stays open")
        assert first.stop() == 0
        await_workers(engine, 1)
        second.process.kill()
        await_workers(engine, 0)


def test_what_a_worker_logs_is_json(url: str, tmp_path: Path) -> None:
    with running_worker(url, tmp_path / "home") as worker:
        wait_until(lambda: worker.of_event(f"{worker.name} ready."), "the worker is ready")
        lines = worker.log.read_text().rpartition("\n")[0].splitlines()  # it may be writing the next
    # Before it Python warns who runs the tests as root.
    first = next(number for number, line in enumerate(lines) if line.startswith("{"))
    assert [json.loads(line)["level"] for line in lines[first:]] == ["info"] * len(lines[first:])


def test_connections_that_were_lost_are_made_again(url: str, engine: Engine, sender: Celery, tmp_path: Path) -> None:
    with running_worker(url, tmp_path / "home") as worker:
        await_workers(engine, 1)
        family = worker.family()
        for process in family:
            process.suspend()
        assert len(rows(engine, CUT_CONNECTIONS)) >= 2
        assert live_workers(engine) == 0
        for process in family:
            process.resume()
        await_workers(engine, 1)
        complete(engine, sender, request_score(engine, tmp_path, chunk_rows=SCORED_ROWS))


def test_a_worker_whose_idle_process_was_killed_goes_on(
    url: str, engine: Engine, sender: Celery, tmp_path: Path
) -> None:
    with running_worker(url, tmp_path / "home") as worker:
        await_workers(engine, 1)
        wait_until(lambda: worker.of_event(f"{worker.name} ready."), "the worker is ready")
        (_, child) = worker.family()
        child.kill()
        wait_until(lambda: ended([child]) and len(worker.family()) == 2, "another process takes its place")
        complete(engine, sender, request_score(engine, tmp_path, chunk_rows=SCORED_ROWS))


def test_messages_of_a_requester_that_was_killed_are_worked_off(
    url: str, engine: Engine, sender: Celery, tmp_path: Path
) -> None:
    chunks = 4
    job_id = request_score(engine, tmp_path, chunk_rows=SCORED_ROWS // chunks)
    assert relay(engine, sender, job_id) == chunks
    assert value(engine, MESSAGES) == chunks
    with running_worker(url, tmp_path / "home") as worker:
        wait_until(lambda: progress(engine, job_id).state == "done", "the job is done, unattended")
        before = written(engine)

        broker.send(sender, [(job_id, ordinal) for ordinal in range(chunks)])
        wait_until(lambda: len(worker.of_event("no chunk is free")) == chunks, "the same messages are received again")
        wait_until(lambda: no_message_waits(engine), "each message is acknowledged")

    assert written(engine) == before
    assert rows(engine, "SELECT DISTINCT attempts, state FROM job_chunk") == [(1, "done")]


@pytest.mark.parametrize("busy", [False, True])
def test_a_worker_ends_with_the_program_that_started_it(
    url: str, engine: Engine, sender: Celery, tmp_path: Path, busy: bool
) -> None:
    home = tmp_path / "home"
    settings = {"VENN_ADMIT_DATABASE_URL": url, "VENN_ADMIT_HOME": str(home)}
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(home)], env=worker_environment() | settings, stdout=subprocess.PIPE
    )
    with parent, ExitStack() as stack:
        assert parent.stdout is not None
        leader = int(parent.stdout.readline())
        stack.callback(kill_session, leader)
        await_workers(engine, 1)
        own = psutil.Process(leader)
        family = [own, *own.children(recursive=True)]
        if busy:
            job_id = request_score(engine, tmp_path, chunk_rows=SCORED_ROWS)
            with blocked(engine):
                relay(engine, sender, job_id)
                wait_until(lambda: value(engine, STARTED) == 1, "the chunk is begun")
                parent.kill()
                await_workers(engine, 0)
                assert not ended(family)
        else:
            parent.kill()
        wait_until(lambda: ended(family), "the worker ends")
        if busy:
            assert progress(engine, job_id).state == "done"


def test_the_chunk_of_a_killed_worker_is_done_by_another_after_the_lease(
    url: str, engine: Engine, sender: Celery, tmp_path: Path
) -> None:
    with (
        running_worker(url, tmp_path / "first", lease_seconds=10) as first,
        running_worker(url, tmp_path / "second", lease_seconds=10) as second,
    ):
        await_workers(engine, 2)
        job_id = request_score(engine, tmp_path, chunk_rows=SCORED_ROWS)
        with blocked(engine):
            relay(engine, sender, job_id)
            wait_until(lambda: value(engine, STARTED) == 1, "the chunk is begun")
            claim = only_chunk(engine, job_id)
            holder = next(worker for worker in (first, second) if claim.worker.endswith(f":{worker.family()[1].pid}"))
            family = holder.family()
            holder.process.kill()
            await_workers(engine, 1)
            wait_until(lambda: ended(family), "the children of a killed worker end")
        relay_until_done(engine, sender, job_id)
    chunk = only_chunk(engine, job_id)
    assert chunk.attempts == 2
    assert chunk.worker != claim.worker
    assert chunk.finished_at > claim.lease_until


def test_the_chunk_of_a_killed_process_is_free_at_once(
    url: str, engine: Engine, sender: Celery, tmp_path: Path
) -> None:
    with running_worker(url, tmp_path / "home", lease_seconds=3600):
        await_workers(engine, 1)
        job_id = request_score(engine, tmp_path, chunk_rows=SCORED_ROWS)
        with blocked(engine):
            relay(engine, sender, job_id)
            wait_until(lambda: value(engine, STARTED) == 1, "the chunk is begun")
            claim = only_chunk(engine, job_id)
            psutil.Process(int(claim.worker.rpartition(":")[2])).kill()
            wait_until(lambda: only_chunk(engine, job_id).attempts == 2, "another process has the chunk")
        wait_until(lambda: progress(engine, job_id).state == "done", "the job is done")
    assert only_chunk(engine, job_id).worker != claim.worker


def test_a_worker_that_lives_keeps_its_chunk(url: str, engine: Engine, sender: Celery, tmp_path: Path) -> None:
    with running_worker(url, tmp_path / "home", lease_seconds=8):
        await_workers(engine, 1)
        job_id = request_score(engine, tmp_path, chunk_rows=SCORED_ROWS)
        with blocked(engine):
            relay(engine, sender, job_id)
            wait_until(lambda: value(engine, STARTED) == 1, "the chunk is begun")
            first = only_chunk(engine, job_id)
            after = first.lease_until + timedelta(seconds=8)
            wait_until(lambda: only_chunk(engine, job_id).lease_until > after, "the claim is renewed past its end")
        wait_until(lambda: progress(engine, job_id).state == "done", "the job is done")
    assert only_chunk(engine, job_id).attempts == 1


def test_a_chunk_that_takes_too_long_is_given_up(url: str, engine: Engine, sender: Celery, tmp_path: Path) -> None:
    with running_worker(url, tmp_path / "home", chunk_seconds=15) as worker:
        await_workers(engine, 1)
        job_id = request_score(engine, tmp_path, chunk_rows=SCORED_ROWS)
        with blocked(engine):
            relay(engine, sender, job_id)
            wait_until(lambda: value(engine, STARTED) == 1, "the chunk is begun")
            (_, child) = worker.family()
            wait_until(lambda: ended([child]), "the child is killed")
        relay_until_done(engine, sender, job_id)
    assert only_chunk(engine, job_id).attempts == 2


def test_a_worker_that_stands_still_as_it_writes_holds_the_chunk_up_for_its_lease(
    url: str, engine: Engine, sender: Celery, tmp_path: Path
) -> None:
    with running_worker(url, tmp_path / "first", lease_seconds=5) as first:
        await_workers(engine, 1)
        job_id = request_score(engine, tmp_path, chunk_rows=SCORED_ROWS)
        with blocked(engine, BLOCK_END):
            relay(engine, sender, job_id)
            wait_until(lambda: value(engine, WAITING_FOR_LOCK) == 1, "the rows are written")
            for process in first.family():
                process.suspend()
        with running_worker(url, tmp_path / "second", lease_seconds=5):
            relay_until_done(engine, sender, job_id)


def test_a_database_without_the_schema_is_refused(empty_database: str, tmp_path: Path) -> None:
    with running_worker(empty_database, tmp_path / "home") as worker:
        assert worker.process.wait(PATIENCE_SECONDS) == NotReadyError.exit_code
        (entry,) = worker.of_event("worker cannot start")
    assert "venn-admit db upgrade" in entry["reason"]


def test_a_device_that_is_not_there_is_refused(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with running_worker(url, tmp_path / "home", device="cuda") as worker:
        assert worker.process.wait(PATIENCE_SECONDS) == NotReadyError.exit_code
        (entry,) = worker.of_event("worker cannot start")
    assert "VENN_ADMIT_DEVICE=cuda: expected a device that torch computes on, got" in entry["reason"]
    assert "VENN_ADMIT_DEVICE=cpu" in entry["reason"]


def test_a_broker_that_does_not_answer_is_refused(url: str, tmp_path: Path) -> None:
    with running_worker(url, tmp_path / "home", broker_url="amqp://guest:secret@127.0.0.1:9//") as worker:
        assert worker.process.wait(PATIENCE_SECONDS) == JobError.exit_code
        (entry,) = worker.of_event("worker cannot start")
    assert "the broker amqp://guest:***@127.0.0.1:9// cannot be reached" in entry["reason"]
    assert "secret" not in worker.log.read_text()
