"""What is forgotten is gone everywhere, and everything else is as if it had never been there."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from tests.flows.removal.conftest import Make
from tests.patience import wait_until
from tests.running import Bench, Golden
from venn_admit.errors import Code, ConflictError, InvalidInputError, NotFoundError, OutdatedError
from venn_admit.flows.data.export import Export, export
from venn_admit.flows.decisions.hnsw_index import audit
from venn_admit.flows.decisions.score_one import PointScorer
from venn_admit.flows.removal import batches
from venn_admit.flows.removal import forget as forgetting
from venn_admit.flows.removal.forget import forget
from venn_admit.flows.reports.methods_table import methods_table
from venn_admit.flows.reports.report import report, report_standing
from venn_admit.report.calibration.common.history import change_text
from venn_admit.report.calibration.wording import settings_text
from venn_admit.store.database.engine import connect
from venn_admit.store.exemplars import classifiers
from venn_admit_client.records.data import Forgetting

# Everything that rests on training exemplars or calibrates, by the ids of users.
RESULTS = {
    "lists": """
        SELECT exemplar.external_id, neighbours.distances, array(
            SELECT near.external_id FROM unnest(neighbour_ids) WITH ORDINALITY AS listed (id, place)
            INNER JOIN exemplar AS near ON listed.id = near.id ORDER BY listed.place) AS near
        FROM neighbours INNER JOIN exemplar ON neighbours.exemplar_id = exemplar.id
        INNER JOIN classifier ON exemplar.classifier_id = classifier.id WHERE classifier.name = :name ORDER BY 1""",
    "approximations": """
        SELECT exemplar.external_id, predicted, match_count, distance, logits
        FROM approximation INNER JOIN exemplar ON approximation.exemplar_id = exemplar.id
        INNER JOIN classifier ON exemplar.classifier_id = classifier.id WHERE classifier.name = :name ORDER BY 1""",
    "points": """
        SELECT calibrator.method, exemplar.external_id, point.split, point.label, predicted, match_count, bin, distance,
            point.score, admit_set::text
        FROM calibration_point AS point INNER JOIN exemplar ON point.exemplar_id = exemplar.id
        INNER JOIN calibrator ON point.calibrator_id = calibrator.id
        INNER JOIN classifier ON exemplar.classifier_id = classifier.id
        WHERE classifier.name = :name AND valid_until IS NULL ORDER BY 1, 2""",
    "snapshots": """
        SELECT calibrator.method, calibration.mc_count, calibration.vp_count, s_hat, omega, quartiles
        FROM calibration INNER JOIN calibrator ON calibration.calibrator_id = calibrator.id
        INNER JOIN classifier ON calibrator.classifier_id = classifier.id
        LEFT JOIN band_radius ON calibration.id = band_radius.calibration_id
        INNER JOIN snapshot_quartiles ON calibration.id = snapshot_quartiles.calibration_id
        WHERE classifier.name = :name AND calibration.state = 'current' ORDER BY 1""",
    "steps": """
        SELECT cell, venn_abers_step.score, lower, upper_at, upper_above FROM venn_abers_step
        INNER JOIN calibrator ON venn_abers_step.calibrator_id = calibrator.id
        INNER JOIN classifier ON calibrator.classifier_id = classifier.id
        WHERE classifier.name = :name AND valid_until IS NULL ORDER BY 1, 2""",
}

LOCKED = """
SELECT count(*) FROM pg_locks INNER JOIN pg_database ON pg_locks.database = pg_database.oid
WHERE datname = current_database() AND locktype = 'advisory' AND classid = 1 AND granted = :granted
"""


def results(bench: Bench, name: str) -> dict[str, list[tuple[Any, ...]]]:
    """All that is compared, to the last bit: floats are printed by Postgres so that they are read back the same."""
    return {what: [tuple(row) for row in bench.rows(query, name=name)] for what, query in RESULTS.items()}


def forgotten(bench: Bench, *ids: str, documents: tuple[str, ...] = (), **asked: Any) -> Forgetting:
    done = forget(bench.workspace(chunk_rows=7), "edge", ids, documents, **asked)
    for job_id in done.jobs:
        bench.run(job_id)
    return done


def recalibrated(bench: Bench, golden: Golden, name: str) -> None:
    bench.calibrate_abers(name, score="network")
    bench.calibrate(name, **golden.settings)


def often_listed(bench: Bench, count: int) -> list[str]:
    rows = bench.rows(
        "SELECT exemplar.external_id FROM exemplar INNER JOIN ("
        " SELECT unnest(neighbour_ids) AS id, count(*) AS lists FROM neighbours GROUP BY 1) AS listed USING (id)"
        " ORDER BY lists DESC, id LIMIT :count",
        count=count,
    )
    return [row.external_id for row in rows]


def test_afterwards_everything_is_as_if_it_had_been_built_without(edge: Bench, golden: Golden, make: Make) -> None:
    ids = [*often_listed(edge, 3), "mc-4", "mc-9", "vp-1", "score-2"]
    before = results(edge, "edge")
    done = forgotten(edge, *ids)
    assert (done.exemplars, done.ids, done.unknown, done.is_done) == (len(ids), len(ids), 0, True)
    assert done.jobs
    assert done.recalibrations_due == 2
    recalibrated(edge, golden, "edge")
    make(edge, "other", frozenset(ids))
    after, other = results(edge, "edge"), results(edge, "other")
    for what in RESULTS:
        assert after[what] == other[what], what
    assert after["points"] != before["points"]
    assert after["lists"] != before["lists"]


def test_only_the_lists_that_named_it_are_searched_again(edge: Bench) -> None:
    (gone,) = often_listed(edge, 1)
    query = (
        "SELECT exemplar_id FROM neighbours WHERE neighbour_ids @> array["
        "(SELECT id FROM exemplar WHERE external_id = :id)] ORDER BY 1"
    )
    held = [row.exemplar_id for row in edge.rows(query, id=gone)]
    lists = "SELECT exemplar_id, xmin::text AS written FROM neighbours"
    written = {row.exemplar_id: row.written for row in edge.rows(lists)}
    done = forgotten(edge, gone)
    (job_id,) = done.jobs
    assert [
        row.exemplar_id for row in edge.rows("SELECT exemplar_id FROM job_row WHERE job_id = :id ORDER BY 1", id=job_id)
    ] == held
    now = {row.exemplar_id: row.written for row in edge.rows(lists)}
    assert [key for key in sorted(now) if now[key] != written[key]] == held


def test_a_point_of_the_current_calibrations_is_followed_by_calibrations_without_it(
    edge: Bench, golden: Golden, make: Make
) -> None:
    before = edge.rows("SELECT id, mc_count, vp_count FROM calibration ORDER BY id")
    done = forgotten(edge, "mc-4", "vp-1")
    assert (done.calibrations_renewed, done.recalibrations_due, done.jobs) == (2, 0, ())
    # Those before keep their numbers and their counts.
    stored = edge.rows("SELECT id, mc_count, vp_count FROM calibration ORDER BY id")
    assert stored[: len(before)] == before
    assert [(row.mc_count, row.vp_count) for row in stored] == [(500, 0), (500, 500), (499, 499), (499, 0)]
    make(edge, "other", frozenset({"mc-4", "vp-1"}))
    after, other = results(edge, "edge"), results(edge, "other")
    assert after["points"] == other["points"]
    assert after["steps"] == other["steps"]
    # Decisions are made at once, by the new one, and not by the one before.
    decided = PointScorer(edge.workspace()).score("edge", golden["score_r"][0].astype(np.float32))
    assert decided.calibration_id == stored[2].id
    with pytest.raises(
        OutdatedError, match=r"2 of the .* points of calibration .* have since been forgotten"
    ) as raised:
        edge.request_score("edge", edge.write("one.npz", golden.exemplars("score")), calibration_id=before[-1].id)
    assert raised.value.code is Code.POINTS_FORGOTTEN


def test_of_many_those_that_train_go_last_so_that_decisions_go_on(
    edge: Bench, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH", 2)
    before = edge.value("SELECT max(id) FROM calibration")
    done = forget(edge.workspace(chunk_rows=7), "edge", [*often_listed(edge, 3), "mc-4", "mc-9", "vp-1"])
    assert (done.exemplars, done.recalibrations_due) == (6, 2)
    assert edge.value("SELECT count(*) FROM forgotten_point") > 0
    decided = PointScorer(edge.workspace()).score("edge", golden["score_r"][0].astype(np.float32))
    assert decided.calibration_id > before


def test_a_transaction_deletes_a_limited_number_of_lists(edge: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = often_listed(edge, 3)
    monkeypatch.setattr(batches, "MOST_LISTS", 1)
    with connect(edge.engine) as connection:
        classifier = classifiers.by_name(connection, "edge")
        found = batches.batches_of(connection, classifier, [first, second, "mc-4", third, "vp-1"])
    assert found == [["mc-4", "vp-1"], [first], [second], [third]]
    done = forgotten(edge, first, second, "mc-4", third)
    assert done.exemplars == 4
    assert len(edge.rows("SELECT id FROM job WHERE kind = 'approximate' AND created_at > now() - interval '1 min'")) > 2


def test_where_no_calibration_can_follow_nothing_is_decided_before_there_is_one(edge: Bench, golden: Golden) -> None:
    query = "SELECT external_id FROM exemplar WHERE split = 'vp' AND label <> 0"
    scorer = PointScorer(edge.workspace())
    scorer.score("edge", golden["score_r"][0].astype(np.float32))
    gone = [row.external_id for row in edge.rows(query)]
    done = forgotten(edge, *gone)
    assert (done.calibrations_renewed, done.recalibrations_due) == (0, 2)
    for each in (scorer, PointScorer(edge.workspace())):
        with pytest.raises(OutdatedError, match="nothing is decided by it any more"):
            each.score("edge", golden["score_r"][0].astype(np.float32))


def test_an_id_that_was_forgotten_does_not_come_back_unnoticed(edge: Bench, golden: Golden, make: Make) -> None:
    forgotten(edge, "mc-4", "score-2")
    with pytest.raises(ConflictError, match=r"id 'mc-4': it was forgotten on .* leave the row out") as raised:
        edge.ingest("edge", edge.write("mc.npz", golden.exemplars("mc")), "mc")
    assert raised.value.code is Code.FORGOTTEN
    with pytest.raises(ConflictError, match="id 'score-2': it was forgotten on"):
        edge.request_score("edge", edge.write("score.npz", golden.exemplars("score")))
    # In another classifier, the id is another exemplar.
    make(edge, "other")


def test_documents_are_forgotten_with_all_their_exemplars(edge: Bench, golden: Golden) -> None:
    bench = edge
    rows = golden.exemplars("score", slice(3))
    tokens = {**rows, "id": np.array(["a-0", "a-1", "b-0"]), "doc": np.array(["doc-a", "doc-a", "doc-b"])}
    bench.ingest("edge", bench.write("tokens.npz", tokens), "train")
    done = forgotten(bench, documents=("doc-a",))
    assert (done.ids, done.exemplars) == (1, 2)
    assert [
        row.external_id for row in bench.rows("SELECT external_id FROM exemplar WHERE document_id IS NOT NULL")
    ] == ["b-0"]
    assert forgotten(bench, documents=("doc-a",)).forgotten_before == 1
    more = {**rows, "id": np.array(["a-2", "b-1", "c-0"]), "doc": np.array(["doc-a", "doc-b", "doc-c"])}
    with pytest.raises(ConflictError, match="id 'a-2': its document 'doc-a' was forgotten"):
        bench.ingest("edge", bench.write("more.npz", more), "train")


def test_of_unknown_ids_nothing_is_removed_unless_they_may_be_missing(edge: Bench) -> None:
    count = edge.value("SELECT count(*) FROM exemplar")
    with pytest.raises(NotFoundError, match="has no exemplar or document 'nobody'; nothing was removed"):
        forgotten(edge, "mc-4", "nobody")
    assert edge.value("SELECT count(*) FROM exemplar") == count
    done = forgotten(edge, "mc-4", "nobody", missing_ok=True)
    assert (done.ids, done.unknown, done.exemplars) == (1, 1, 1)
    with pytest.raises(InvalidInputError, match="expected 1 to 100,000 ids of exemplars or documents, got 0"):
        forgotten(edge)
    # Again, it is known to have been forgotten.
    assert (forgotten(edge, "mc-4").forgotten_before, edge.value("SELECT count(*) FROM exemplar")) == (1, count - 1)


def test_a_dry_run_counts_what_goes_and_changes_nothing(edge: Bench) -> None:
    ids = [*often_listed(edge, 1), "mc-4", "score-2"]
    query = (
        "SELECT relname AS name FROM pg_class WHERE relnamespace = 'venn_admit'::regnamespace"
        " AND relkind IN ('r', 'p') AND NOT relispartition"
    )
    tables = [row.name for row in edge.rows(query)]

    def counts() -> dict[str, int]:
        return {table: edge.value(f"SELECT count(*) FROM {table}") for table in tables}

    before = counts()
    would = forgotten(edge, *ids, dry_run=True)
    assert (counts(), would.is_done, would.jobs) == (before, False, ())
    done = forgotten(edge, *ids)
    assert (would.rows, would.exemplars, would.recalibrations_due) == (
        done.rows,
        done.exemplars,
        done.recalibrations_due,
    )
    after = counts()
    assert before["exemplar"] - after["exemplar"] == done.rows["exemplar"] == 3
    assert before["decision"] - after["decision"] == done.rows["decision"]
    assert before["label_event"] - after["label_event"] == done.rows["label_event"]


def test_while_a_job_scores_it_is_refused_and_names_the_job(edge: Bench, golden: Golden) -> None:
    rows = golden.exemplars("score", slice(4))
    rows["id"] = np.array([f"new-{number}" for number in range(4)])
    request = edge.request_score("edge", edge.write("new.npz", rows))
    with pytest.raises(ConflictError, match=rf"jobs of 'edge' are running: {request.job_id} \(score\); wait") as raised:
        forgotten(edge, "mc-4")
    assert (raised.value.code, raised.value.parameters["job"]) == (Code.JOBS_RUNNING, request.job_id)
    edge.run(request.job_id)
    assert forgotten(edge, "mc-4").exemplars == 1


def test_it_waits_for_jobs_and_holds_new_ones_back(
    edge: Bench, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = golden.exemplars("score", slice(4))
    first, second = (
        edge.write(f"{name}.npz", {**rows, "id": np.array([f"{name}-{number}" for number in range(4)])})
        for name in ("first", "second")
    )
    monkeypatch.setattr(forgetting, "_HOLD_SECONDS", 600.0)
    request = edge.request_score("edge", first)
    with ThreadPoolExecutor(2) as threads:
        forgets = threads.submit(forgotten, edge, "score-2", wait=True)
        wait_until(lambda: edge.value(LOCKED, granted=True), "it holds new jobs back")
        scores = threads.submit(edge.request_score, "edge", second)
        wait_until(lambda: edge.value(LOCKED, granted=False), "a new job waits")
        assert not forgets.done()
        edge.run(request.job_id)
        assert forgets.result().exemplars == 1
        edge.run(scores.result().job_id)


def test_jobs_that_do_not_end_in_time_are_awaited_again(
    edge: Bench, golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = golden.exemplars("score", slice(4))
    request = edge.request_score("edge", edge.write("new.npz", {**rows, "id": np.array(list("abcd"))}))
    real = time.sleep

    def sleep_until_it_is_done(_: float) -> None:
        monkeypatch.setattr(time, "sleep", real)
        assert not edge.value(LOCKED, granted=True), "others go on meanwhile"
        edge.run(request.job_id)

    monkeypatch.setattr(forgetting, "_HOLD_SECONDS", 0.0)
    monkeypatch.setattr(time, "sleep", sleep_until_it_is_done)
    assert forgotten(edge, "mc-4", wait=True).exemplars == 1


def test_lists_that_are_searched_anew_are_counted_among_the_rows(edge: Bench) -> None:
    tables = ("neighbours", "approximation")

    def counts() -> dict[str, int]:
        return {table: edge.value(f"SELECT count(*) FROM {table}") for table in tables}

    before = counts()
    done = forget(edge.workspace(chunk_rows=7), "edge", often_listed(edge, 1))
    after = counts()
    assert {table: done.rows[table] for table in tables} == {table: before[table] - after[table] for table in tables}
    assert done.rows["neighbours"] > 1


def test_what_reads_a_calibration_that_lost_points_says_so_or_refuses(edge: Bench) -> None:
    calibration_id = edge.value("SELECT max(id) FROM calibration")
    whole = report(edge.workspace(), "edge", calibration_id=calibration_id)
    standing = report_standing(edge.engine, "edge", calibration_id)
    out = edge.folder / "points.csv"
    points = export(edge.engine, "edge", Export.CALIBRATION, out, calibration_id=calibration_id)
    assert (whole.snapshot.forgotten, points.forgotten) == (0, 0)
    assert "forgotten" not in settings_text(whole)

    forgotten(edge, "mc-4", "vp-1")
    lost = report(edge.workspace(), "edge", calibration_id=calibration_id)
    assert lost.snapshot.forgotten == 2
    assert "; reason: test. 2 points of the calibration have since been forgotten; " in settings_text(lost)
    assert report_standing(edge.engine, "edge", calibration_id) != standing
    left = export(edge.engine, "edge", Export.CALIBRATION, out, calibration_id=calibration_id)
    assert (left.rows, left.forgotten) == (points.rows - 2, 2)
    with pytest.raises(OutdatedError, match=r"2 of the 1,000 points of calibration \d+ .* have since been forgotten"):
        methods_table(edge.workspace(), "edge", calibration_id)


def test_the_history_says_that_points_were_forgotten(edge: Bench, golden: Golden) -> None:
    """Also that one had arrived that was forgotten later, and nothing of points that both snapshots lost."""
    one = {key: values[:1] for key, values in golden.exemplars("mc").items()} | {"id": np.array(["arrived"])}
    edge.ingest("edge", edge.write("one.npz", one), "mc")
    edge.calibrate("edge", **golden.settings)
    forgotten(edge, "mc-4", "arrived", "vp-1")
    history = report(edge.workspace(), "edge", calibration_id=None).history
    assert [change_text(made) for made in history] == [
        "3 points forgotten",
        "1 point arrived",
        *(change_text(made) for made in history[2:]),
    ]
    assert [made.points and made.points.forgotten for made in history] == [3, 0, 0, None]


def test_the_index_is_not_audited_by_a_calibration_that_lost_points(edge: Bench) -> None:
    gone = [row.external_id for row in edge.rows("SELECT external_id FROM exemplar WHERE split = 'vp' AND label <> 0")]
    forgotten(edge, *gone)
    with pytest.raises(OutdatedError, match="nothing is decided by it any more"):
        audit(edge.workspace(), "edge", sample=2, ef_searches=[40])
