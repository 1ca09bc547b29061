"""The average promise through the flows: what is stored, how it decides, and that it is as the core computes it."""

from collections.abc import Iterator
from dataclasses import astuple
from decimal import Decimal

import numpy as np
import pytest

from tests.flows.decisions.abers import agreeing_decisions
from tests.flows.decisions.test_certified import CLASSES, POINTS, cells_of
from tests.running import EXAMPLES, Bench
from tests.templates import fresh_bench
from venn_admit.core.calibrators.average.policy import (
    NO_TRAFFIC,
    AveragePolicy,
    ClassSelection,
    UnlabelledCells,
    select_on_average,
)
from venn_admit.core.calibrators.certified.policies import admit
from venn_admit.core.calibrators.promises import Promised
from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.calibrators.venn_abers.certified_cells import LabelledCells
from venn_admit.core.calibrators.venn_abers.scores import network_score
from venn_admit.errors import InvalidInputError
from venn_admit.flows.calibration.calibrate import Calibrated
from venn_admit.methods.venn_abers.make import MadeByAbers
from venn_admit.store.calibrations import venn_abers
from venn_admit.store.database.engine import connect

TRAFFIC = """
SELECT network_logits, document_id, external_id
FROM exemplar
WHERE id IN (SELECT exemplar_id FROM job_row) AND split = 'scored'
"""


@pytest.fixture(scope="module")
def reviews(server_url: str, few_reviews_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Real data, not yet calibrated."""
    with fresh_bench(server_url, few_reviews_template, tmp_path_factory.mktemp("average")) as bench:
        yield bench


@pytest.fixture(scope="module")
def calibrated(reviews: Bench) -> Calibrated:
    return reviews.calibrate_abers("reviews", score="network", promise="average")


def average_of(made: Calibrated) -> AveragePolicy:
    assert isinstance(made.made, MadeByAbers)
    assert made.made.average is not None
    return made.made.average


def test_the_thresholds_are_those_of_the_stored_points(reviews: Bench, calibrated: Calibrated) -> None:
    evidence, label, keys = cells_of(reviews.rows(POINTS, id=calibrated.calibration_id))
    assert len(keys) == calibrated.mc_count + calibrated.vp_count
    expected = select_on_average(
        LabelledCells(evidence, label, keys), NO_TRAFFIC, class_count=CLASSES, alpha=Decimal("0.1")
    )
    assert None not in expected.policy.thresholds
    assert average_of(calibrated) == expected
    with connect(reviews.engine) as connection:
        assert venn_abers.average_of(connection, calibrated.calibration_id) == expected
        assert venn_abers.policy_of(connection, calibrated.calibration_id) == expected.policy
        assert venn_abers.certificate_of(connection, calibrated.calibration_id) is None
    assert reviews.rows("SELECT * FROM report.policy_v2 WHERE calibration = :id", id=calibrated.calibration_id) == []
    query = "SELECT * FROM report.average_policy_v1 WHERE calibration = :id ORDER BY class"
    shown = reviews.rows(query, id=calibrated.calibration_id)
    assert [tuple(getattr(row, field) for field in ClassSelection.__slots__) for row in shown] == [
        astuple(one) for one in expected.classes
    ]


@pytest.mark.parametrize("require_full_match", [True, False])
def test_one_point_is_that_of_a_job_and_replays(
    reviews: Bench, calibrated: Calibrated, *, require_full_match: bool
) -> None:
    policy = average_of(calibrated).policy
    scores, stored, alone = agreeing_decisions(reviews, require_full_match=require_full_match)
    reached = admit(scores.column("score"), scores.column("predicted").astype(int), policy)
    assert [row.reason != "score below threshold" for row in stored] == reached.tolist()
    for row, found in zip(stored, alone, strict=True):
        assert found.policy is not None
        assert not found.policy.is_certified
        assert (found.policy.promise, found.policy.threshold) == (Promised.AVERAGE, policy.thresholds[row.predicted])
    assert {row.reason for row in stored} == {None, "score below threshold"} | (
        {"q below K"} if require_full_match else set()
    )


def test_more_is_admitted_than_pointwise_and_enough_is_right(reviews: Bench, calibrated: Calibrated) -> None:
    """The data are a sample, so .9 is met up to chance."""
    scores = reviews.score("reviews", EXAMPLES / "test.npz", weighted=None, calibration_id=calibrated.calibration_id)
    admitted = np.array([row["decision"] is not None for row in scores.table.to_pylist()])
    predicted = scores.column("predicted").astype(int)
    with np.load(EXAMPLES / "test.npz") as arrays:
        label = arrays["y"]
    assert admitted.mean() > 0.85
    for number in range(CLASSES):
        assert (predicted == label)[admitted & (predicted == number)].mean() >= 0.88


def test_recent_traffic_is_in_the_batch(reviews: Bench, calibrated: Calibrated) -> None:
    """Without what calibrates, which somebody may score too."""
    with np.load(EXAMPLES / "ood.npz") as arrays:
        part = {name: arrays[name][200:500] for name in ("r", "f", "y")}
    reviews.score("reviews", reviews.write("later.npz", part), weighted=None)
    made = average_of(reviews.calibrate_abers("reviews", score="network", promise="average"))
    evidence, label, keys = cells_of(reviews.rows(POINTS, id=calibrated.calibration_id))
    rows = reviews.rows(TRAFFIC)
    logits = np.array([row.network_logits for row in rows], dtype=np.float32)
    points = CellPoints(logits.argmax(axis=1), np.zeros(len(rows), dtype=np.int64), network_score(logits))
    traffic = UnlabelledCells(points, [row.document_id or row.external_id for row in rows])
    expected = select_on_average(
        LabelledCells(evidence, label, keys), traffic, class_count=CLASSES, alpha=Decimal("0.1")
    )
    assert len(rows) >= 300
    assert made == expected


def test_weights_are_refused(reviews: Bench, calibrated: Calibrated) -> None:
    with pytest.raises(InvalidInputError, match="asked for the average promise, in which weights have no part"):
        reviews.request_score("reviews", EXAMPLES / "test.npz", calibration_id=calibrated.calibration_id)
