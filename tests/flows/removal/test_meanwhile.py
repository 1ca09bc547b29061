"""What others have begun when something is removed does not bring it back, nor decide without it."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Connection

from tests.patience import wait_until
from tests.running import Bench, ChunkLimits, Golden, chunk_ordinals, run_chunk, workspace
from venn_admit.errors import Code, ConflictError, NotFoundError, OutdatedError
from venn_admit.files.sources import FileSource
from venn_admit.flows.calibration.generations import create_generation
from venn_admit.flows.data.ingest import store_scored
from venn_admit.flows.decisions import replay as replaying
from venn_admit.flows.jobs import control
from venn_admit.flows.keys.keys import asked_by
from venn_admit.flows.removal import batches
from venn_admit.flows.removal import forget as forgetting
from venn_admit.flows.removal.delete import delete
from venn_admit.flows.removal.forget import forget
from venn_admit.flows.removal.one_generation import remove_from
from venn_admit.methods.registry import load_snapshot
from venn_admit.store.access.audit import Origin
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.decisions import monitors
from venn_admit.store.exemplars import classifiers, deletion, exemplars, generations
from venn_admit.store.search import array_cache, support_files
from venn_admit.store.search.array_cache import ArrayCache
from venn_admit.store.work import jobs
from venn_admit_client.records.data import Forgetting


def forgotten(bench: Bench, *ids: str, documents: tuple[str, ...] = ()) -> Forgetting:
    return forget(bench.workspace(chunk_rows=7), "edge", ids, documents)


def cancelled_score(bench: Bench, golden: Golden) -> int:
    rows = golden.exemplars("score", slice(4))
    rows["id"] = np.array([f"new-{number}" for number in range(4)])
    request = bench.request_score("edge", bench.write("new.npz", rows))
    control.cancel(bench.engine, request.job_id)
    return request.job_id


def test_a_job_does_not_go_on_with_a_snapshot_that_lost_points(edge: Bench, golden: Golden) -> None:
    job_id = cancelled_score(edge, golden)
    forgotten(edge, "mc-4")
    with pytest.raises(OutdatedError, match=r"1 of the .* has since been forgotten") as raised:
        control.reopen(edge.engine, job_id)
    assert raised.value.code is Code.POINTS_FORGOTTEN
    assert edge.value("SELECT state FROM job WHERE id = :id", id=job_id) == "cancelled"


def test_a_job_that_goes_on_regardless_stores_no_decision(edge: Bench, golden: Golden) -> None:
    job_id = cancelled_score(edge, golden)
    forgotten(edge, "mc-4")
    before = edge.value("SELECT count(*) FROM decision")
    with transaction(edge.engine) as connection:
        jobs.reopen(connection, job_id)
    runner = edge.runner()
    for ordinal in chunk_ordinals(edge.engine, job_id) * ChunkLimits().max_attempts:
        run_chunk(runner, job_id, ordinal)
    (job,) = edge.rows("SELECT state, error FROM job WHERE id = :id", id=job_id)
    assert job.state == "failed"
    assert "has since been forgotten" in job.error
    assert edge.value("SELECT count(*) FROM decision") == before


def while_locked(
    bench: Bench, begin: Callable[[], object], meanwhile: Callable[[Connection], object]
) -> Future[object]:
    """Have something begin while the generation is locked, and wait; return what becomes of it afterwards."""
    waiting = (
        "SELECT count(*) FROM pg_locks INNER JOIN pg_database ON pg_locks.database = pg_database.oid"
        " WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted"
    )
    with ThreadPoolExecutor(1) as threads, transaction(bench.engine) as connection:
        classifier = classifiers.by_name(connection, "edge")
        exemplars.lock_ingestion(connection, classifier)
        future = threads.submit(begin)
        wait_until(lambda: bench.value(waiting), "it waits")
        meanwhile(connection)
    return future


def begin_deletion(connection: Connection) -> None:
    deletion.begin(
        connection, [classifiers.by_name(connection, "edge")], every=True, asked=asked_by(Origin.COMMAND_LINE)
    )


@pytest.mark.parametrize("what", ["ingest", "score", "generation", "forget"])
def test_what_waited_until_the_deletion_had_begun_is_refused(edge: Bench, golden: Golden, what: str) -> None:
    rows = golden.exemplars("score", slice(4))
    rows["id"] = np.array([f"new-{number}" for number in range(4)])
    path = edge.write("new.npz", rows)
    begin: dict[str, Callable[[], object]] = {
        "ingest": lambda: edge.ingest("edge", path, "mc"),
        "score": lambda: edge.request_score("edge", path),
        "generation": lambda: create_generation(edge.engine, "edge"),
        "forget": lambda: forgotten(edge, "mc-4"),
    }
    future = while_locked(edge, begin[what], begin_deletion)
    with pytest.raises(ConflictError) as raised:
        future.result(timeout=0)
    assert raised.value.code is Code.BEING_DELETED


def test_beat_leaves_the_monitors_of_what_is_being_deleted_alone(edge: Bench) -> None:
    with transaction(edge.engine) as connection:
        assert monitors.behind(connection, unsent=True) == ["edge"]
        begin_deletion(connection)
        assert monitors.behind(connection, unsent=True) == []


def test_a_deletion_that_waited_for_a_new_generation_leaves_it_alone(edge: Bench) -> None:
    def add(connection: Connection) -> None:
        current = classifiers.by_name(connection, "edge")
        generations.add_generation(connection, current, dimension=current.dimension, extractor=None)

    future = while_locked(edge, lambda: delete(edge.workspace(), "edge"), add)
    with pytest.raises(ConflictError, match="a generation of 'edge' was added or deleted meanwhile; delete it again"):
        future.result(timeout=0)
    assert delete(edge.workspace(), "edge").generations == ("edge@1", "edge@2")
    with pytest.raises(NotFoundError, match="no classifier is named 'edge'"):
        forgotten(edge, "mc-4")


def test_forgetting_in_what_is_deleted_before_it_begins_is_no_success(edge: Bench) -> None:
    with connect(edge.engine) as connection:
        found = classifiers.by_name(connection, "edge")
    delete(edge.workspace(), "edge")
    with transaction(edge.engine) as connection, pytest.raises(NotFoundError, match="no classifier is named 'edge'"):
        exemplars.lock_ingestion_of_all(connection, found)


def test_exemplars_that_are_being_ingested_go_with_their_document(edge: Bench, golden: Golden) -> None:
    def rows(ids: list[str]) -> dict[str, Any]:
        arrays = golden.exemplars("score", slice(len(ids)))
        return {**arrays, "id": np.array(ids), "doc": np.array(["doc-a"] * len(ids))}

    edge.ingest("edge", edge.write("first.npz", rows(["a-0"])), "train")

    def ingest_more(connection: Connection) -> None:
        # Sees what is locked and was found before, and is committed only now.
        edge_now = classifiers.by_name(connection, "edge")
        source = FileSource(edge.write("more.npz", rows(["a-1", "a-2"])))
        store_scored(connection, edge_now, source)

    future = while_locked(edge, lambda: forgotten(edge, documents=("doc-a",)), ingest_more)
    done = future.result(timeout=0)
    assert isinstance(done, Forgetting)
    assert (done.ids, done.exemplars, done.forgotten_before) == (1, 3, 0)
    assert not edge.value("SELECT count(*) FROM exemplar WHERE document_id IS NOT NULL")


def test_what_ends_early_says_how_far_it_came_and_leaves_an_event(edge: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH", 1)

    def refuse(*arguments: Any, **options: Any) -> None:
        if not edge.value("SELECT count(*) FROM exemplar WHERE external_id = 'mc-4'"):
            raise ConflictError("it is busy")
        remove_from(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(forgetting, "remove_from", refuse)
        with pytest.raises(ConflictError, match="it is busy; 1 exemplars were removed before: run it again"):
            forgotten(edge, "mc-4", "mc-5")
    assert edge.value("SELECT count(*) FROM audit_event WHERE action = 'forget_exemplars'") == 1
    assert edge.cache.delete_outdated(edge.engine) == 0
    assert forgotten(edge, "mc-4", "mc-5").forgotten_before == 1


def test_a_cache_entry_that_is_written_meanwhile_is_not_kept(edge: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect(edge.engine) as connection:
        classifier = classifiers.by_name(connection, "edge")
    cache = ArrayCache(edge.folder / "another")
    write = support_files.write_support

    def write_while_it_is_forgotten(*arguments: Any) -> None:
        write(*arguments)
        forget(workspace(edge.engine, cache, chunk_rows=7), "edge", ["train-1"])

    monkeypatch.setattr(array_cache, "write_support", write_while_it_is_forgotten)
    found = cache.support(edge.engine, classifier)
    assert len(found.vectors) == len(found.ids)
    assert not list((edge.folder / "another").iterdir())


def test_a_replay_during_which_points_are_forgotten_says_so(edge: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    load, ids = load_snapshot, [f"vp-{row}" for row in range(0, 500, 9)]

    def forget_and_load(*arguments: Any) -> Any:
        monkeypatch.setattr(replaying, "load_snapshot", load)
        forgotten(edge, *ids)
        return load(*arguments)

    monkeypatch.setattr(replaying, "load_snapshot", forget_and_load)
    decision_id = edge.value("SELECT min(id) FROM decision")
    replayed = replaying.replay(edge.workspace(), decision_id)
    assert (replayed.forgotten.vp, replayed.differing) == (len(ids), ())
