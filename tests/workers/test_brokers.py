"""The same job with a server of its own as the broker, which two databases share."""

from collections.abc import Callable
from pathlib import Path

import pytest
from celery import Celery
from sqlalchemy import Engine

from tests.patience import wait_until
from tests.workers.processes import await_workers, running_worker
from tests.workers.samples import CHUNKS, progress, request_score, written
from venn_admit import broker
from venn_admit.flows.jobs.control import relay

pytestmark = pytest.mark.processes

Prepare = Callable[[str | None], tuple[str, Engine, Celery]]


@pytest.fixture
def prepare(
    copy_of_clusters: Callable[[], str], open_engine: Callable[[str], Engine], make_sender: Callable[..., Celery]
) -> Prepare:
    def prepared(broker_url: str | None) -> tuple[str, Engine, Celery]:
        url = copy_of_clusters()
        return url, open_engine(url), make_sender(url, broker_url)

    return prepared


def rows_by_own_broker(prepare: Prepare, folder: Path) -> dict[str, list[str]]:
    """What a worker writes that gets its messages through the database."""
    url, engine, sender = prepare(None)
    job_id = request_score(engine, folder)
    with running_worker(url, folder / "alone"):
        relay(engine, sender, job_id)
        wait_until(lambda: progress(engine, job_id).state == "done", "the job is done")
    return written(engine)


def check_two_databases(prepare: Prepare, broker_url: str, folder: Path) -> None:
    """Jobs of the same number in two databases: each worker computes its own, and what it is to write."""
    first_url, first, first_sender = prepare(broker_url)
    second_url, second, second_sender = prepare(broker_url)
    job_id = request_score(first, folder)
    assert request_score(second, folder) == job_id
    assert relay(first, first_sender, job_id) == CHUNKS
    second_sender.send_task(broker.SWEEP)  # as beat does, by the other queue: its worker relays
    with running_worker(second_url, folder / "second", broker_url=broker_url) as worker:
        wait_until(lambda: progress(second, job_id).state == "done", "the job is done")
        wait_until(lambda: len(worker.of_event("chunk is done")) == CHUNKS, "each chunk is in the log")
        assert progress(first, job_id).rows_done == 0

        with running_worker(first_url, folder / "first", broker_url=broker_url):
            await_workers(first, 1)
            wait_until(lambda: progress(first, job_id).state == "done", "the other job is done, by its messages")
        assert len(worker.of_event("chunk is done")) == CHUNKS
        assert not worker.of_event("no chunk is free")
    assert written(first) == written(second) == rows_by_own_broker(prepare, folder)


def test_redis(prepare: Prepare, redis_url: str, tmp_path: Path) -> None:
    check_two_databases(prepare, redis_url, tmp_path)


def test_rabbitmq(prepare: Prepare, rabbitmq_url: str, tmp_path: Path) -> None:
    check_two_databases(prepare, rabbitmq_url, tmp_path)
