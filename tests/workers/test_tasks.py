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
    DECISIONS,
    NAME,
    SCORED_ROWS,
    progress,
    request_score,
    rows,
    value,
    written,
)
from venn_admit.service import broker
from venn_admit.service.store.database.engine import transaction

CHUNKS = SCORED_ROWS // CHUNK_ROWS
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


def test_a_chunk_is_computed_once_however_often_it_is_run(
    tasks: Tasks, engine: Engine, tmp_path: Path, logged: list[MutableMapping[str, Any]]
) -> None:
    job_id = request_score(engine, tmp_path)
    assert tasks.run_chunk(job_id, 3) == CHUNK_ROWS
    assert progress(engine, job_id).rows_done == CHUNK_ROWS
    before = written(engine)
    assert len(before[DECISIONS]) == CHUNK_ROWS

    assert tasks.run_chunk(job_id, 3) == 0
    assert written(engine) == before
    assert [(entry["event"], entry["job"], entry["chunk"], entry.get("classifier")) for entry in logged] == [
        ("chunk is done", job_id, 3, NAME),
        ("chunk is finished or waits, or another worker has it", job_id, 3, None),
    ]


def test_a_chunk_that_is_not_there_is_nothing_to_do(tasks: Tasks) -> None:
    assert tasks.run_chunk(1_000_000, 0) == 0


def test_the_sweep_sends_what_was_never_sent_and_that_once(tasks: Tasks, engine: Engine, tmp_path: Path) -> None:
    job_id = request_score(engine, tmp_path)
    assert tasks.sweep_jobs() == CHUNKS
    assert tasks.sweep_jobs() == 0
    assert [waiting for (waiting,) in rows(engine, WAITING)] == [f"[{job_id}, {ordinal}]" for ordinal in range(CHUNKS)]


def test_the_sweep_sends_again_what_no_live_lease_covers(tasks: Tasks, engine: Engine, tmp_path: Path) -> None:
    job_id = request_score(engine, tmp_path, chunk_rows=SCORED_ROWS)
    assert tasks.sweep_jobs() == 1
    change_chunks(engine, job_id, "sent_at = now() - interval '2 minutes'")
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
