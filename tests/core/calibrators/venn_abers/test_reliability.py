"""The reliability score: the fit, its fallbacks, its bits, and its document."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from tests.core.calibrators.venn_abers.test_scores import made_up
from venn_admit.core.approximation.knn import network_prediction
from venn_admit.core.calibrators.logistic import fit_logistic, row_order
from venn_admit.core.calibrators.venn_abers.reliability import (
    ReliabilityModel,
    fit_reliability,
    reliability_score,
)
from venn_admit.core.calibrators.venn_abers.scores import network_score
from venn_admit.core.types import Approximation, BoolArray, Float32Array, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

NEIGHBOURS = 5


def labelled(seed: int, count: int, class_count: int) -> tuple[Float32Array, Approximation, IntArray]:
    """Points that are right more often the more the KNN agrees; the last class is predicted seldom."""
    logits, view = made_up(seed, count, class_count, NEIGHBOURS)
    logits[:, -1] -= 8
    rng = np.random.default_rng(seed)
    predicted = network_prediction(logits)
    right = rng.random(count) < np.where(view.predicted == predicted, 0.9, 0.6)
    return logits, view, np.where(right, predicted, (predicted + 1) % class_count)


def document_of(seed: int, order: IntArray | None = None) -> str:
    logits, view, label = labelled(seed, 900, 3)
    rows = np.arange(900) if order is None else order
    return json.dumps(
        fit_reliability(logits[rows], view.take(rows), label[rows], neighbour_count=NEIGHBOURS).document()
    )


@settings(deadline=None, max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_fit_has_the_same_bits_in_any_order_of_rows(seed: int) -> None:
    shuffle = np.random.default_rng(seed).permutation(900)
    assert document_of(seed, shuffle) == document_of(seed)


def test_a_point_has_the_same_score_in_any_batch_and_after_storage() -> None:
    logits, view, label = labelled(1, 900, 3)
    model = fit_reliability(logits, view, label, neighbour_count=NEIGHBOURS)
    whole = reliability_score(model, logits, view, neighbour_count=NEIGHBOURS)
    stored = ReliabilityModel.of_document(json.loads(json.dumps(model.document())))
    for row in range(0, 900, 30):
        rows = np.array([row])
        alone = reliability_score(stored, logits[rows], view.take(rows), neighbour_count=NEIGHBOURS)
        assert alone.tobytes() == whole[rows].tobytes()
    assert 0 < whole.min() < whole.max() < 1


def test_rare_classes_take_the_model_of_all() -> None:
    logits, view, label = labelled(1, 900, 3)
    model = fit_reliability(logits, view, label, neighbour_count=NEIGHBOURS)
    predicted = network_prediction(logits)
    counts = np.bincount(predicted, minlength=3)
    assert counts[2] < 50 < counts[1]
    assert {key: fitted.points for key, fitted in model.models.items()} == {"0": counts[0], "1": counts[1], "all": 900}
    only_all = ReliabilityModel(model.median_distance, {"all": model.models["all"]})
    score, of_all = (reliability_score(each, logits, view, neighbour_count=NEIGHBOURS) for each in (model, only_all))
    np.testing.assert_array_equal(score[predicted == 2], of_all[predicted == 2])
    assert not np.any(score[predicted == 0] == of_all[predicted == 0])


@pytest.mark.parametrize("wrong", [0, 4, 5])
def test_fewer_than_five_wrong_points_leave_the_score_of_the_network(wrong: int) -> None:
    logits, view, _ = labelled(2, 200, 2)
    predicted = network_prediction(logits)
    label = predicted.copy()
    label[np.flatnonzero(predicted == 0)[:wrong]] = 1
    model = fit_reliability(logits, view, label, neighbour_count=NEIGHBOURS)
    assert set(model.models) == ({"0", "all"} if wrong == 5 else set())
    if wrong < 5:
        score = reliability_score(model, logits, view, neighbour_count=NEIGHBOURS)
        np.testing.assert_array_equal(score, network_score(logits))


@pytest.mark.parametrize("distance", [0.0, 0.1])
def test_features_that_do_not_vary_count_for_nothing(distance: float) -> None:
    inexact = 0
    for count in range(200, 210):  # the rounded mean of this many equal numbers is often another number
        logits, view, label = labelled(3, count, 2)
        still = Approximation(view.logits, view.predicted, view.match_count, np.full(count, distance))
        model = fit_reliability(logits, still, label, neighbour_count=NEIGHBOURS)
        assert model.median_distance == (distance or 1.0)
        for fitted in model.models.values():
            inexact += fitted.mean[7] != np.log1p(distance / model.median_distance)
            assert fitted.sd[7] == 1
            assert abs(fitted.coefficients[7]) < 1e-12
    assert inexact or not distance


def test_no_points_leave_the_score_of_the_network() -> None:
    logits, view, label = labelled(3, 0, 2)
    model = fit_reliability(logits, view, label, neighbour_count=NEIGHBOURS)
    assert not model.models
    assert len(reliability_score(model, logits, view, neighbour_count=NEIGHBOURS)) == 0


def objective(parameters: FloatArray, columns: FloatArray, outcome: BoolArray) -> float:
    linear = parameters[:-1] @ columns + parameters[-1]
    loss = np.logaddexp(0, np.where(outcome, -linear, linear)).sum()
    return float(loss + parameters[:-1] @ parameters[:-1] / 2)


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.sampled_from([10, 60, 3000]),
    scale=st.sampled_from([0.01, 1.0, 30.0]),
    law=st.sampled_from(["noise", "separable", "one right"]),
)
def test_newton_finds_the_minimum(seed: int, count: int, scale: float, law: str) -> None:
    rng = np.random.default_rng(seed)
    columns = scale * rng.normal(size=(3, count))
    outcome = {
        "noise": rng.random(count) < 0.8,
        "separable": columns[0] > np.median(columns[0]),
        "one right": np.arange(count) == 0,
    }[law]
    outcome[:2] = True, False
    order = row_order(columns, outcome)
    columns, outcome = columns[:, order], outcome[order]
    coefficients, intercept = fit_logistic(columns, outcome)
    found = np.append(coefficients, intercept)
    miss = np.where(outcome, -1, 1) / (1 + np.exp(np.where(outcome, 1, -1) * (coefficients @ columns + intercept)))
    gradient = np.append(columns @ miss + coefficients, miss.sum())
    assert np.abs(gradient).max() < 1e-9  # ours is summed in another order
    other = minimize(objective, np.zeros(4), (columns, outcome), method="BFGS")
    assert objective(found, columns, outcome) <= other.fun * (1 + 1e-12)


SHORT_MODEL = {"mean": [0], "sd": [1], "coefficients": [1], "intercept": 0, "points": 9}


@pytest.mark.parametrize("models", [None, [], {"0": {}}, {"0": SHORT_MODEL}, {"0": SHORT_MODEL | {"intercept": "b"}}])
def test_a_document_that_is_no_model_is_refused(models: object) -> None:
    with pytest.raises(InvalidInputError, match="expected a reliability model with median_d and models"):
        ReliabilityModel.of_document({"median_d": 1.0, "models": models})


def test_a_model_that_lacks_a_class_is_refused() -> None:
    logits, view, label = labelled(1, 900, 3)
    model = fit_reliability(logits, view, label, neighbour_count=NEIGHBOURS)
    of_one = ReliabilityModel(model.median_distance, {"0": model.models["0"]})
    with pytest.raises(
        InvalidInputError, match="expected a reliability model of class 1 or of all classes, got one of 0"
    ):
        reliability_score(of_one, logits, view, neighbour_count=NEIGHBOURS)
