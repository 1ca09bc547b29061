"""Venn-Abers through the flows: calibrated, decided on in jobs and at once, replayed, recalibrated by difference."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tests.core.calibrators.venn_abers.isotonic import bounds_of
from tests.flows.decisions.abers import STORED
from tests.running import EXAMPLES, Bench, Golden
from tests.templates import CopyOf, Filled, fresh_bench
from venn_admit.core.approximation.knn import softmax
from venn_admit.core.calibrators.venn_abers.reliability import ReliabilityModel
from venn_admit.core.evidence import ABERS, EVIDENCE
from venn_admit.errors import InvalidInputError, NotReadyError
from venn_admit.flows.calibration.calibrate import request_approximations
from venn_admit.flows.decisions.replay import replay
from venn_admit.flows.decisions.score_one import PointScorer
from venn_admit.flows.reports.report import report
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import consistent_view, transaction
from venn_admit.store.decisions import reports
from venn_admit.store.exemplars import approximations, classifiers

ALPHA = 0.1
CLASSES = 2
# Rises with what each feature says for the prediction.
MODEL: dict[str, Any] = {
    "mean": [0.0] * 8,
    "sd": [1.0] * 8,
    "coefficients": [1.0, 0.5, 0.25, 0.5, 1.0, -0.25, 0.25, -1.0],
    "intercept": -0.5,
    "points": 60,
}
RELIABILITY = ReliabilityModel.of_document({"median_d": 4.0, "models": {"all": MODEL}})
MC = """
SELECT point.predicted, point.label, point.score, point.match_count
FROM calibration_point AS point
INNER JOIN calibrator ON calibrator.id = calibrator_id
WHERE calibrator.method = 'venn-abers' AND valid_until IS NULL
"""
FIRST_STEPS = """
SELECT cell, score, lower, upper_at, upper_above FROM venn_abers_step WHERE valid_from = 1 ORDER BY cell, score
"""


@pytest.fixture(scope="module")
def reviews(server_url: str, few_reviews_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Real data, calibrated by Venn-Abers last, with the network's score."""
    with fresh_bench(server_url, few_reviews_template, tmp_path_factory.mktemp("abers")) as bench:
        bench.calibrate_abers("reviews", score="network")
        yield bench


def test_scores_of_a_job_are_those_of_isotonic_regression(reviews: Bench) -> None:
    """Refitted for each point in rational numbers, on what SQL says of mc."""
    table = reviews.score("reviews", EXAMPLES / "test.npz", weighted=None).table
    mc = reviews.rows(MC)
    predicted, label = np.array([row.predicted for row in mc]), np.array([row.label for row in mc])
    score = np.array([row.score for row in mc])
    with np.load(EXAMPLES / "test.npz") as arrays:
        logits = arrays["f"].astype(np.float32)
    rows = table.to_pylist()
    probabilities = softmax(logits)
    for row, probability in list(zip(rows, probabilities, strict=True))[::25]:
        assert row["predicted"] == int(np.argmax(probability))
        assert row["score"] == probability.max()
        cell = predicted == row["predicted"]
        lower, upper = bounds_of(score[cell], label[cell] == row["predicted"], row["score"])
        assert (Fraction(row["lower"]), Fraction(row["upper"])) == (Fraction(float(lower)), Fraction(float(upper)))
        admitted = row["lower"] >= 1 - ALPHA
        assert row["decision"] == (row["predicted"] if admitted else None)
        assert row["reason"] == (None if admitted else "probability below threshold")
    assert {row["method"] for row in rows} == {"venn-abers"}
    assert {row["upweight"] for row in rows} == {1.0}
    for column in ("set", "band_size", "threshold", "category_size"):
        assert table.column(column).null_count == len(rows)
    assert 0.5 < sum(row["decision"] is not None for row in rows) / len(rows) < 0.8


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("require_full_match", [True, False])
def test_one_point_is_that_of_a_job_and_replays(reviews: Bench, *, weighted: bool, require_full_match: bool) -> None:
    path = EXAMPLES / "ood.npz"
    with np.load(path) as arrays:
        part = {name: arrays[name][:300] for name in ("r", "f", "y")}
    scores = reviews.score(
        "reviews", reviews.write("part.npz", part), weighted=weighted, require_full_match=require_full_match
    )
    stored = reviews.rows(STORED, job_id=scores.request.job_id)
    scorer = PointScorer(reviews.workspace())
    assert len(stored) == 300
    for row, vector, logits in zip(stored, part["r"].astype(np.float32), part["f"].astype(np.float32), strict=True):
        found = scorer.score("reviews", vector, logits=logits, weighted=weighted, require_full_match=require_full_match)
        assert found.fields == {field: row._mapping[field] for field in found.fields}
    assert ("q below K" in {row.reason for row in stored}) == require_full_match
    assert any(row.upweight > 1 for row in stored) == weighted
    for row in stored[::30]:
        assert replay(reviews.workspace(), row.id).differing == ()


def test_is_plain_unless_asked_for(reviews: Bench) -> None:
    with np.load(EXAMPLES / "test.npz") as arrays:
        vector, logits = arrays["r"][0].astype(np.float32), arrays["f"][0].astype(np.float32)
    scorer = PointScorer(reviews.workspace())
    found = scorer.score("reviews", vector, logits=logits)
    assert found.fields == scorer.score("reviews", vector, logits=logits, weighted=False).fields


def test_a_vector_without_logits_is_refused(reviews: Bench) -> None:
    with pytest.raises(InvalidInputError, match="expected the network's logits with the vector"):
        PointScorer(reviews.workspace()).score("reviews", np.zeros(128, dtype=np.float32))


def prepare(bench: Bench) -> None:
    golden = Golden("edge")
    golden.prepare(bench, "edge")
    bench.adopt("edge", golden.parameters, float(golden["eta_loc"]), RELIABILITY)
    bench.run(request_approximations(bench.workspace(), "edge"))


@pytest.fixture(scope="module")
def prepared(filled: Filled) -> str:
    return filled(prepare)


@pytest.fixture
def edge(copy_of: CopyOf, prepared: str) -> Bench:
    """The classifier `edge` of the golden file, approximated but not calibrated, with a reliability score."""
    return copy_of(prepared)


@pytest.mark.parametrize("score", ["auto", "reliability"])
def test_parameters_without_the_score_are_refused(bench: Bench, score: str) -> None:
    Golden("edge").prepare(bench, "edge")
    with pytest.raises(NotReadyError, match="have no reliability score"):
        bench.calibrate_abers("edge", score=score)
    assert bench.value("SELECT count(*) FROM calibrator") == 0
    assert bench.calibrate_abers("edge", score="network").mc_count > 0


def test_the_score_is_asked_for_or_chosen(edge: Bench) -> None:
    kinds = {score: edge.calibrate_abers("edge", score=score).calibration_id for score in ("network", "reliability")}
    chosen = edge.calibrate_abers("edge", score="auto").calibration_id
    rows = {row.calibration_id: row for row in edge.rows("SELECT * FROM score_choice")}
    for score, calibration_id in kinds.items():
        assert (rows[calibration_id].score, rows[calibration_id].documents) == (score, None)
    choice = rows[chosen]
    better = choice.reliability_share - choice.network_share > choice.standard_error
    assert choice.score == ("reliability" if better else "network")
    assert 0 <= choice.network_share <= 1
    assert choice.documents == edge.value("SELECT mc_count FROM calibration WHERE id = :id", id=chosen)
    assert edge.rows("SELECT method, score FROM calibrator ORDER BY id") == [
        ("venn-abers", "network"),
        ("venn-abers", "reliability"),
        ("venn-abers", "auto"),
    ]


def test_decisions_by_the_reliability_score_replay(edge: Bench) -> None:
    edge.calibrate_abers("edge", score="reliability", q_bins=(0, 2))
    path = edge.write("score.npz", Golden("edge").exemplars("score"))
    scores = edge.score("edge", path, weighted=False)
    rows = edge.rows(STORED, job_id=scores.request.job_id)
    assert len({row.score for row in rows}) > 50
    for row in rows[::20]:
        assert replay(edge.workspace(), row.id).differing == ()


CELL = """
SELECT count(*) AS size, count(*) FILTER (WHERE predicted = label) AS correct
FROM calibration_point
WHERE valid_until IS NULL AND split = 'mc' AND predicted = :predicted AND bin = :bin
"""


def test_a_replay_shows_what_the_decision_rests_on(edge: Bench) -> None:
    edge.calibrate_abers("edge", score="reliability", q_bins=(0, 2))
    scores = edge.score("edge", edge.write("score.npz", Golden("edge").exemplars("score")), weighted=False)
    has_steps_on_both_sides = False
    for row in edge.rows(STORED, job_id=scores.request.job_id)[::20]:
        basis = replay(edge.workspace(), row.id).basis
        assert basis is not None
        logit = sum(w * x for w, x in zip(MODEL["coefficients"], basis.features.values(), strict=True)) - 0.5
        assert row.score == pytest.approx(1 / (1 + np.exp(-logit)), rel=1e-12)
        (cell,) = edge.rows(CELL, predicted=row.predicted, bin=basis.q_bin)
        assert (basis.score_kind, basis.cell_size, basis.cell_right) == ("reliability", cell.size, cell.correct)
        assert basis.q_bin == int(row.match_count >= 2)
        assert (basis.own.lower, basis.own.upper, basis.threshold) == (row.lower, row.upper, 0.9)
        assert basis.step_from == row.step_score <= row.score < basis.step_below
        assert (basis.before is None) == (basis.step_from == -np.inf)
        assert (basis.after is None) == (basis.step_below == np.inf)
        if basis.before is not None and basis.after is not None:
            has_steps_on_both_sides = True
            assert basis.before.lower <= basis.own.lower <= basis.after.lower
            assert basis.before.upper <= basis.own.upper <= basis.after.upper
    assert has_steps_on_both_sides


def test_what_was_decided_before_there_was_a_field_lacks_it(edge: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay computes it, and it is no difference; another value is."""
    edge.calibrate_abers("edge", score="network")
    scores = edge.score("edge", edge.write("score.npz", Golden("edge").exemplars("score")), weighted=False)
    row = edge.rows(STORED, job_id=scores.request.job_id)[0]
    first, younger, *others = ABERS.fields
    monkeypatch.setitem(
        EVIDENCE, ABERS.method, replace(ABERS, fields=(first, replace(younger, nullable=True), *others))
    )
    for value, differing in (("NULL", ()), ("0.5", ("step_score",))):
        with transaction(edge.engine) as connection:
            connection.exec_driver_sql("ALTER TABLE abers_evidence ALTER COLUMN step_score DROP NOT NULL")
            connection.exec_driver_sql(f"UPDATE abers_evidence SET step_score = {value} WHERE decision_id = {row.id}")
        found = replay(edge.workspace(), row.id)
        assert (found.computed["step_score"], found.differing) == (row.step_score, differing)


def test_traffic_is_seen_by_the_knn_whatever_decided_on_it(edge: Bench) -> None:
    bands = edge.calibrate("edge", **Golden("edge").settings)
    edge.calibrate_abers("edge", score="network")
    edge.score("edge", edge.write("score.npz", Golden("edge").exemplars("score")), weighted=None)
    with consistent_view(edge.engine) as connection:
        classifier = classifiers.by_name(connection, "edge")
        calibration = calibrations.by_id(connection, classifier, bands.calibration_id)
        recent = reports.recent_points(connection, classifier, calibration.knn_parameters_id, calibration)
        ids, view = approximations.read_approximations(
            connection, classifier, recent.exemplar_ids, calibration.parameters_id
        )
    order = np.argsort(ids)
    np.testing.assert_array_equal(ids[order], recent.exemplar_ids)
    np.testing.assert_array_equal(view.predicted[order], recent.approximation.predicted)
    decided = edge.rows("SELECT predicted FROM decision ORDER BY exemplar_id")
    assert [row.predicted for row in decided] != recent.approximation.predicted.tolist()
    assert report(edge.workspace(), "edge", calibration_id=bands.calibration_id).traffic is not None


def test_a_new_snapshot_writes_what_changed_and_leaves_the_old_one_readable(edge: Bench) -> None:
    first = edge.calibrate_abers("edge", score="network")
    again = edge.calibrate_abers("edge", score="network")
    assert (again.changed.closed, again.changed.opened) == (0, 0)
    assert edge.value("SELECT max(valid_from) FROM venn_abers_step") == 1
    scores = edge.score("edge", edge.write("score.npz", Golden("edge").exemplars("score")), weighted=False)
    before = edge.rows(FIRST_STEPS)

    more = Golden("edge").exemplars("mc", slice(0, 40))
    more |= {"id": np.array([f"more-{row}" for row in range(40)]), "y": (more["y"] + 1) % 3}
    edge.ingest("edge", edge.write("more.npz", more), "mc")
    third = edge.calibrate_abers("edge", score="network")
    assert (third.changed.closed, third.changed.opened) == (0, 40)
    assert third.mc_count == first.mc_count + 40
    assert edge.value("SELECT count(*) FROM venn_abers_step WHERE valid_from = 3") > 0
    assert edge.rows(FIRST_STEPS) == before
    for row in edge.rows(STORED, job_id=scores.request.job_id)[::20]:
        assert replay(edge.workspace(), row.id).differing == ()
