"""Whatever happens to workers, broker and Postgres, jobs end complete, with the rows of an undisturbed run.

The workers have homes of their own and share a database and a broker over TCP, as on machines of their own.
`make soak` does the same for longer.
"""

import functools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from tests.faults.conftest import SIZE
from tests.faults.disturbances import RELEASE_ALL, Disturbances
from tests.faults.fleet import Fleet, Sweeper, running_fleet
from tests.faults.server import Server
from tests.faults.workload import Comparison, Row, compare, written
from tests.patience import wait_until
from tests.workers.processes import await_workers
from venn_admit.store.database.engine import connect, transaction

pytestmark = pytest.mark.processes

KILLS = 15
# The number for each of the three jobs.
CHUNKS = SIZE.rows // SIZE.chunk_rows
# Chunks that are done last: as many as all disturbances of a test wait for.
RESERVE = 66


@pytest.fixture
def fleet(url: str, tmp_path: Path, broker_url: str | None) -> Iterator[Fleet]:
    with running_fleet(url, tmp_path, broker_url, workers=3) as fleet:
        yield fleet


@pytest.fixture
def counts() -> Counter[str]:
    return Counter()


@pytest.fixture
def disturbances(fleet: Fleet, faults_server: Server, counts: Counter[str]) -> Disturbances:
    return Disturbances(fleet, faults_server, random.Random(0), counts)


@pytest.fixture
def check(fleet: Fleet, calm: Counter[Row]) -> Callable[[], None]:
    """Wait for the jobs' end, and see that they left the rows they should."""

    def checked() -> None:
        with transaction(fleet.engine) as connection:
            connection.execute(text(RELEASE_ALL))
        fleet.await_jobs()
        assert compare(calm, written(fleet.engine)) == Comparison(calm.total(), lost=0, doubled=0, differing=0)

    return checked


@contextmanager
def blocked(fleet: Fleet) -> Iterator[None]:
    """Within it, each worker has a chunk that does not end."""
    with connect(fleet.engine) as connection, connection.begin():
        connection.execute(text("LOCK TABLE neighbours, decision IN ACCESS EXCLUSIVE MODE"))
        wait_until(lambda: len(claimed(fleet.engine)) == len(fleet.workers), "each worker has a chunk")
        yield


def test_two_machines_share_a_job(fleet: Fleet, check: Callable[[], None]) -> None:
    with Sweeper(fleet.engine, fleet.app, copies=1):
        with blocked(fleet):
            pass
        check()
    for worker in fleet.workers:
        wait_until(functools.partial(worker.of_event, "chunk is done"), "the worker has a share in the jobs")
        assert list((worker.home / "cache").glob("support-*"))


def test_workers_are_killed(
    fleet: Fleet, disturbances: Disturbances, counts: Counter[str], check: Callable[[], None]
) -> None:
    disturbances.hold_back(RESERVE)
    with Sweeper(fleet.engine, fleet.app, copies=1):
        while counts.total() < KILLS and disturbances.await_chunks(3):
            (disturbances.kill_worker if counts.total() % 5 == 4 else disturbances.kill_child)()
        check()
    assert counts == {"processes killed": KILLS - KILLS // 5, "workers killed": KILLS // 5}


def test_messages_are_lost_and_doubled(
    fleet: Fleet, disturbances: Disturbances, counts: Counter[str], check: Callable[[], None]
) -> None:
    with Sweeper(fleet.engine, fleet.app, copies=2) as sweeper:
        with blocked(fleet):
            wait_until(lambda: sweeper.duplicates == 3 * CHUNKS, "each message was sent twice")
            disturbances.flush()
        check()
    assert counts["messages lost"] > CHUNKS
    assert sweeper.duplicates > 3 * CHUNKS
    wait_until(lambda: fleet.logged("no chunk is free") > CHUNKS, "the messages that are too many lead to nothing")


def test_postgres_is_restarted(fleet: Fleet, disturbances: Disturbances, check: Callable[[], None]) -> None:
    disturbances.hold_back(RESERVE)
    with Sweeper(fleet.engine, fleet.app, copies=1):
        assert disturbances.await_chunks(5)
        disturbances.restart_postgres()
        assert disturbances.await_chunks(5)
        check()


def test_connections_to_the_broker_are_cut(
    fleet: Fleet, broker_url: str | None, disturbances: Disturbances, check: Callable[[], None]
) -> None:
    disturbances.hold_back(RESERVE)
    with Sweeper(fleet.engine, fleet.app, copies=1):
        assert disturbances.await_chunks(5)
        assert fleet.proxy.cut()
        assert disturbances.await_chunks(5)
        if broker_url is not None:  # a query of the database that is never answered is waited for by its process
            assert fleet.proxy.silence()
            assert disturbances.await_chunks(5)
        with fleet.proxy.down():
            await_workers(fleet.engine, 0)
        check()
        await_workers(fleet.engine, len(fleet.workers))


def test_a_worker_that_cannot_acknowledge_takes_messages_again(
    fleet: Fleet, broker_url: str | None, check: Callable[[], None]
) -> None:
    with Sweeper(fleet.engine, fleet.app, copies=1):
        with ExitStack() as away:
            with blocked(fleet):
                held = claimed(fleet.engine)
                away.enter_context(fleet.proxy.down())
            if broker_url is not None:  # else the result itself cannot be stored
                wait_until(lambda: not held & claimed(fleet.engine), "the chunks are done")
        check()
        await_workers(fleet.engine, len(fleet.workers))
    assert all(worker.process.poll() is None for worker in fleet.workers)


def claimed(engine: Engine) -> set[tuple[int, int]]:
    """The chunks that are being computed."""
    with connect(engine) as connection:
        rows = connection.execute(text("SELECT job_id, ordinal FROM job_chunk WHERE state = 'running'"))
        return {(row.job_id, row.ordinal) for row in rows}


def test_the_late_write_of_a_paused_worker_is_refused(
    fleet: Fleet, disturbances: Disturbances, counts: Counter[str], check: Callable[[], None]
) -> None:
    disturbances.hold_back(RESERVE)
    with Sweeper(fleet.engine, fleet.app, copies=1):
        assert disturbances.await_chunks(5)
        disturbances.pause()
        check()
    assert counts == {"workers paused": 1, "late writes refused": 1}


def test_rows_that_are_lost_doubled_or_other_are_told_apart() -> None:
    calm = Counter({("decision", "(1)", "a"): 1, ("decision", "(2)", "b"): 1, ("job", "(1)", "done"): 1})
    disturbed = Counter({("decision", "(1)", "a"): 2, ("job", "(1)", "failed"): 1})
    assert compare(calm, disturbed) == Comparison(rows=3, lost=1, doubled=1, differing=1)
    assert compare(calm, calm) == Comparison(rows=3, lost=0, doubled=0, differing=0)
