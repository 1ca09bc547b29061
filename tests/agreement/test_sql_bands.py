"""One point's evidence in SQL is that of the arrays, bit for bit: on real data, and on made-up ties."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from tests.core.scenarios import Scenario, scenarios
from tests.running import EXAMPLES, Bench
from tests.templates import Filled, fresh_bench, reviews_of
from venn_admit.core.approximation.knn import softmax
from venn_admit.core.calibrators.bands import BandRadius, bin_of
from venn_admit.core.calibrators.snapshot_rows import join_rows, rows_of_split
from venn_admit.core.calibrators.venn_admit.decide import decide
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.calibrators.venn_admit.venn import VennIndex
from venn_admit.core.reasons import Reason
from venn_admit.core.split_names import Split
from venn_admit.core.types import Approximation, CalibrationPoints, IntArray
from venn_admit.store.calibrations import bands, calibrations, calibrators
from venn_admit.store.calibrations.bands import BandEvidence
from venn_admit.store.calibrations.calibrations import Calibration, SnapshotPoints
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars import approximations, classifiers
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True)
class Case:
    """A snapshot in the database and in arrays, and points to decide on."""

    classifier: Classifier
    calibration: Calibration
    mc: SnapshotPoints
    vp: SnapshotPoints
    scored: Approximation


def evidence_of(connection: Connection, case: Case) -> list[BandEvidence]:
    bins = bin_of(case.scored.match_count, case.calibration.settings.q_bins)
    return [
        bands.band_evidence(
            connection,
            case.calibration,
            case.classifier.class_count,
            predicted=predicted,
            q_bin=q_bin,
            distance=distance,
        )
        for predicted, q_bin, distance in zip(
            case.scored.predicted.tolist(), bins.tolist(), case.scored.distance.tolist(), strict=True
        )
    ]


def decided_in_sql(case: Case, evidence: list[BandEvidence]) -> tuple[list[int], list[str | None]]:
    """Decisions and reasons, plain, from the evidence alone (sections 4 to 6)."""
    settings = case.calibration.settings
    scores = 1.0 - softmax(case.scored.logits)
    decisions: list[int] = []
    reasons: list[str | None] = []
    for found, score, predicted in zip(evidence, scores, case.scored.predicted.tolist(), strict=True):
        included = score <= found.threshold_score
        included[predicted] = True
        correct, size = found.category_count[predicted], found.category_count.sum()
        reason = None
        if found.band_size.min() < settings.kappa:
            reason = Reason.BAND_BELOW_KAPPA
        elif included.sum() > 1:
            reason = Reason.SET_NOT_SINGLETON
        elif correct / (size + 1) < float(settings.thresholds[predicted]):
            reason = Reason.PROBABILITY_BELOW_THRESHOLD
        decisions.append(-1 if reason else predicted)
        reasons.append(reason)
    return decisions, reasons


def threshold_scores(points: CalibrationPoints, case: Case, row: int) -> list[float]:
    """The rank-th smallest score of each class in a point's band, by sorting it."""
    settings, omega = case.calibration.settings, case.calibration.radius.omega
    bins = bin_of(points.match_count, settings.q_bins)
    q, d = case.scored.match_count[row : row + 1], case.scored.distance[row]
    inside = (bins == bin_of(q, settings.q_bins)) & (points.distance >= d - omega) & (points.distance <= d + omega)
    found = []
    for label in range(case.classifier.class_count):
        scores = np.sort(points.score[inside & (points.label == label)])
        rank = ceil((len(scores) + 1) * (1 - Fraction(settings.alpha)))
        found.append(float(scores[rank - 1]) if rank <= len(scores) else np.inf)
    return found


def assert_agreement(connection: Connection, case: Case) -> list[int]:
    """Bands, thresholds, categories and plain decisions; the decisions."""
    settings, omega, class_count = case.calibration.settings, case.calibration.radius.omega, case.classifier.class_count
    evidence = evidence_of(connection, case)
    admit = AdmitIndex(case.mc.points, class_count=class_count, settings=settings, omega=omega)
    venn = VennIndex(case.vp.points, case.vp.singleton, class_count=class_count, settings=settings, omega=omega)
    decided = decide(
        admit,
        venn,
        case.scored,
        settings,
        neighbour_count=case.classifier.neighbour_count,
        require_full_match=False,
        localizer=None,
    )
    shape = (len(case.scored.predicted), class_count)
    np.testing.assert_array_equal(np.reshape([one.band_size for one in evidence], shape), decided.sets.band_size)
    np.testing.assert_array_equal(np.reshape([one.threshold for one in evidence], shape), decided.sets.threshold)
    np.testing.assert_array_equal(
        np.reshape([one.threshold_score for one in evidence], shape),
        np.reshape([threshold_scores(case.mc.points, case, row) for row in range(shape[0])], shape),
    )
    # The category of what is no singleton is not looked at.
    single = np.flatnonzero(decided.sets.singleton)
    sizes = [int(evidence[row].category_count.sum()) for row in single]
    np.testing.assert_array_equal(sizes, decided.probabilities.category_size[single])
    correct = [int(evidence[row].category_count[case.scored.predicted[row]]) for row in single]
    np.testing.assert_array_equal(np.array(correct) / (np.array(sizes) + 1.0), decided.probabilities.lower[single])
    decisions, reasons = decided_in_sql(case, evidence)
    assert decisions == decided.selection.decision.tolist()
    words = [Reason.of_code(code) for code in decided.selection.reason.tolist()]
    assert reasons == words
    return decisions


@pytest.fixture(scope="module")
def bench(server_url: str, filled: Filled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A database with the calibrated classifier `reviews`, its test sets scored."""
    with fresh_bench(server_url, filled(reviews_of(4000)), tmp_path_factory.mktemp("agreement")) as found:
        for file in ("test.npz", "ood.npz"):
            found.score("reviews", EXAMPLES / file, weighted=False)
        yield found


def real_case(bench: Bench, calibration_id: int, count: int) -> Case:
    """`count` of the scored points, from both test sets."""
    with connect(bench.engine) as connection:
        classifier = classifiers.by_name(connection, "reviews")
        calibration = calibrations.by_id(connection, classifier, calibration_id)
        mc, vp = (calibrations.read_points(connection, calibration, split) for split in (Split.MC, Split.VP))
        scored = bench.rows("SELECT id FROM exemplar WHERE split = 'scored' ORDER BY id LIMIT :count", count=count)
        ids = np.array([row.id for row in scored])
        found, approximation = approximations.read_approximations(
            connection, classifier, ids, calibration.parameters_id
        )
    assert len(found) == count
    return Case(classifier, calibration, mc, vp, approximation)


def test_on_real_data(bench: Bench) -> None:
    case = real_case(bench, bench.value("SELECT min(id) FROM calibration"), 2000)
    with connect(bench.engine) as connection:
        decisions = assert_agreement(connection, case)
    assert 100 < sum(decision >= 0 for decision in decisions) < 1900


@pytest.mark.parametrize(
    "changed",
    [
        {"alpha": Decimal("0.137"), "kappa": 20},
        {"alpha": Decimal("0.05"), "delta": np.inf, "kappa": 1},
        {"q_bins": (0, 1, 6, 16, 25), "delta": 2.5, "kappa": 50},
    ],
)
def test_under_other_settings(bench: Bench, changed: dict[str, Any]) -> None:
    done = bench.calibrate("reviews", **changed)
    with connect(bench.engine) as connection:
        assert_agreement(connection, real_case(bench, done.calibration_id, 300))


def test_after_labels_changed(bench: Bench) -> None:
    """Rows of the first snapshot are closed and others open: the second is read, and only it."""
    setting: dict[str, Any] = {"kappa": 30, "delta": 0.7}
    bench.calibrate("reviews", **setting)
    with transaction(bench.engine) as connection:
        flip = "UPDATE exemplar SET label = 1 - label WHERE split IN ('mc', 'vp') AND mod(id, 5) = 0"
        connection.exec_driver_sql(flip)
    done = bench.calibrate("reviews", **setting)
    assert done.changed.closed > 500
    with connect(bench.engine) as connection:
        assert_agreement(connection, real_case(bench, done.calibration_id, 300))


@pytest.fixture(scope="module")
def exemplar_ids(bench: Bench) -> IntArray:
    """Exemplars for made-up points to refer to."""
    rows = bench.rows("SELECT id FROM exemplar WHERE split IN ('mc', 'vp') ORDER BY id LIMIT 600")
    return np.array([row.id for row in rows])


def publish(
    connection: Connection, classifier: Classifier, scenario: Scenario, exemplar_ids: IntArray
) -> tuple[Calibration, SnapshotPoints, SnapshotPoints]:
    """Store the scenario's mc and vp as a snapshot."""
    settings_now = scenario.settings
    admit = AdmitIndex(scenario.mc, class_count=scenario.class_count, settings=settings_now, omega=scenario.omega)
    view = scenario.vp_view
    sets = admit.sets(view.logits, view.predicted, view.match_count, view.distance)
    n_mc, n_vp = len(scenario.mc.label), len(scenario.vp.label)
    mc_ids, vp_ids = exemplar_ids[:n_mc], exemplar_ids[n_mc : n_mc + n_vp]
    parts = []
    for ids, points, included in ((mc_ids, scenario.mc, None), (vp_ids, scenario.vp, sets.included)):
        bins = bin_of(points.match_count, settings_now.q_bins)
        parts.append(rows_of_split(ids, points, bins, included, class_count=scenario.class_count))
    calibrator_id = calibrators.add(connection, classifier, settings_now)
    calibration_id, _ = calibrations.store(
        connection,
        calibrator_id,
        join_rows(parts),
        knn_parameters_id=connection.execute(text("SELECT min(id) FROM knn_parameters")).scalar_one(),
        reason="made up",
    )
    calibrations.add_band_radius(connection, calibration_id, BandRadius(s_hat=scenario.omega, omega=scenario.omega))
    return (
        calibrations.by_id(connection, classifier, calibration_id),
        SnapshotPoints(mc_ids, scenario.mc, np.zeros(n_mc, dtype=np.bool_)),
        SnapshotPoints(vp_ids, scenario.vp, sets.singleton),
    )


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
# 0.45 and 0.7 are such that binary arithmetic would give other ranks.
@given(scenario=scenarios(), alpha=st.sampled_from([Decimal("0.137"), Decimal("0.45"), Decimal("0.7"), None]))
def test_on_made_up_ties(bench: Bench, exemplar_ids: IntArray, scenario: Scenario, alpha: Decimal | None) -> None:
    """Coarse distances and scores, bins coarser than q, a rare class, radii from 0 to infinity."""
    if alpha is not None:
        changed = replace(scenario.settings, alpha=alpha, thresholds=(1 - alpha,) * scenario.class_count)
        scenario = replace(scenario, settings=changed)
    with connect(bench.engine) as connection, connection.begin() as everything:
        classifier = classifiers.create(
            connection,
            name=f"made up {uuid4()}",
            class_names=tuple("abcdef"[: scenario.class_count]),
            dimension=1,
            neighbour_count=scenario.neighbour_count,
            knn_share=Decimal("0.1"),
            mc_share=Decimal("0.4"),
            seed=0,
        )
        calibration, mc, vp = publish(connection, classifier, scenario, exemplar_ids)
        scored = scenario.scored
        few = Approximation(scored.logits[:20], scored.predicted[:20], scored.match_count[:20], scored.distance[:20])
        assert_agreement(connection, Case(classifier, calibration, mc, vp, few))
        everything.rollback()
