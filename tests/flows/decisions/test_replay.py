"""Replay: a stored decision comes out the same, whatever has arrived since."""

import math

import numpy as np
import pytest

from tests.running import EXAMPLES, Bench, Golden
from tests.templates import CopyOf, Filled
from venn_admit.errors import NotFoundError
from venn_admit.flows.decisions.replay import replay
from venn_admit.store.database.engine import transaction


def decision_ids(bench: Bench, where: str, limit: int) -> list[int]:
    """Some decisions, spread over the exemplars."""
    rows = bench.rows(f"SELECT id FROM decision WHERE {where} ORDER BY md5(id::text) LIMIT {limit}")
    assert len(rows) == limit, where
    return [row.id for row in rows]


def assert_replayed(bench: Bench, ids: list[int]) -> None:
    for decision_id in ids:
        found = replay(bench.workspace(), decision_id)
        assert found.differing == (), (decision_id, found.stored, found.computed)
        assert found.stored == found.computed
        assert found.category_counts is not None
        assert found.category_counts.sum() == found.stored["category_size"]


KINDS = [
    "weighted AND decision IS NOT NULL",
    "weighted AND reason = 'probability below threshold'",
    "weighted AND reason = 'set not a singleton'",
    "weighted AND reason = 'band below kappa'",
    "NOT weighted AND decision IS NOT NULL",
    "NOT weighted AND reason = 'probability below threshold'",
    "require_full_match AND reason = 'q below K'",
]


def test_every_kind_of_decision_on_real_data(few_reviews: Bench) -> None:
    coarse = few_reviews.calibrate("reviews", kappa=100, delta=math.inf, q_bins=(0, 6, 20))
    for calibration_id in (coarse.calibration_id, few_reviews.value("SELECT min(id) FROM calibration")):
        for options in ({}, {"weighted": False}, {"require_full_match": True}):
            few_reviews.score("reviews", EXAMPLES / "test.npz", calibration_id=calibration_id, **options)
    chosen = [known for kind in KINDS for known in decision_ids(few_reviews, kind, 3)]
    assert_replayed(few_reviews, chosen)

    # Training exemplars, parameters and a calibration come after them.
    with np.load(EXAMPLES / "ood.npz") as arrays:
        few_reviews.ingest("reviews", few_reviews.write("more.npz", {key: arrays[key][:300] for key in "rfy"}), "train")
    few_reviews.adopt("reviews")
    few_reviews.calibrate("reviews", kappa=100)
    later = few_reviews.score("reviews", EXAMPLES / "test.npz")
    assert_replayed(few_reviews, chosen)
    assert_replayed(few_reviews, decision_ids(few_reviews, f"calibration_id = {later.request.calibration_id}", 5))


def score(bench: Bench) -> None:
    for weighted in (True, False):
        bench.score("edge", bench.write("score.npz", Golden("edge").exemplars("score")), weighted=weighted)


@pytest.fixture(scope="module")
def scored(filled: Filled, edge_template: tuple[str, Golden]) -> str:
    return filled(score, edge_template[0])


@pytest.fixture
def edge(copy_of: CopyOf, scored: str) -> Bench:
    """The classifier `edge` of the golden file, scored; three classes, equal distances, infinite thresholds."""
    return copy_of(scored)


ALIKE = """
SELECT id
FROM (
    SELECT id, row_number() OVER (
        PARTITION BY weighted, reason, predicted, match_count ORDER BY md5(id::text)
    ) AS place FROM decision
) AS placed
WHERE place <= 2
"""


def test_every_kind_of_decision_of_the_edge_cases(edge: Bench) -> None:
    """Two of each reason, class and q, with and without weights."""
    ids = [row.id for row in edge.rows(ALIKE)]
    assert len(ids) > 60
    assert_replayed(edge, ids)


def test_what_it_shows(edge: Bench) -> None:
    golden = Golden("edge")
    (decision_id,) = edge.rows(
        "SELECT decision.id FROM decision JOIN exemplar ON exemplar_id = exemplar.id"
        " WHERE external_id = 'score-5' AND weighted"
    )[0]
    found = replay(edge.workspace(), decision_id)
    assert (found.classifier.name, found.row.external_id, found.row.label) == ("edge", "score-5", golden["score_y"][5])
    nearest = [f"train-{row}" for row in golden["score_neighbours"][5]]
    assert [neighbour.external_id for neighbour, _, _ in found.near] == nearest
    np.testing.assert_allclose([distance for _, _, distance in found.near], golden["score_distances"][5], rtol=1e-6)


@pytest.mark.parametrize(
    ("table", "key", "field", "value"),
    [
        ("decision", "id", "distance", "distance * (1 + 1e-8)"),
        ("decision", "id", "lower", "0.123"),
        ("admit_evidence", "decision_id", "band_size", "array_append(band_size, 1)"),
        ("admit_evidence", "decision_id", "category_size", "category_size + 1"),
        ("decision", "id", "distance", "distance * (1 + 1e-12)"),
        ("decision", "id", "upper", "upper * (1 - 1e-12)"),
    ],
)
def test_a_decision_that_was_tampered_with_differs(edge: Bench, table: str, key: str, field: str, value: str) -> None:
    (decision_id,) = decision_ids(edge, "lower IS NOT NULL", 1)
    with transaction(edge.engine) as connection:
        connection.exec_driver_sql(f"UPDATE {table} SET {field} = {value} WHERE {key} = {decision_id}")
    again = replay(edge.workspace(), decision_id)
    assert (again.differing, again.is_rounding) == ((field,), "1e-12" in value)


def test_an_unknown_decision(bench: Bench) -> None:
    with pytest.raises(NotFoundError, match=r"there is no decision 7; name the classifier"):
        replay(bench.workspace(), 7)
