"""Which chunk is claimed next: what somebody waits for overtakes scoring, and classifiers take turns."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import Engine
from structlog.testing import capture_logs

from tests.running import Bench, ChunkLimits, workspace
from tests.workers.samples import CLASS_COUNT, DIMENSION, NAME, exemplars, rows, value
from venn_admit.flows.computing import chunk_runner
from venn_admit.flows.jobs.chunks import ChunkRunner
from venn_admit.store.database.engine import at_once, transaction
from venn_admit.store.exemplars import classifiers
from venn_admit.store.search.array_cache import ArrayCache
from venn_admit.store.work import jobs, leases, new_jobs

OTHER = "other"


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    with capture_logs():
        yield


@pytest.fixture
def process(engine: Engine, tmp_path: Path) -> ChunkRunner:
    """A process that claims chunks."""
    return chunk_runner(workspace(engine, ArrayCache(tmp_path)), ChunkLimits(), worker="here")


@pytest.fixture
def other(engine: Engine, tmp_path: Path) -> str:
    """A second classifier, of which nothing but exemplars are needed."""
    bench = Bench(engine, tmp_path)
    bench.create(OTHER, dimension=DIMENSION, class_count=CLASS_COUNT, neighbour_count=10)
    bench.ingest(OTHER, bench.write("other.npz", exemplars("other", 1000)), "held-out")
    return OTHER


def add(engine: Engine, kind: str, chunks: int, name: str = NAME) -> int:
    """Record a job whose chunks have a row each."""
    is_bulk = kind == leases.BULK
    with transaction(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        query = "SELECT id FROM exemplar WHERE classifier_id = :classifier ORDER BY id LIMIT :chunks"
        ids = [row.id for row in rows(engine, query, classifier=classifier.id, chunks=chunks)]
        job = new_jobs.NewJob(
            kind,
            np.array(ids),
            None,
            calibration_id=value(engine, "SELECT id FROM calibration") if is_bulk else None,
            weighted=False if is_bulk else None,
            require_full_match=False if is_bulk else None,
        )
        return new_jobs.add_job(connection, classifier, job, chunk_rows=1)


def claimed(process: ChunkRunner, count: int, *, engine: Engine | None = None) -> list[int]:
    """The jobs of the chunks that a process claims one after the other, and finishes if there is an engine."""
    found = []
    for _ in range(count):
        claim = process.claim_next()
        if claim is None:
            break
        found.append(claim.job_id)
        if engine is not None:
            with transaction(engine) as connection:
                assert leases.finish(connection, claim)
    return found


def test_recalibration_overtakes_scoring(engine: Engine, process: ChunkRunner) -> None:
    scoring = add(engine, "score", 200)
    assert claimed(process, 5) == [scoring] * 5
    recalibration = add(engine, "approximate", 4)
    assert claimed(process, 6) == [recalibration] * 3 + [scoring] + [recalibration] + [scoring]


@pytest.mark.parametrize("kind", ["approximate", "fit"])
def test_scoring_has_its_share_beside_an_endless_series_of_others(
    engine: Engine, process: ChunkRunner, kind: str
) -> None:
    scoring = add(engine, "score", 8)
    turns = []
    while value(engine, f"SELECT state FROM job WHERE id = {scoring}") == "running":
        add(engine, kind, 3)
        turns += claimed(process, 1, engine=engine)
        assert len(turns) <= 4 * 8, "every fourth chunk is of the scoring"
    assert [turn for turn, job in enumerate(turns, 1) if job == scoring] == list(range(4, 33, 4))


def test_what_no_scoring_waits_behind_uses_up_no_turn(engine: Engine, process: ChunkRunner) -> None:
    fit = add(engine, "fit", 10)
    assert claimed(process, 10) == [fit] * 10
    scoring, recalibration = add(engine, "score", 2), add(engine, "approximate", 3)
    assert claimed(process, 5) == [scoring] + [recalibration] * 3 + [scoring]


def test_classifiers_take_turns(engine: Engine, process: ChunkRunner, other: str) -> None:
    large = add(engine, "score", 100)
    assert claimed(process, 10) == [large] * 10
    late = add(engine, "score", 5, other)
    turns = claimed(process, 12)
    assert turns.count(late) == 5
    assert not any(before == after == large for before, after in pairwise(turns[1:10]))
    assert turns[10:] == [large] * 2


def test_of_one_classifier_the_first_job_is_first(engine: Engine, process: ChunkRunner) -> None:
    first, second = add(engine, "score", 3), add(engine, "score", 3)
    assert claimed(process, 6) == [first] * 3 + [second] * 3


def test_a_series_of_small_jobs_is_not_always_first(engine: Engine, process: ChunkRunner, other: str) -> None:
    large = add(engine, "score", 10)
    turns = []
    for _ in range(20):
        add(engine, "score", 1, other)
        turns += claimed(process, 1, engine=engine)
    assert turns.count(large) == 10


def test_a_requester_that_asks_all_the_time_is_served_too(engine: Engine, process: ChunkRunner, other: str) -> None:
    large = add(engine, "score", 100)
    turns = []
    for _ in range(20):
        add(engine, "score", 5, other)
        turns += claimed(process, 1)
    assert len(turns) == 20
    assert turns.count(large) == 10


def test_chunks_that_wait_are_passed_over(engine: Engine, process: ChunkRunner, other: str) -> None:
    failing, job = add(engine, "score", 2), add(engine, "score", 2, other)
    claim = process.claim_next()
    assert claim is not None
    with transaction(engine) as connection:
        assert leases.fail(connection, claim, error="disk full", max_attempts=3, retry_seconds=600) == "pending"
    assert claimed(process, 4) == [job, failing, job]
    assert rows(engine, "SELECT ordinal FROM job_chunk WHERE state = 'pending'") == [(0,)]


def test_a_chunk_whose_claim_ran_out_is_claimed_first_of_its_job(engine: Engine, process: ChunkRunner) -> None:
    job = add(engine, "score", 3)
    with at_once(engine) as connection:
        lost = leases.claim_next(connection, bulk_first=False, worker="dead", lease_seconds=-1)
    assert lost is not None
    found = process.claim_next()
    assert found is not None
    assert (found.job_id, found.ordinal, found.attempts) == (job, lost.ordinal, 2)


def test_cancelled_jobs_have_no_turn(engine: Engine, process: ChunkRunner) -> None:
    job = add(engine, "score", 3)
    with transaction(engine) as connection:
        assert jobs.cancel(connection, job)
    assert claimed(process, 1) == []
