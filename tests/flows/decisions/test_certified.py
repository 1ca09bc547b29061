"""The certified promise through the flows: what is stored, how it decides, and that it is as the core computes it."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Row

from tests.flows.decisions.abers import agreeing_decisions
from tests.running import EXAMPLES, Bench, certificate_of
from tests.templates import fresh_bench
from venn_admit.core.calibrators.certified.certify import certify
from venn_admit.core.calibrators.certified.points import CertificatePoints
from venn_admit.core.calibrators.certified.policies import admit
from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.calibrators.venn_abers.scores import network_score
from venn_admit.core.documents import document_codes
from venn_admit.errors import InvalidInputError
from venn_admit.flows.calibration.calibrate import Calibrated
from venn_admit.flows.decisions.score_one import PointScorer
from venn_admit.store.calibrations import calibrations, venn_abers
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import classifiers

BOTH = ("predicted", "true")
CLASSES = 2
POINTS = """
SELECT point.split, point.predicted, point.match_count, point.score, point.label, document_id, external_id, admit_set
FROM calibration_point AS point
INNER JOIN exemplar ON exemplar.id = exemplar_id
INNER JOIN calibration ON calibration.calibrator_id = point.calibrator_id
WHERE calibration.id = :id AND is_in_snapshot_v1(number, valid_from, valid_until)
ORDER BY md5(external_id)
"""
KNN = """
SELECT network_logits, label, document_id, external_id
FROM exemplar
INNER JOIN approximation ON exemplar_id = id
WHERE split = 'knn' AND label IS NOT NULL
"""


@pytest.fixture(scope="module")
def reviews(server_url: str, few_reviews_template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Real data, not yet certified."""
    with fresh_bench(server_url, few_reviews_template, tmp_path_factory.mktemp("certified")) as bench:
        yield bench


@pytest.fixture(scope="module")
def certified(reviews: Bench) -> Calibrated:
    return reviews.calibrate_abers("reviews", score="network", certify=BOTH, confidence=Decimal("0.9"))


@pytest.fixture(scope="module")
def uncertified(reviews: Bench) -> Calibrated:
    """More is asked for than so few labels can show."""
    return reviews.calibrate_abers("reviews", score="network", alpha=Decimal("0.01"), certify=BOTH)


def cells_of(own: list[Row[Any]]) -> tuple[CellPoints, np.ndarray[Any, Any], list[str]]:
    points = CellPoints(
        np.array([row.predicted for row in own]),
        np.array([row.match_count for row in own]),
        np.array([row.score for row in own]),
    )
    return points, np.array([row.label for row in own]), [row.document_id or row.external_id for row in own]


def test_the_certificate_is_that_of_the_stored_points(reviews: Bench, certified: Calibrated) -> None:
    """The order from knn, tests on mc and vp, from nothing else than rows of the database."""
    rows = reviews.rows(POINTS, id=certified.calibration_id)
    assert {row.admit_set for row in rows} == {None}
    evidence, label, keys = cells_of(rows)
    assert len(keys) == certified.mc_count + certified.vp_count
    knn = reviews.rows(KNN)
    logits = np.array([row.network_logits for row in knn], dtype=np.float32)
    expected = certify(
        CertificatePoints(
            network_score(logits),
            logits.argmax(axis=1),
            np.array([row.label for row in knn]),
            document_codes([row.document_id or row.external_id for row in knn]),
        ),
        CertificatePoints(evidence.score, evidence.predicted, label, document_codes(keys)),
        class_count=CLASSES,
        alpha=Decimal("0.1"),
        kinds=BOTH,
        confidence=Decimal("0.9"),
    )
    assert expected.policy is not None
    assert certificate_of(certified) == expected
    with connect(reviews.engine) as connection:
        assert venn_abers.certificate_of(connection, certified.calibration_id) == expected
        assert venn_abers.policy_of(connection, certified.calibration_id) == expected.policy
    (row,) = reviews.rows("SELECT * FROM report.policy_v2 WHERE calibration = :id", id=certified.calibration_id)
    assert (row.is_certified, tuple(row.thresholds), row.bounded, row.share, row.documents) == (
        True,
        expected.policy.thresholds,
        "score",
        expected.share,
        expected.documents,
    )
    assert (row.certify, row.confidence, row.document_test) == (list(BOTH), Decimal("0.9"), "finite-sample")


def test_more_is_admitted_than_pointwise_and_enough_is_right(reviews: Bench, certified: Calibrated) -> None:
    """The data are a sample, so .9 is met up to chance."""
    policy = certificate_of(certified).policy
    assert policy is not None
    scores = reviews.score("reviews", EXAMPLES / "test.npz", weighted=None, calibration_id=certified.calibration_id)
    predicted, score = scores.column("predicted").astype(int), scores.column("score")
    admitted = admit(score, predicted, policy)
    rows = scores.table.to_pylist()
    assert [row["decision"] is not None for row in rows] == admitted.tolist()
    assert {row["reason"] for row in rows} == {None, "score below threshold"}
    with np.load(EXAMPLES / "test.npz") as arrays:
        label = arrays["y"]
    assert admitted.mean() > 0.7
    for classes in (predicted, label):
        for number in range(CLASSES):
            own = admitted & (classes == number)
            assert (predicted == label)[own].mean() >= 0.88


@pytest.mark.parametrize("require_full_match", [True, False])
@pytest.mark.parametrize("which", ["certified", "uncertified"])
def test_one_point_is_that_of_a_job_and_replays(
    reviews: Bench, request: pytest.FixtureRequest, which: str, *, require_full_match: bool
) -> None:
    made: Calibrated = request.getfixturevalue(which)
    certificate = certificate_of(made)
    # The one to decide by at once is the one that was asked for last.
    settings = made.method_settings
    reviews.calibrate_abers(
        "reviews", score="network", alpha=settings.alpha, certify=BOTH, confidence=certificate.confidence
    )
    _, stored, alone = agreeing_decisions(reviews, require_full_match=require_full_match)
    for row, found in zip(stored, alone, strict=True):
        assert found.policy is not None
        assert found.policy.is_certified == (certificate.policy is not None)
        if certificate.policy is not None:
            assert found.policy.threshold == certificate.policy.thresholds[row.predicted]
    reasons = {row.reason for row in stored}
    if which == "uncertified":
        assert reasons == {"policy not certified"}
        assert certificate.policy is None
    else:
        expected = {None, "score below threshold"} | ({"q below K"} if require_full_match else set())
        assert reasons == expected


def test_weights_are_refused_before_anything_is_stored(reviews: Bench, certified: Calibrated) -> None:
    jobs = reviews.value("SELECT count(*) FROM job")
    with pytest.raises(InvalidInputError, match="asked for a certificate, in which weights have no part"):
        reviews.request_score("reviews", EXAMPLES / "test.npz", calibration_id=certified.calibration_id)
    reviews.calibrate_abers("reviews", score="network", certify=BOTH, confidence=Decimal("0.9"))
    with np.load(EXAMPLES / "test.npz") as arrays, pytest.raises(InvalidInputError, match="weights have no part"):
        PointScorer(reviews.workspace()).score(
            "reviews", arrays["r"][0].astype(np.float32), logits=arrays["f"][0].astype(np.float32), weighted=True
        )
    assert reviews.value("SELECT count(*) FROM job WHERE kind = 'score'") == reviews.value(
        "SELECT count(*) FROM job WHERE kind = 'score' AND id <= :jobs", jobs=jobs
    )


def test_points_of_vp_are_known_to_the_snapshot(reviews: Bench, certified: Calibrated) -> None:
    """They say nothing about a policy that was tested on them, so traffic that repeats them is seen."""
    with connect(reviews.engine) as connection:
        classifier = classifiers.by_name(connection, "reviews")
    held = reviews.value(
        "SELECT count(*) FROM calibration_point AS point INNER JOIN exemplar ON exemplar.id = exemplar_id "
        "INNER JOIN calibration USING (calibrator_id) WHERE calibration.id = :id AND exemplar.split = 'vp' "
        "AND point.split = 'vp' AND valid_until IS NULL",
        id=certified.calibration_id,
    )
    stored = reviews.value("SELECT count(*) FROM exemplar WHERE split = 'vp' AND classifier_id = :id", id=classifier.id)
    assert held == stored == certified.vp_count > 0


def test_pointwise_calibrations_leave_vp_alone(reviews: Bench) -> None:
    made = reviews.calibrate_abers("reviews", score="network")
    assert made.vp_count == 0
    assert reviews.value("SELECT count(*) FROM certificate WHERE calibration_id = :id", id=made.calibration_id) == 0
    assert {row.split for row in reviews.rows(POINTS, id=made.calibration_id)} == {"mc"}


def test_a_certificate_goes_with_its_snapshot(reviews: Bench) -> None:
    first, second = (
        reviews.calibrate_abers("reviews", score="network", certify=("true",), confidence=Decimal("0.8"))
        for _ in range(2)
    )
    assert (second.changed.closed, second.changed.opened) == (0, 0)
    assert certificate_of(first) == certificate_of(second)
    with transaction(reviews.engine) as connection:
        calibrations.delete_old(connection, first.calibrator_id, keep=1)
    left = reviews.rows("SELECT calibration_id FROM certificate INNER JOIN calibration ON id = calibration_id")
    assert first.calibration_id not in {row.calibration_id for row in left}
    assert second.calibration_id in {row.calibration_id for row in left}
    assert len(left) == reviews.value("SELECT count(*) FROM certificate")
