"""A classifier is deleted with all that belongs to it, or a generation of it, and everything else stays as it was."""

import threading
from typing import Any

import numpy as np
import pytest

from tests.flows.removal.conftest import Make
from tests.patience import PATIENCE_SECONDS
from tests.running import Bench, Golden, run_chunk
from venn_admit.errors import Code, ConflictError, NotFoundError
from venn_admit.flows.calibration.generations import create_generation, list_generations
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.decisions.score_one import PointScorer
from venn_admit.flows.jobs.control import cancel
from venn_admit.flows.keys.keys import Refusal, authenticate, create
from venn_admit.flows.removal import batches
from venn_admit.flows.removal import delete as deleting
from venn_admit.flows.removal.delete import delete
from venn_admit.flows.removal.forget import forget
from venn_admit.store.database.engine import transaction
from venn_admit.store.database.tables import tables
from venn_admit.store.exemplars import deletion
from venn_admit_client.records.data import Deletion

TABLES = """
SELECT relname AS name FROM pg_class
WHERE relnamespace = 'venn_admit'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
    AND relname NOT IN ('alembic_version', 'audit_event')
"""


def deleted(bench: Bench, name: str, **asked: Any) -> Deletion:
    return delete(bench.workspace(), name, **asked)


def contents(bench: Bench) -> dict[str, list[str]]:
    """Every row of every table, as text, in order."""
    return {
        table.name: [row.whole for row in bench.rows(f"SELECT t::text AS whole FROM {table.name} AS t ORDER BY 1")]
        for table in bench.rows(TABLES)
    }


def test_nothing_of_it_is_left_and_nothing_else_is_touched(edge: Bench, make: Make) -> None:
    before = contents(edge)
    make(edge, "other")
    counted = deleted(edge, "other", dry_run=True)
    done = deleted(edge, "other")
    # Evidence goes with decisions, and is not counted for itself beforehand.
    assert {table: rows for table, rows in done.rows.items() if not table.endswith("_evidence")} == counted.rows
    assert (done.classifier, done.generations, done.is_done, counted.is_done) == ("other", ("other@1",), True, False)
    assert contents(edge) == before
    assert edge.value("SELECT count(*) FROM pg_class WHERE relname LIKE 'exemplar_vector_2%'") == 0
    assert not list((edge.folder / "cache").glob("support-2-*"))
    with pytest.raises(NotFoundError):
        find(edge.engine, "other")
    make(edge, "other")  # the name is free


def test_generations_go_one_by_one_and_the_first_hands_on(edge: Bench) -> None:
    for extractor in ("v2", "v3"):
        create_generation(edge.engine, "edge", extractor=extractor)
    with pytest.raises(ConflictError, match="generation 1 of 'edge' is the current one") as raised:
        deleted(edge, "edge@1")
    assert raised.value.code is Code.GENERATION_IN_USE
    with transaction(edge.engine) as connection:  # as if it were calibrated
        connection.exec_driver_sql("UPDATE classifier SET name = 'edge@1', is_current = FALSE WHERE generation = 1")
        connection.exec_driver_sql("UPDATE classifier SET name = 'edge', is_current = TRUE WHERE generation = 3")
    done = deleted(edge, "edge@1")
    assert (done.classifier, done.generations) == ("edge@1", ("edge@1",))
    left = [one.classifier for one in list_generations(edge.engine, "edge")]
    assert [(one.address, one.is_current, one.first_id) for one in left] == [
        ("edge@2", False, left[0].id),
        ("edge@3", True, left[0].id),
    ]
    made = create_generation(edge.engine, "edge", extractor="v4")
    assert made.address == "edge@4"
    assert deleted(edge, "edge").generations == ("edge@2", "edge@3", "edge@4")
    assert all(not rows for table, rows in contents(edge).items() if table not in ("api_key", "forgotten_exemplar"))


def test_what_is_forgotten_in_one_generation_is_not_taken_in_by_a_later_one(edge: Bench, golden: Golden) -> None:
    forget(edge.workspace(chunk_rows=100), "edge", ["mc-4"])
    create_generation(edge.engine, "edge")
    with pytest.raises(ConflictError, match="id 'mc-4': it was forgotten on"):
        edge.ingest("edge@2", edge.write("mc.npz", golden.exemplars("mc")), "mc")


def test_while_jobs_run_it_is_refused_and_says_how_to_go_on(edge: Bench, golden: Golden) -> None:
    rows = golden.exemplars("score", slice(4))
    rows["id"] = np.array([f"new-{number}" for number in range(4)])
    request = edge.request_score("edge", edge.write("new.npz", rows))
    for dry_run in (True, False):
        with pytest.raises(ConflictError, match=rf"are running: {request.job_id} \(score\); wait .* or cancel"):
            deleted(edge, "edge", dry_run=dry_run)
    cancel(edge.engine, request.job_id)
    assert deleted(edge, "edge").rows["job"]


def test_once_it_has_begun_the_classifier_is_not_used_any_more(
    edge: Bench, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = create(edge.engine, "its own", scope="write", classifier="edge")
    scorer = PointScorer(edge.workspace())
    vector = golden["score_r"][0].astype(np.float32)
    scorer.score("edge", vector)

    class Died(Exception):  # noqa: N818
        pass

    def die(*_: object) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(deleting, "_drop_vectors", die)
        with pytest.raises(Died):
            deleted(edge, "edge")
    for used in (
        lambda: scorer.score("edge", vector),
        lambda: PointScorer(edge.workspace()).score("edge", vector),
        lambda: edge.request_score("edge", edge.write("score.npz", golden.exemplars("score"))),
        lambda: forget(edge.workspace(chunk_rows=100), "edge", ["mc-4"]),
        lambda: edge.create("edge", dimension=2),
    ):
        with pytest.raises(ConflictError, match=r"being deleted|exists already"):
            used()
    assert authenticate(edge.engine, key.text) is Refusal.REVOKED
    assert deleted(edge, "edge").rows["exemplar"]
    assert edge.value("SELECT classifier_id FROM api_key") is None
    assert authenticate(edge.engine, key.text) is Refusal.REVOKED


def test_others_decide_and_score_meanwhile(edge: Bench, make: Make, golden: Golden) -> None:
    """Every decision of another classifier is the same while this one is deleted, and none waits for all of it."""
    make(edge, "other")
    scorer = PointScorer(edge.workspace())
    vectors = golden["score_r"].astype(np.float32)
    expected = [scorer.score("other", vector).fields for vector in vectors[:20]]
    ended, found = threading.Event(), list[list[Any]]()

    def decide() -> None:
        while not ended.is_set():
            found.append([scorer.score("other", vector).fields for vector in vectors[:20]])

    deciding = threading.Thread(target=decide)
    deciding.start()
    try:
        rows = golden.exemplars("score", slice(30))
        rows["id"] = np.array([f"new-{number}" for number in range(30)])
        request = edge.request_score("other", edge.write("new.npz", rows), chunk_rows=10)
        runner = edge.runner()
        assert run_chunk(runner, request.job_id, 0) == 10
        deleted(edge, "edge")
        assert [run_chunk(runner, request.job_id, ordinal) for ordinal in (1, 2)] == [10, 10]
    finally:
        ended.set()
        deciding.join(PATIENCE_SECONDS)
    assert not deciding.is_alive()
    assert found
    assert all(one == expected for one in found)


def test_a_name_that_nothing_has_is_not_found(edge: Bench) -> None:
    for name in ("nobody", "edge@2"):
        with pytest.raises(NotFoundError):
            deleted(edge, name)


def test_each_transaction_deletes_a_limited_number_of_rows(edge: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH", 10)
    monkeypatch.setattr(batches, "OTHER_ROWS", 10)
    told: list[int] = []
    done = deleted(edge, "edge", on_rows=told.append)
    others = sum(done.rows.get(table, 0) for table in deletion.TABLES)
    assert others > 10
    assert sum(told) == done.rows["exemplar"] + others
    assert max(told) == 10
    assert len(told) >= sum(told) / 10 > 1
    assert done.longest_seconds > 0


def test_what_goes_with_another_row_went_before_it() -> None:
    """Nothing is left that one statement would delete with a row, however many there are."""
    order = list(deletion.TABLES)
    for table in tables().tables.values():
        for key in table.foreign_keys:
            parent = key.column.table.name
            if key.ondelete == "CASCADE" and parent in order:
                assert order.index(table.name) < order.index(parent)
