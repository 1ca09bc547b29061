"""What decisions on one point keep of snapshots: it saves statements, and never outlives the snapshot in use."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event

from tests.patience import PATIENCE_SECONDS, wait_until
from tests.running import Bench
from venn_admit.core.types import Float32Array
from venn_admit.errors import InvalidInputError, NotFoundError, NotReadyError
from venn_admit.flows.data.settings import rename
from venn_admit.flows.decisions import point_search
from venn_admit.flows.decisions.score_one import PointDecision, PointScorer
from venn_admit.methods import recent
from venn_admit.methods.recent import Recent
from venn_admit.methods.venn_abers.method import AbersPointDecider
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import transaction


def vector(bench: Bench) -> tuple[Float32Array, Float32Array]:
    with np.load(bench.folder / "score.npz") as arrays:
        return arrays["r"][0].astype(np.float32), arrays["f"][0].astype(np.float32)


def decided(bench: Bench, scorer: PointScorer, name: str = "edge") -> PointDecision:
    given, logits = vector(bench)
    return scorer.score(name, given, logits=logits)


def same(one: PointDecision, other: PointDecision) -> bool:
    return (one.calibration_id, one.fields, list(one.neighbours)) == (
        other.calibration_id,
        other.fields,
        list(other.neighbours),
    )


def test_the_snapshot_in_use_decides_whatever_was_kept(edge: Bench) -> None:
    scorer = PointScorer(edge.workspace())
    first = decided(edge, scorer)
    edge.calibrate_abers("edge", score="network")
    second = decided(edge, scorer)
    assert second.calibration_id > first.calibration_id
    assert "score" in second.fields
    edge.calibrate_abers("edge", score="network", q_bins=(0, 1))
    third = decided(edge, scorer)
    for found in (first, second, third):
        assert found.neighbours
    assert same(third, decided(edge, PointScorer(edge.workspace())))
    # The setting that was in use first is so again, with its snapshot.
    edge.calibrate_abers("edge", score="network")
    fourth = decided(edge, scorer)
    assert same(fourth, decided(edge, PointScorer(edge.workspace())))
    assert fourth.calibration_id > third.calibration_id


def test_a_classifier_is_found_by_the_name_that_it_has(edge: Bench) -> None:
    scorer = PointScorer(edge.workspace())
    before = decided(edge, scorer)
    rename(edge.engine, "edge", "other")
    after = decided(edge, scorer, "other")
    assert same(after, before)
    assert after.classifier.name == "other"
    for name in ("edge", "no\nname"):
        with pytest.raises(NotFoundError, match="no classifier is named"):
            decided(edge, scorer, name)
    edge.create("edge", dimension=3)
    with pytest.raises(NotReadyError, match="has no calibration yet"):
        decided(edge, scorer)


def statements(bench: Bench) -> tuple[list[str], list[object]]:
    """The statements and the connections from now on."""
    said: list[str] = []
    connections: list[object] = []

    @event.listens_for(bench.engine, "before_cursor_execute")
    def note(_connection: Any, _cursor: Any, statement: str, *_others: Any) -> None:
        said.append(statement)

    event.listen(bench.engine, "checkout", lambda connection, *_others: connections.append(connection))
    return said, connections


def test_after_the_first_point_two_statements_and_the_search_are_left(edge: Bench) -> None:
    edge.calibrate_abers("edge", score="network")
    scorer = PointScorer(edge.workspace())
    first = decided(edge, scorer)
    said, connections = statements(edge)
    assert same(decided(edge, scorer), first)
    assert ["calibrator.chosen_at" in said[0], "attributes" in said[1]] == [True] * 2
    assert (len(said), len(connections)) == (2, 1)


@pytest.mark.parametrize("neighbours", [None, 3, 0])
def test_with_a_copy_to_search_one_statement_is_left(
    edge: Bench, monkeypatch: pytest.MonkeyPatch, neighbours: int | None
) -> None:
    monkeypatch.setattr(point_search, "POINTS_BY_SCAN", 1)
    edge.calibrate_abers("edge", score="network")
    given, logits = vector(edge)
    by_scan = PointScorer(edge.workspace()).score("edge", given, logits=logits, neighbours=neighbours)
    scorer = PointScorer(edge.workspace())
    decided(edge, scorer)
    (version,) = scorer._search._versions.values()
    wait_until(lambda: version.passes is not None, "the training exemplars are copied")
    said, connections = statements(edge)
    found = scorer.score("edge", given, logits=logits, neighbours=neighbours)
    assert same(found, by_scan)
    assert (len(said), len(connections)) == (1, 1)
    assert "calibrator.chosen_at" in said[0]
    with pytest.raises(InvalidInputError, match="logits"):
        scorer.score("edge", given, neighbours=neighbours)


def test_a_snapshot_that_is_deleted_meanwhile_is_replaced_by_the_newer_one(
    edge: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = PointScorer(edge.workspace())
    before = edge.value("SELECT max(id) FROM calibration")
    edge.calibrate_abers("edge", score="network")
    old, (given, logits) = edge.value("SELECT max(id) FROM calibration"), vector(edge)
    look_up = AbersPointDecider.look_up
    deleted: list[int] = []

    def after_another(self: AbersPointDecider, *arguments: Any) -> Any:
        found = look_up(self, *arguments)
        if not deleted:
            edge.calibrate_abers("edge", score="network")
            calibrator = edge.value("SELECT calibrator_id FROM calibration ORDER BY id DESC LIMIT 1")
            with transaction(edge.engine) as connection:
                calibrations.delete_old(connection, calibrator, keep=1)
            deleted.append(old)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(AbersPointDecider, "look_up", after_another)
        found = scorer.score("edge", given, logits=logits, weighted=True)
    assert edge.value("SELECT count(*) FROM calibration WHERE id = :id", id=old) == 0
    assert found.calibration_id > old > before
    assert same(found, PointScorer(edge.workspace()).score("edge", given, logits=logits, weighted=True))


def test_of_those_who_ask_at_once_one_reads() -> None:
    kept: Recent[str, int] = Recent()
    read: list[str] = []
    together = threading.Barrier(8)

    def length() -> int:
        read.append("a")
        return 7

    def ask(_: int) -> int:
        together.wait(PATIENCE_SECONDS)
        return kept.get("a", length)

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ask, range(8))) == [7] * 8
    assert read == ["a"]


def test_what_could_not_be_read_is_read_by_the_next() -> None:
    kept: Recent[str, int] = Recent()
    assert kept.known("a") is None
    with pytest.raises(ZeroDivisionError):
        kept.get("a", lambda: 1 // 0)
    assert kept.known("a") is None
    assert kept.get("a", lambda: 7) == kept.known("a") == 7


def test_only_the_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "MOST", 2)
    read: list[str] = []
    kept: Recent[str, int] = Recent()

    def length(key: str) -> int:
        def count() -> int:
            read.append(key)
            return len(key)

        return kept.get(key, count)

    assert [length(key) for key in ("a", "bb", "a", "ccc", "a", "bb")] == [1, 2, 1, 3, 1, 2]
    assert read == ["a", "bb", "ccc", "bb"]
