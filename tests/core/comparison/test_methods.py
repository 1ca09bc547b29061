"""Conf_BASE and LocalConf_BASE by the golden results and by definition; all methods together; their coverage."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venn_admit.core.approximation.knn import network_prediction, nonconformity, softmax
from venn_admit.core.comparison import split as split_conformal
from venn_admit.core.comparison.adaptive import AdaptiveRule, adaptive_sets, label_scores, uniform_draws
from venn_admit.core.comparison.adaptive_tuning import tuned_rules, tuning_part
from venn_admit.core.comparison.confidence import fit_temperature
from venn_admit.core.comparison.localized import local_thresholds
from venn_admit.core.comparison.methods import (
    ComparisonCalibration,
    ComparisonMethods,
    ComparisonPoints,
    comparison_methods,
)
from venn_admit.core.comparison.split import conformal_threshold, sets_within
from venn_admit.core.types import BoolArray, Float32Array, FloatArray, IntArray
from venn_admit.errors import InvalidInputError, NotReadyError

GOLDEN = Path(__file__).parents[2] / "golden"
ALPHA = Decimal("0.1")
SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module")
def golden() -> dict[str, npt.NDArray[Any]]:
    found: dict[str, npt.NDArray[Any]] = {}
    for name in ("sentiment", "baselines"):
        with np.load(GOLDEN / f"{name}.npz") as arrays:
            found.update(arrays)
    return found


@pytest.fixture(scope="module")
def sentiment(golden: dict[str, npt.NDArray[Any]]) -> tuple[ComparisonCalibration, ComparisonPoints]:
    """The golden rows: vp as calibration points, `score` to predict."""

    def points(split: str) -> ComparisonPoints:
        return ComparisonPoints(
            network_logits=golden[f"{split}_f"],
            knn_logits=golden[f"{split}_logits"],
            vectors=golden[f"{split}_r"].astype(np.float32),
            draws=uniform_draws([f"{split}-{row}" for row in range(len(golden[f"{split}_f"]))], seed=0),
        )

    label, vp = golden["vp_y"].astype(np.int64), points("vp")
    calibration = ComparisonCalibration(
        keys=[f"vp-{row}" for row in range(len(label))],
        label=label,
        network_logits=vp.network_logits,
        nonconformity=nonconformity(golden["vp_logits"], label),
        vectors=vp.vectors,
        draws=vp.draws,
    )
    return calibration, points("score")


def rows_of(points: ComparisonPoints, rows: IntArray) -> ComparisonPoints:
    assert points.knn_logits is not None
    assert points.vectors is not None
    return ComparisonPoints(
        points.network_logits[rows], points.knn_logits[rows], points.vectors[rows], points.draws[rows]
    )


def calibration_rows(calibration: ComparisonCalibration, rows: IntArray) -> ComparisonCalibration:
    assert calibration.nonconformity is not None
    assert calibration.vectors is not None
    return ComparisonCalibration(
        keys=[calibration.keys[row] for row in rows],
        label=calibration.label[rows],
        network_logits=calibration.network_logits[rows],
        nonconformity=calibration.nonconformity[rows],
        vectors=calibration.vectors[rows],
        draws=calibration.draws[rows],
    )


def compare(calibration: ComparisonCalibration, points: ComparisonPoints, eta_loc: float = 0.6) -> ComparisonMethods:
    return comparison_methods(calibration, points, alpha=ALPHA, eta_loc=eta_loc, seed=0)


def draw_vectors(seed: int, count: int) -> tuple[Float32Array, FloatArray]:
    """Vectors on a coarse grid, so that distances are often equal, and scores of which many are equal."""
    rng = np.random.default_rng(seed)
    return rng.integers(-2, 3, (count, 2)).astype(np.float32), rng.integers(0, 6, count) / 5


def local_threshold(query: Float32Array, support: Float32Array, score: FloatArray, eta_loc: float) -> float:
    """The definition, for one query: the smallest score at which the weights of those up to it suffice."""
    distances = [float(np.linalg.norm(query.astype(np.float64) - vector)) for vector in support]
    weights = [float(np.exp(-distance / eta_loc)) for distance in distances]
    total = sum(weights)
    for candidate in sorted(score.tolist()):
        reached = sum(weight for weight, value in zip(weights, score, strict=True) if value <= candidate)
        if reached / total >= 0.871:
            return float(candidate)
    return np.inf


def test_golden_conf_base(golden: dict[str, npt.NDArray[Any]]) -> None:
    score = nonconformity(golden["vp_logits"], golden["vp_y"].astype(np.int64))
    threshold = conformal_threshold(score, ALPHA)
    assert threshold == pytest.approx(float(golden["conf_base_threshold"]), abs=1e-9)
    predicted, included = sets_within(golden["score_logits"], threshold)
    np.testing.assert_array_equal(included, golden["conf_base_set"])
    np.testing.assert_array_equal(predicted, golden["score_predicted"])


def test_golden_local_conf(golden: dict[str, npt.NDArray[Any]]) -> None:
    score = nonconformity(golden["vp_logits"], golden["vp_y"].astype(np.int64))
    queries, support = golden["score_r"].astype(np.float32), golden["vp_r"].astype(np.float32)
    eta_loc = float(golden["eta_loc"])
    thresholds = local_thresholds(queries, support, score, alpha=ALPHA, eta_loc=eta_loc)
    np.testing.assert_allclose(thresholds, golden["local_conf_threshold"], rtol=0, atol=1e-9)
    _, included = sets_within(golden["score_logits"], thresholds)
    np.testing.assert_array_equal(included, golden["local_conf_set"])


@given(seed=SEEDS, count=st.integers(1, 40), eta_loc=st.sampled_from([0.05, 0.7, 3.0, 1e3]))
@settings(max_examples=80, deadline=None)
def test_local_thresholds_match_the_definition(seed: int, count: int, eta_loc: float) -> None:
    support, score = draw_vectors(seed, count)
    queries, _ = draw_vectors(seed + 1, 8)
    # An alpha that no ratio of small whole numbers of equal weights comes to.
    found = local_thresholds(queries, support, score, alpha=Decimal("0.129"), eta_loc=eta_loc)
    expected = [local_threshold(query, support, score, eta_loc) for query in queries]
    np.testing.assert_array_equal(found, expected)


def test_local_thresholds_of_far_points() -> None:
    """All weights but the nearest's underflow."""
    support = np.array([[0.0], [1.0], [1e30]], dtype=np.float32)
    score = np.array([0.3, 0.2, 0.1])
    query = np.array([[5e4]], dtype=np.float32)
    assert local_thresholds(query, support, score, alpha=ALPHA, eta_loc=1e-3).tolist() == [0.2]


@pytest.mark.parametrize("memory_budget", [1, 2**23])
def test_local_thresholds_do_not_depend_on_the_batch(golden: dict[str, npt.NDArray[Any]], memory_budget: int) -> None:
    support, score = golden["vp_r"].astype(np.float32), golden["vp_d"]
    queries = golden["score_r"].astype(np.float32)[:150]
    expected = local_thresholds(queries, support, score, alpha=ALPHA, eta_loc=0.6)
    for rows in (np.arange(150)[::-1], np.arange(70, 71)):
        found = local_thresholds(queries[rows], support, score, alpha=ALPHA, eta_loc=0.6, memory_budget=memory_budget)
        np.testing.assert_array_equal(found, expected[rows])


@pytest.mark.parametrize(("count", "expected"), [(0, np.inf), (8, np.inf), (9, 9.0), (10, 10.0), (19, 18.0)])
def test_conformal_threshold(count: int, expected: float) -> None:
    scores = np.random.default_rng(0).permutation(np.arange(1.0, count + 1))
    assert conformal_threshold(scores, ALPHA) == expected


@given(seed=SEEDS, class_count=st.integers(2, 6))
@settings(max_examples=30, deadline=None)
def test_sets_within_match_the_definition(seed: int, class_count: int) -> None:
    rng = np.random.default_rng(seed)
    logits = rng.integers(-2, 3, (20, class_count)).astype(np.float64)
    thresholds = rng.random(20)
    predicted, included = sets_within(logits, thresholds)
    for row in range(20):
        pi = softmax(logits[row : row + 1])[0]
        assert predicted[row] == pi.argmax()
        expected = {known for known in range(class_count) if 1 - pi[known] <= thresholds[row]}
        assert set(np.flatnonzero(included[row])) == expected | {predicted[row]}


def test_sets_within_do_not_depend_on_blocks(
    golden: dict[str, npt.NDArray[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    predicted, included = sets_within(golden["vp_logits"], golden["vp_d"])
    monkeypatch.setattr(split_conformal, "BLOCK_ELEMENTS", 14)
    found_predicted, found_included = sets_within(golden["vp_logits"], golden["vp_d"])
    np.testing.assert_array_equal(found_predicted, predicted)
    np.testing.assert_array_equal(found_included, included)


def test_all_methods(
    golden: dict[str, npt.NDArray[Any]], sentiment: tuple[ComparisonCalibration, ComparisonPoints]
) -> None:
    calibration, points = sentiment
    found = compare(calibration, points)
    conf, adaptiveness, size, aps, local, corrected = found.sets
    names = [sets.name for sets in found.sets]
    assert names == ["Conf_BASE", "RAPS adaptiveness", "RAPS size", "APS", "LocalConf_BASE", "LocalConf corrected"]
    np.testing.assert_array_equal(conf.included, golden["conf_base_set"])
    np.testing.assert_array_equal(local.included, golden["local_conf_set"])
    for sets in (conf, local, corrected):
        np.testing.assert_array_equal(sets.predicted, golden["score_predicted"])
    for sets in (adaptiveness, size, aps):
        np.testing.assert_array_equal(sets.predicted, network_prediction(points.network_logits))
    for sets in found.sets:
        assert sets.included[np.arange(500), sets.predicted].all()
        assert 50 < (sets.included.sum(axis=1) == 1).sum() < 500

    logits, label, draws = calibration.network_logits, calibration.label, calibration.draws
    parameters = found.parameters
    assert parameters.temperature == fit_temperature(logits, label)
    scores = label_scores(logits, label, draws, parameters.temperature)
    assert parameters.aps == AdaptiveRule(1, 0.0, conformal_threshold(scores.unpenalised, ALPHA))
    tuning = tuning_part(calibration.keys, seed=0)
    assert parameters.raps == tuned_rules(
        logits, draws, scores, tuning, temperature=parameters.temperature, alpha=ALPHA
    )
    for sets, rule in ((adaptiveness, parameters.raps.adaptiveness), (size, parameters.raps.size)):
        expected = adaptive_sets(points.network_logits, points.draws, parameters.temperature, rule)
        np.testing.assert_array_equal(sets.included, expected)


def test_each_raps_has_its_own_rule(golden: dict[str, npt.NDArray[Any]]) -> None:
    """On ten classes, where they differ; the network's logits stand in for the KNN's, and for the vectors."""
    logits, label, scored = golden["ten_f_cal"], golden["ten_y_cal"], golden["ten_f"]
    calibration = ComparisonCalibration(
        keys=[str(row) for row in range(len(label))],
        label=label,
        network_logits=logits,
        nonconformity=nonconformity(logits, label),
        vectors=logits,
        draws=golden["ten_u_cal"],
    )
    found = compare(calibration, ComparisonPoints(scored, scored.astype(np.float64), scored, golden["ten_u"]))
    parameters = found.parameters
    sets = {method.name: method.included for method in found.sets}
    rules = {
        "APS": parameters.aps,
        "RAPS size": parameters.raps.size,
        "RAPS adaptiveness": parameters.raps.adaptiveness,
    }
    for name, rule in rules.items():
        expected = adaptive_sets(scored, golden["ten_u"], parameters.temperature, rule)
        np.testing.assert_array_equal(sets[name], expected)
    assert sets["RAPS size"].sum() != sets["RAPS adaptiveness"].sum()


def test_a_points_sets_do_not_depend_on_the_others(
    sentiment: tuple[ComparisonCalibration, ComparisonPoints],
) -> None:
    calibration, points = sentiment
    rows = np.random.default_rng(0).permutation(500)[:90]
    together, alone = compare(calibration, points), compare(calibration, rows_of(points, rows))
    assert alone.parameters == together.parameters
    for some, every in zip(alone.sets, together.sets, strict=True):
        np.testing.assert_array_equal(some.included, every.included[rows])


def test_the_order_of_the_calibration_points_does_not_matter(
    sentiment: tuple[ComparisonCalibration, ComparisonPoints],
) -> None:
    calibration, points = sentiment
    rows = np.random.default_rng(1).permutation(len(calibration.label))
    turned = calibration_rows(calibration, rows)
    found, expected = compare(turned, points), compare(calibration, points)
    assert found.parameters == expected.parameters
    for some, every in zip(found.sets, expected.sets, strict=True):
        np.testing.assert_array_equal(some.included, every.included)


@pytest.mark.parametrize("count", [1, 2, 8])
def test_too_few_calibration_points_for_the_rank(
    count: int, sentiment: tuple[ComparisonCalibration, ComparisonPoints]
) -> None:
    """Thresholds are infinite and sets whole, but for LocalConf_BASE's, whose weights always reach 1 - alpha."""
    calibration, points = sentiment
    found = compare(calibration_rows(calibration, np.arange(count)), points)
    for sets in found.sets:
        assert sets.included.all() or sets.name == "LocalConf_BASE"
    assert (found.parameters.conf_threshold, found.parameters.raps.size.threshold) == (np.inf, np.inf)


def test_no_calibration_points(sentiment: tuple[ComparisonCalibration, ComparisonPoints]) -> None:
    calibration, points = sentiment
    none = np.empty(0, dtype=np.int64)
    with pytest.raises(NotReadyError, match="ingest held-out data"):
        compare(calibration_rows(calibration, none), points)
    assert points.vectors is not None
    with pytest.raises(NotReadyError, match="ingest held-out data"):
        local_thresholds(points.vectors, points.vectors[:0], np.empty(0), alpha=ALPHA, eta_loc=1.0)


def test_without_vectors_there_are_the_methods_on_the_network(
    sentiment: tuple[ComparisonCalibration, ComparisonPoints],
) -> None:
    calibration, points = sentiment
    bare = replace(calibration, nonconformity=None, vectors=None)
    found = comparison_methods(bare, replace(points, knn_logits=None, vectors=None), alpha=ALPHA, eta_loc=None, seed=0)
    expected = compare(calibration, points)
    assert found.parameters == replace(expected.parameters, conf_threshold=None)
    assert [sets.name for sets in found.sets] == ["RAPS adaptiveness", "RAPS size", "APS"]
    for some, known in zip(found.sets, expected.sets[1:-2], strict=True):
        np.testing.assert_array_equal(some.included, known.included)
    for half in (replace(points, vectors=None), replace(points, knn_logits=None), points):
        with pytest.raises(InvalidInputError, match="or none at all"):
            compare(bare, half)


def test_arrays_that_do_not_fit_are_refused(sentiment: tuple[ComparisonCalibration, ComparisonPoints]) -> None:
    calibration, points = sentiment
    with pytest.raises(InvalidInputError, match="a key for each"):
        compare(replace(calibration, keys=calibration.keys[:5]), points)
    with pytest.raises(InvalidInputError, match="arrays of one length"):
        compare(calibration, replace(points, draws=points.draws[:5]))
    with pytest.raises(InvalidInputError, match="logits of the same classifier"):
        compare(calibration, replace(points, knn_logits=np.zeros((500, 3))))
    with pytest.raises(InvalidInputError, match="eta_loc"):
        compare(calibration, points, eta_loc=0.0)
    with pytest.raises(InvalidInputError, match="alpha"):
        comparison_methods(calibration, points, alpha=Decimal(1), eta_loc=0.6, seed=0)


def test_marginal_coverage() -> None:
    """Over 400 draws of 99 calibration points Conf_BASE and APS cover a new point with probability >= 0.9.

    The scores are continuous, so it is exactly 0.9 but for the prediction that is always in the set. The
    temperature is given, not fitted on the calibration points.
    """
    rng = np.random.default_rng(2022)
    repeats, calibrating, scored, class_count = 400, 99, 50, 6
    shares = {"Conf_BASE": 0.0, "APS": 0.0}
    for _ in range(repeats):
        label = rng.integers(class_count, size=calibrating + scored)
        logits = rng.standard_normal((len(label), class_count))
        logits[np.arange(len(label)), label] += 1.0
        draws = rng.random(len(label))
        network = logits.astype(np.float32)
        known, new = slice(calibrating), slice(calibrating, None)

        def covered(included: BoolArray, label: IntArray = label[new]) -> float:
            return float(included[np.arange(scored), label].mean())

        threshold = conformal_threshold(nonconformity(logits[known], label[known]), ALPHA)
        shares["Conf_BASE"] += covered(sets_within(logits[new], threshold)[1]) / repeats
        scores = label_scores(network[known], label[known], draws[known], 0.8)
        rule = AdaptiveRule(1, 0.0, conformal_threshold(scores.unpenalised, ALPHA))
        shares["APS"] += covered(adaptive_sets(network[new], draws[new], 0.8, rule)) / repeats
    # The standard error: of the threshold, sqrt(0.9 * 0.1 / 101), and of 50 points, over 400 repeats.
    error = np.sqrt(0.09 * (1 / 101 + 1 / scored) / repeats)
    assert 0.9 - 3 * error < shares["Conf_BASE"] < 0.9 + 3 * error
    assert shares["APS"] > 0.9 - 3 * error
