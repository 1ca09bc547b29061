"""Points that a process is asked for again and again are searched in its own copy, and nothing else changes."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from structlog.testing import capture_logs

from tests.running import Bench
from venn_admit.service.core.neighbours import one_pass
from venn_admit.service.core.neighbours.one_pass import OnePassSupport, PassNeighbours
from venn_admit.service.core.types import Float32Array
from venn_admit.service.errors import ConflictError, DatabaseError, InvalidInputError
from venn_admit.service.flows.decisions import point_search
from venn_admit.service.flows.decisions.score_one import GivenPoint, PointDecision, PointScorer
from venn_admit.service.flows.methods.shared_passes import SharedPasses
from venn_admit.service.store.exemplars.support import SupportChangedError
from venn_admit.service.store.search import nearest
from venn_admit.service.store.search.array_cache import ArrayCache

PATIENCE_SECONDS = 300
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


def await_copy() -> None:
    """Return once no thread copies any more."""
    for thread in threading.enumerate():
        if thread.name == COPYING:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()


def copied(edge: Bench, vectors: Float32Array) -> PointScorer:
    """What decides on points, once it has a copy."""
    scorer = PointScorer(edge.engine, edge.cache)
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


def refuse_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        pytest.fail("the database scanned its training exemplars")

    monkeypatch.setattr(nearest, "exact_nearest", refused)


def test_the_copy_answers_as_the_database_does(
    edge: Bench, vectors: Float32Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(point_search, "POINTS_BY_SCAN", len(vectors) + 1)
    scorer = PointScorer(edge.engine, edge.cache)
    by_scan = decided(scorer, vectors)
    decided(scorer, vectors[:1])
    await_copy()
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
    by_scan = decided(PointScorer(edge.engine, edge.cache), vectors)
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
    by_scan = decided(PointScorer(edge.engine, edge.cache), vectors[:4])
    scorer = copied(edge, vectors)
    refuse_scans(monkeypatch)
    passes: list[int] = []
    asked: list[int] = []
    all_asked = threading.Event()
    search, ask = OnePassSupport.nearest, SharedPasses.ask

    def held(support: OnePassSupport, queries: Float32Array, neighbour_count: int) -> PassNeighbours:
        passes.append(len(queries))
        assert all_asked.wait(PATIENCE_SECONDS)
        return search(support, queries, neighbour_count)

    def noted(shared: SharedPasses[Any, Any], question: Any) -> Any:
        asked.append(len(question))
        if len(asked) == len(by_scan):
            all_asked.set()
        return ask(shared, question)

    monkeypatch.setattr(OnePassSupport, "nearest", held)
    monkeypatch.setattr(SharedPasses, "ask", noted)
    with ThreadPoolExecutor(len(by_scan)) as threads:
        found = list(threads.map(lambda vector: scorer.score("edge", vector), vectors[:4]))
    assert_same(found, by_scan)
    assert sum(passes) == 4
    assert len(passes) <= 3


def test_a_large_request_takes_more_than_one_pass(
    edge: Bench, vectors: Float32Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_scan = decided(PointScorer(edge.engine, edge.cache), vectors)
    monkeypatch.setattr(point_search, "MOST_QUERIES", 3)
    scorer = copied(edge, vectors)
    refuse_scans(monkeypatch)
    assert_same(decided(scorer, vectors), by_scan)


def test_a_copy_that_cannot_be_made_is_told_and_tried_again_later(
    edge: Bench, vectors: Float32Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_scan = decided(PointScorer(edge.engine, edge.cache), vectors)
    await_copy()

    def full(*_: Any) -> None:
        raise DatabaseError("the disk is full")

    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr(ArrayCache, "support", full)
        scorer = copied(edge, vectors)
        assert_same(decided(scorer, vectors[:1]), by_scan[:1])
    assert [(log["log_level"], log["classifier"], log["error"]) for log in logs] == [
        ("warning", "edge", "the disk is full")
    ]
    decided(scorer, vectors[:1])
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
    assert issubclass(SupportChangedError, ConflictError)


def test_more_than_a_machine_might_hold_is_not_copied(edge: Bench, vectors: Float32Array) -> None:
    by_scan = decided(PointScorer(edge.engine, edge.cache), vectors)
    await_copy()
    cache = ArrayCache(edge.folder / "small", memory_budget=1)
    scorer = PointScorer(edge.engine, cache)
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
    scorer = PointScorer(edge.engine, edge.cache)
    wrong = vectors[:2].copy()
    wrong[1, 0] = np.nan
    with pytest.raises(InvalidInputError, match="not finite"):
        decided(scorer, wrong)
