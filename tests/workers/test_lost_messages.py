"""The broker loses its messages in the middle of a job, all at once: the job goes on soon, and the log says so."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from celery import Celery
from sqlalchemy import Engine

from tests.faults.parts import Redis
from tests.patience import wait_until
from tests.workers.processes import await_workers, running_beat, running_worker
from tests.workers.samples import progress, request_score
from venn_admit import broker
from venn_admit.flows.jobs.control import await_job, relay

pytestmark = pytest.mark.processes

# Many chunks, so that most of them wait when the first is done.
CHUNK_ROWS = 10
AT_MOST_SECONDS = 15.0
SAID = "messages were lost: "


@pytest.fixture
def redis_url(tmp_path: Path) -> Iterator[str]:
    """A Redis of the test's own, because it is flushed."""
    redis = Redis(tmp_path / "redis")
    yield redis.url
    redis.kill()


def lose_messages(sender: Celery) -> None:
    with sender.connection_for_write() as connection:
        channel = connection.default_channel
        if connection.transport.driver_type == "redis":
            channel.client.flushall()
        else:
            for queue in sender.conf.task_queues:
                channel.queue_purge(queue.name)


def longest_pause(engine: Engine, sender: Celery, job_id: int) -> float:
    """Lose the messages once a chunk is done; how long no further chunk was done, until the job is, in seconds."""
    wait_until(lambda: progress(engine, job_id).rows_done, "a chunk is done")
    assert broker.waiting(sender, chunks_only=True)
    lose_messages(sender)
    done, since, longest = -1, time.monotonic(), 0.0

    def is_over() -> bool:
        nonlocal done, since, longest
        longest = max(longest, time.monotonic() - since)
        now = progress(engine, job_id)
        if now.rows_done != done:
            done, since = now.rows_done, time.monotonic()
        return now.state == "done"

    wait_until(is_over, "the job is done")
    return longest


def test_a_job_that_a_command_waits_for(
    broker_url: str | None,
    url: str,
    engine: Engine,
    make_sender: Callable[..., Celery],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    sender = make_sender(url, broker_url)
    with running_worker(url, tmp_path / "worker", broker_url=broker_url or ""), ThreadPoolExecutor() as threads:
        await_workers(engine, 1)
        job_id = request_score(engine, tmp_path, chunk_rows=CHUNK_ROWS)
        waiting = threads.submit(
            await_job, engine, sender, job_id, check_workers=lambda: None, on_progress=lambda _: None
        )
        assert longest_pause(engine, sender, job_id) < AT_MOST_SECONDS
        waiting.result()
    assert [message for message in caplog.messages if message.startswith(SAID)]


def test_a_job_that_nobody_waits_for(
    broker_url: str | None, url: str, engine: Engine, make_sender: Callable[..., Celery], tmp_path: Path
) -> None:
    sender = make_sender(url, broker_url)
    with (
        running_worker(url, tmp_path / "worker", broker_url=broker_url or "") as worker,
        running_beat(url, tmp_path / "beat", broker_url=broker_url or ""),
    ):
        await_workers(engine, 1)
        job_id = request_score(engine, tmp_path, chunk_rows=CHUNK_ROWS)
        relay(engine, sender, job_id)
        assert longest_pause(engine, sender, job_id) < AT_MOST_SECONDS
        assert [entry for entry in worker.entries() if entry["event"].startswith(SAID)]
