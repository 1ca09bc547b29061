"""The network's score and the features of the reliability score."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venn_admit.core.approximation.knn import softmax
from venn_admit.core.calibrators.venn_abers.scores import FEATURES, network_score, reliability_features
from venn_admit.core.types import Approximation, Float32Array
from venn_admit.errors import InvalidInputError


def made_up(seed: int, count: int, class_count: int, neighbour_count: int) -> tuple[Float32Array, Approximation]:
    rng = np.random.default_rng(seed)
    knn_logits = rng.normal(0, 3, (count, class_count))
    view = Approximation(
        logits=knn_logits,
        predicted=knn_logits.argmax(axis=1),
        match_count=rng.integers(0, neighbour_count + 1, count),
        distance=rng.gamma(2.0, 3.0, count),
    )
    return (knn_logits + rng.normal(0, 3, (count, class_count))).astype(np.float32), view


def test_one_point_by_hand() -> None:
    logits = np.log(np.array([[0.2, 0.7, 0.1]])).astype(np.float32)
    view = Approximation(
        logits=np.log(np.array([[0.25, 0.5, 0.25]])),
        predicted=np.array([1]),
        match_count=np.array([5]),
        distance=np.array([6.0]),
    )
    found = reliability_features(logits, view, neighbour_count=5, median_distance=2.0)
    expected = [np.log(7 / 3), 0.5, 0.0, 1.0, 1.0, 0.0, 1.0, np.log(4)]
    assert found.shape == (len(FEATURES), 1)
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-6)  # the logits are float32
    np.testing.assert_allclose(network_score(logits), [0.7], rtol=1e-6)


def test_matches_do_not_count_if_the_knn_disagrees() -> None:
    logits = np.array([[1.0, 0.0]], dtype=np.float32)
    view = Approximation(np.array([[0.0, 1.0]]), np.array([1]), np.array([5]), np.array([1.0]))
    found = reliability_features(logits, view, neighbour_count=5, median_distance=1.0)
    assert found[3:7, 0].tolist() == [0.0, 0.0, 1.0, 0.0]


def test_sure_predictions_are_clipped_and_equal_logits_have_no_lead() -> None:
    logits = np.array([[1000.0, 0.0], [3.0, 3.0]], dtype=np.float32)
    view = Approximation(
        np.array([[1000.0, 0.0], [0.0, 1000.0]]), np.array([0, 1]), np.zeros(2, dtype=np.int64), np.zeros(2)
    )
    found = reliability_features(logits, view, neighbour_count=5, median_distance=1.0)
    most = np.log(1 - 1e-12) - np.log(1e-12)
    np.testing.assert_allclose(found[0], [most, 0.0], rtol=1e-4)
    np.testing.assert_allclose(found[2], [most, -most], rtol=1e-4)
    assert found[1].tolist() == [1.0, 0.0]
    assert found[7].tolist() == [0.0, 0.0]


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), count=st.sampled_from([1, 2, 7, 65]), class_count=st.sampled_from([2, 3, 10, 130])
)
def test_a_point_has_the_same_bits_in_any_batch(seed: int, count: int, class_count: int) -> None:
    logits, view = made_up(seed, count, class_count, 5)
    score = network_score(logits)
    features = reliability_features(logits, view, neighbour_count=5, median_distance=2.3)
    shuffle = np.random.default_rng(seed).permutation(count)
    assert network_score(logits[shuffle]).tobytes() == score[shuffle].tobytes()
    for row in range(count):
        rows = np.array([row])
        assert network_score(logits[rows]).tobytes() == score[rows].tobytes()
        alone = reliability_features(logits[rows], view.take(rows), neighbour_count=5, median_distance=2.3)
        assert alone.tobytes() == np.ascontiguousarray(features[:, rows]).tobytes()
    np.testing.assert_array_equal(score, softmax(logits).max(axis=1))


def test_a_distance_without_logarithm_is_refused() -> None:
    logits, view = made_up(0, 2, 2, 5)
    far = Approximation(view.logits, view.predicted, view.match_count, np.array([1.0, 1e300]))
    with pytest.raises(InvalidInputError, match="point 1: expected a finite distance"):
        reliability_features(logits, far, neighbour_count=5, median_distance=1e-300)
