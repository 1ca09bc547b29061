"""The tasks, called as functions."""

from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from sqlalchemy import Engine, text
from structlog.testing import capture_logs

from tests.workers.samples import (
    CHUNK_ROWS,
    CHUNKS,
    DECISIONS,
    NAME,
    SCORED_ROWS,
    progress,
    request_score,
    rows,
    value,
    written,
)
from venn_admit import broker
from venn_admit.store.database.engine import transaction
from venn_admit.store.work import leases

# Which chunks the messages that wait are for, as Celery shows arguments.
WAITING = "SELECT payload -> 'headers' ->> 'argsrepr' FROM message ORDER BY id"


@pytest.fixture(autouse=True)
def logged() -> Iterator[list[MutableMapping[str, Any]]]:
    with capture_logs() as entries:
        yield entries


class Tasks:
    """The tasks of a worker, by the names of what they do."""

    def __init__(self, app: Celery) -> None:
        self.app = app
        self.run_chunk = app.tasks[broker.RUN_CHUNK]
        self.sweep_jobs = app.tasks[broker.SWEEP]


@pytest.fixture
def tasks(worker_app: Celery) -> Tasks:
    return Tasks(worker_app)


def change_chunks(engine: Engine, job_id: int, assignments: str) -> None:
    with transaction(engine) as connection:
        connection.execute(text(f"UPDATE job_chunk SET {assignments} WHERE job_id = :job_id"), {"job_id": job_id})


def receive(tasks: Tasks) -> list[int]:
    """The job and the chunk of the message that waits longest, which is taken."""
    queue = tasks.app.conf.task_default_queue
    with tasks.app.connection_for_read() as connection, connection.SimpleQueue(queue) as messages:
        message = messages.get_nowait()
        message.ack()
        found: list[int] = message.payload[0]
    return found


def test_each_message_leads_to_the_next_chunk_and_one_too_many_to_nothing(
    tasks: Tasks, engine: Engine, tmp_path: Path, logged: list[MutableMapping[str, Any]]
) -> None:
    job_id = request_score(engine, tmp_path, chunk_rows=SCORED_ROWS // 2)
    assert tasks.run_chunk(job_id, 1) == SCORED_ROWS // 2
    assert progress(engine, job_id).rows_done == len(written(engine)[DECISIONS]) == SCORED_ROWS // 2
    assert tasks.run_chunk(job_id, 1) == SCORED_ROWS // 2
    before = written(engine)
    assert len(before[DECISIONS]) == SCORED_ROWS

    assert tasks.run_chunk(job_id, 1) == 0
    assert written(engine) == before
    assert [(entry["event"], entry.get("job"), entry.get("chunk"), entry.get("classifier")) for entry in logged] == [
        ("chunk is done", job_id, 0, NAME),
        ("chunk is done", job_id, 1, NAME),
        ("no chunk is free", None, None, None),
    ]


def test_a_message_of_a_job_that_is_not_there_leads_to_the_chunk_that_is_next(
    tasks: Tasks, engine: Engine, tmp_path: Path
) -> None:
    assert tasks.run_chunk(1_000_000, 0) == 0
    request_score(engine, tmp_path)
    assert tasks.run_chunk(1_000_000, 0) == CHUNK_ROWS


def test_a_chunk_without_a_message_takes_none_from_another(tasks: Tasks, engine: Engine, tmp_path: Path) -> None:
    """Each message is received once: what is computed first is a chunk to be tried again, and all are done at last."""
    job_id = request_score(engine, tmp_path, chunk_rows=SCORED_ROWS // 3)
    assert tasks.sweep_jobs() == 3
    assert receive(tasks) == [job_id, 0]
    change_chunks(engine, job_id, "sent_at = CASE WHEN ordinal = 0 THEN NULL ELSE sent_at END")
    received = []
    while value(engine, "SELECT count(*) FROM message"):
        received.append(receive(tasks))
        tasks.run_chunk(*received[-1])
    assert received == [[job_id, 1], [job_id, 2], [job_id, 1]]
    assert progress(engine, job_id).state == "done"


@pytest.mark.parametrize("resent", [False, True])
def test_a_claim_that_ran_out_takes_no_message_from_another(
    tasks: Tasks, engine: Engine, tmp_path: Path, resent: bool
) -> None:
    job_id = request_score(engine, tmp_path, chunk_rows=SCORED_ROWS // 2)
    change_chunks(engine, job_id, "sent_at = now() - interval '30 seconds'")
    with transaction(engine) as connection:
        assert leases.claim(connection, job_id, 0, worker="dead", lease_seconds=-1)
    if resent:
        broker.send(tasks.app, [(job_id, 1)])  # as long as one waits, none counts as lost
        assert tasks.sweep_jobs() == 1
        assert receive(tasks) == [job_id, 1]
    assert tasks.run_chunk(job_id, 1) == SCORED_ROWS // 2
    passed_on = [(f"[{job_id}, {0 if resent else 1}]",)]
    assert rows(engine, WAITING) == passed_on


def test_a_message_is_not_passed_on_for_ever(tasks: Tasks, engine: Engine, tmp_path: Path) -> None:
    """Not even if no chunk has one, and the message is of no chunk."""
    job_id = request_score(engine, tmp_path, chunk_rows=SCORED_ROWS // 4)
    broker.send(tasks.app, [(1_000_000, 0)])
    received = 0
    while value(engine, "SELECT count(*) FROM message"):
        tasks.run_chunk(*receive(tasks))
        received += 1
    assert received == 5, "the last finds nothing"
    assert progress(engine, job_id).state == "done"


def test_the_sweep_sends_what_was_never_sent_and_that_once(tasks: Tasks, engine: Engine, tmp_path: Path) -> None:
    job_id = request_score(engine, tmp_path)
    assert tasks.sweep_jobs() == CHUNKS
    assert tasks.sweep_jobs() == 0
    assert [waiting for (waiting,) in rows(engine, WAITING)] == [f"[{job_id}, {ordinal}]" for ordinal in range(CHUNKS)]


def test_the_sweep_sends_again_what_no_live_lease_covers(tasks: Tasks, engine: Engine, tmp_path: Path) -> None:
    job_id = request_score(engine, tmp_path, chunk_rows=SCORED_ROWS)
    assert tasks.sweep_jobs() == 1
    change_chunks(engine, job_id, "sent_at = now() - interval '2 minutes'")
    assert tasks.sweep_jobs() == 0, "the message waits"
    with tasks.app.connection_for_read() as connection:
        assert connection.default_channel.queue_purge(tasks.app.conf.task_default_queue) == 1
    assert tasks.sweep_jobs() == 1, "the message was lost"
    claimed = "state = 'running', lease_token = gen_random_uuid(), sent_at = now() - interval '2 minutes'"
    change_chunks(engine, job_id, f"{claimed}, lease_until = now() + interval '1 minute'")
    assert tasks.sweep_jobs() == 0, "a worker has it"
    change_chunks(engine, job_id, "lease_until = now() - interval '1 second'")
    assert tasks.sweep_jobs() == 1, "that worker was lost"
    assert tasks.run_chunk(job_id, 0) == SCORED_ROWS
    change_chunks(engine, job_id, "sent_at = now() - interval '2 minutes'")
    assert tasks.sweep_jobs() == 0, "it is done"


def test_messages_come_in_order_and_are_gone_when_taken(tasks: Tasks, engine: Engine) -> None:
    broker.send(tasks.app, [(1, 0), (1, 1)])
    queue = tasks.app.conf.task_default_queue
    with tasks.app.connection_for_read() as connection, connection.SimpleQueue(queue) as messages:
        assert messages.qsize() == 2
        taken = messages.get_nowait()
        assert taken.payload[0] == [1, 0]
        taken.ack()
        # Received, but not acknowledged: it goes back.
        assert messages.get_nowait().payload[0] == [1, 1]
        assert messages.qsize() == 0
    assert [waiting for (waiting,) in rows(engine, WAITING)] == ["[1, 1]"]
    with tasks.app.connection_for_read() as connection:
        assert connection.default_channel.queue_purge(queue) == 1
    assert value(engine, "SELECT count(*) FROM message") == 0
