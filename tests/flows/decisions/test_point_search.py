"""Points that a process is asked for again and again are searched in its own copy, and nothing else changes."""

import gc
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from structlog.testing import capture_logs

from tests.patience import PATIENCE_SECONDS, wait_until
from tests.running import Bench, workspace
from venn_admit.core.neighbours import one_pass
from venn_admit.core.neighbours.one_pass import MOST_QUERIES, OnePassSupport, PassNeighbours
from venn_admit.core.types import Float32Array
from venn_admit.errors import DatabaseError, InvalidInputError
from venn_admit.flows.decisions import point_search
from venn_admit.flows.decisions.score_one import GivenPoint, PointDecision, PointScorer
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import classifiers, support
from venn_admit.store.exemplars.support import SupportChangedError
from venn_admit.store.search import nearest
from venn_admit.store.search.array_cache import ArrayCache

COPYING = "copy of training exemplars"


@pytest.fixture
def vectors(edge: Bench) -> Float32Array:
    with np.load(edge.folder / "score.npz") as arrays:
        return np.asarray(arrays["r"], np.float32)


@pytest.fixture(autouse=True)
def few_by_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(point_search, "POINTS_BY_SCAN", 2)


def decided(scorer: PointScorer, vectors: Float32Array) -> list[PointDecision]:
    return scorer.score_each("edge", [GivenPoint(vector, None) for vector in vectors])


def scanned(edge: Bench, vectors: Float32Array) -> list[PointDecision]:
    """Decisions for which the database searches all points."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(point_search, "POINTS_BY_SCAN", len(vectors) + 1)
        return decided(PointScorer(edge.workspace()), vectors)


def await_copy() -> None:
    """Return once no thread copies any more."""
    for thread in threading.enumerate():
        if thread.name == COPYING:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()


def copied(edge: Bench, vectors: Float32Array) -> PointScorer:
    """What decides on points, once it has a copy."""
    scorer = PointScorer(edge.workspace())
    decided(scorer, vectors[:2])
    await_copy()
    return scorer


def assert_same(found: Sequence[PointDecision], expected: Sequence[PointDecision]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.fields == other.fields
        assert one.nearest is not None
        assert other.nearest is not None
        for field in ("ids", "distances", "labels", "logits"):
            np.testing.assert_array_equal(getattr(one.nearest, field), getattr(other.nearest, field))
        assert [near.external_id for near in one.neighbours] == [near.external_id for near in other.neighbours]


def waiting(scorer: PointScorer) -> list[Any]:
    """The questions that wait for the next pass."""
    ((_, version),) = scorer._search._versions.items()
    assert version.passes is not None
    return version.passes._waiting


def refuse_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        pytest.fail("the database scanned its training exemplars")

    monkeypatch.setattr(nearest, "exact_nearest", refused)


@pytest.mark.parametrize("most_queries", [MOST_QUERIES, 3])
def test_the_copy_answers_as_the_database_does(
    edge: Bench, vectors: Float32Array, monkeypatch: pytest.MonkeyPatch, most_queries: int
) -> None:
    """However many passes a request takes."""
    by_scan = scanned(edge, vectors)
    monkeypatch.setattr(point_search, "MOST_QUERIES", most_queries)
    scorer = copied(edge, vectors)
    refuse_scans(monkeypatch)
    assert_same(decided(scorer, vectors), by_scan)


def test_training_exemplars_that_arrive_are_found_at_once_and_by_the_next_copy(
    edge: Bench, vectors: Float32Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = copied(edge, vectors)
    assert list((edge.folder / "cache").glob("support-*"))
    with np.load(edge.folder / "score.npz") as arrays:
        same_place = {"r": vectors[:1], "f": arrays["f"][:1], "y": np.array([1])}
    edge.ingest("edge", edge.write("same.npz", {"id": np.array(["same"]), **same_place}), "train")
    (found,) = decided(scorer, vectors[:1])
    assert "same" in [near.external_id for near in found.neighbours]
    decided(scorer, vectors[1:2])
    await_copy()
    refuse_scans(monkeypatch)
    assert_same(decided(scorer, vectors[:1]), [found])


def test_a_point_that_a_pass_is_not_certain_of_is_searched_by_the_database(
    edge: Bench, vectors: Float32Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_scan = scanned(edge, vectors)
    scorer = copied(edge, vectors)
    scans: list[int] = []
    scan = nearest.exact_nearest

    def counted(*given: Any) -> Any:
        scans.append(1)
        return scan(*given)

    monkeypatch.setattr(nearest, "exact_nearest", counted)
    monkeypatch.setattr(one_pass, "_MOST_CANDIDATES", 0)
    assert_same(decided(scorer, vectors), by_scan)
    assert len(scans) == len(vectors)


def test_requests_at_the_same_time_share_passes(
    edge: Bench, vectors: Float32Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_scan = scanned(edge, vectors[:4])
    scorer = copied(edge, vectors)
    refuse_scans(monkeypatch)
    passes: list[int] = []
    all_asked = threading.Event()
    search = OnePassSupport.nearest

    def held(support: OnePassSupport, queries: Float32Array, neighbour_count: int) -> PassNeighbours:
        passes.append(len(queries))
        assert all_asked.wait(PATIENCE_SECONDS)
        return search(support, queries, neighbour_count)

    monkeypatch.setattr(OnePassSupport, "nearest", held)
    with ThreadPoolExecutor(len(by_scan)) as threads:
        futures = [threads.submit(scorer.score, "edge", vector) for vector in vectors[:4]]
        wait_until(lambda: len(waiting(scorer)) == len(by_scan) - 1, "all others wait")
        all_asked.set()
        found = [future.result(PATIENCE_SECONDS) for future in futures]
    assert_same(found, by_scan)
    assert passes == [1, 3]


def test_a_request_of_a_moment_ago_leaves_the_newer_copy_alone(edge: Bench, vectors: Float32Array) -> None:
    scorer = copied(edge, vectors)
    search = scorer._search
    with connect(edge.engine) as connection:
        newer = classifiers.by_name(connection, "edge")
    older = replace(newer, support_version=newer.support_version - 1, support_revision=uuid4())
    kept = search._version(newer)
    assert search._version(older) is not kept
    assert search._version(newer) is kept
    assert kept.passes is not None


def test_vectors_that_float32_does_not_tell_apart_are_searched_by_the_database(
    edge: Bench, vectors: Float32Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_scan = scanned(edge, vectors)
    with capture_logs() as logs, monkeypatch.context() as patch:
        patch.setattr(one_pass, "_MOST_CANDIDATES", 0)
        scorer = copied(edge, vectors)
    assert [told["event"] for told in logs] == ["training exemplars are too much alike to search a copy"]
    monkeypatch.setattr(OnePassSupport, "nearest", lambda *_: pytest.fail("a pass was made"))
    assert_same(decided(scorer, vectors), by_scan)


def test_without_another_thread_the_database_searches_on(
    edge: Bench, vectors: Float32Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    by_scan = scanned(edge, vectors)
    with capture_logs() as logs, monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        assert_same(decided(PointScorer(edge.workspace()), vectors), by_scan)
    (told,) = logs
    assert "can't start new thread" in told["error"]


def test_a_copy_that_cannot_be_made_is_told_and_tried_again_later(
    edge: Bench, vectors: Float32Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_scan = scanned(edge, vectors)

    def full(*_: Any) -> None:
        raise DatabaseError("the disk is full")

    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr(ArrayCache, "support", full)
        scorer = copied(edge, vectors)
        assert_same(decided(scorer, vectors[:1]), by_scan[:1])
    (told,) = logs
    assert (told["log_level"], told["classifier"]) == ("warning", "edge")
    assert "the disk is full" in told["error"]
    decided(scorer, vectors[:2])
    await_copy()
    refuse_scans(monkeypatch)
    assert_same(decided(scorer, vectors), by_scan)


def test_training_exemplars_that_change_meanwhile_are_no_failure(
    edge: Bench, vectors: Float32Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(*_: Any) -> None:
        raise SupportChangedError("the training exemplars changed")

    monkeypatch.setattr(ArrayCache, "support", changed)
    with capture_logs() as logs:
        decided(copied(edge, vectors), vectors)
    assert logs == []


def test_a_copy_leaves_no_connection_to_a_pool_that_was_disposed_of(
    edge: Bench, vectors: Float32Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = PointScorer(edge.workspace())
    is_connected, is_disposed_of = threading.Event(), threading.Event()
    size = support.size

    def size_later(*given: Any) -> int:
        is_connected.set()
        assert is_disposed_of.wait(PATIENCE_SECONDS)
        return size(*given)

    monkeypatch.setattr(support, "size", size_later)
    decided(scorer, vectors[:2])
    assert is_connected.wait(PATIENCE_SECONDS)
    edge.engine.dispose()
    is_disposed_of.set()
    await_copy()
    gc.collect()  # a connection that was left open leads to a warning, which fails the test
    refuse_scans(monkeypatch)
    decided(scorer, vectors[:2])


def test_more_than_a_machine_might_hold_is_not_copied(edge: Bench, vectors: Float32Array) -> None:
    by_scan = scanned(edge, vectors)
    cache = ArrayCache(edge.folder / "small", memory_budget=1)
    scorer = PointScorer(workspace(edge.engine, cache))
    with capture_logs() as logs:
        assert_same(decided(scorer, vectors), by_scan)
        await_copy()
    (told,) = logs
    assert told["event"] == "training exemplars are too many to copy"
    assert not list((edge.folder / "small").glob("support-*"))


def test_a_wrong_vector_is_refused_before_anything_is_searched(
    edge: Bench, vectors: Float32Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_scans(monkeypatch)
    scorer = PointScorer(edge.workspace())
    wrong = vectors[:2].copy()
    wrong[1, 0] = np.nan
    with pytest.raises(InvalidInputError, match="not finite"):
        decided(scorer, wrong)
