"""The KNN approximation and the features q and d."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venn_admit.core import budget as memory
from venn_admit.core.approximation.knn import (
    approximate,
    knn_logits,
    match_count,
    neighbour_weights,
    network_prediction,
    nonconformity,
    softmax,
)
from venn_admit.core.neighbours.search import exact_neighbours
from venn_admit.core.types import Approximation, FloatArray, IntArray, KnnParameters, Neighbours, Support
from venn_admit.errors import InvalidInputError

GOLDEN = Path(__file__).parents[2] / "golden"

seeds = st.integers(0, 2**32 - 1)
class_counts = st.sampled_from([2, 3, 7, 8, 10, 100, 1000])
neighbour_counts = st.sampled_from([1, 2, 5, 8, 9, 25, 130])


def made_up(
    seed: int, count: int, total: int, class_count: int, neighbour_count: int
) -> tuple[Neighbours, Support, KnnParameters]:
    """Few classes and confident networks, so that matches are common."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, min(class_count, 3), total)
    logits = generator.normal(size=(total, class_count))
    logits[np.arange(total), labels] += 4.0
    neighbours = Neighbours(
        indices=generator.integers(0, total, (count, neighbour_count)),
        distances=np.sort(generator.gamma(3.0, size=(count, neighbour_count)), axis=1),
    )
    parameters = KnnParameters(
        beta=generator.normal(size=class_count), gamma=generator.normal(1.0, size=class_count), eta=0.7
    )
    return neighbours, Support(logits=logits.astype(np.float32), labels=labels), parameters


def rows_of(neighbours: Neighbours, rows: slice | IntArray) -> Neighbours:
    return Neighbours(indices=neighbours.indices[rows], distances=neighbours.distances[rows])


def assert_same(found: Approximation, expected: Approximation, rows: slice | IntArray) -> None:
    np.testing.assert_array_equal(found.logits, expected.logits[rows])
    np.testing.assert_array_equal(found.predicted, expected.predicted[rows])
    np.testing.assert_array_equal(found.match_count, expected.match_count[rows])
    np.testing.assert_array_equal(found.distance, expected.distance[rows])


@pytest.mark.parametrize("name", ["sentiment", "edge"])
@pytest.mark.parametrize("split", ["mc", "vp", "score"])
def test_the_reference_approximation_is_reached_from_the_vectors(name: str, split: str) -> None:
    with np.load(GOLDEN / f"{name}.npz") as golden:
        queries, vectors = (golden[f"{part}_r"].astype(np.float32) for part in (split, "train"))
        support = Support(logits=golden["train_f"], labels=golden["train_y"].astype(np.int64))
        parameters = KnnParameters(
            beta=golden["beta"].astype(np.float64),
            gamma=golden["gamma"].astype(np.float64),
            eta=float(golden["eta"]),
        )
        view = approximate(exact_neighbours(queries, vectors, int(golden["K"])), support, parameters)
        np.testing.assert_array_equal(view.predicted, golden[f"{split}_predicted"])
        np.testing.assert_array_equal(view.match_count, golden[f"{split}_q"])
        np.testing.assert_allclose(view.logits, golden[f"{split}_logits"], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(view.distance, golden[f"{split}_d"], rtol=1e-12)


@given(seeds, st.integers(1, 6), st.sampled_from([2, 3, 5]), st.integers(1, 7))
@settings(deadline=None)
def test_the_formula_holds_term_by_term(seed: int, count: int, class_count: int, neighbour_count: int) -> None:
    neighbours, support, parameters = made_up(seed, count, 20, class_count, neighbour_count)
    view = approximate(neighbours, support, parameters)
    for row in range(count):
        near = list(zip(neighbours.indices[row].tolist(), neighbours.distances[row].tolist(), strict=True))
        exponentials = [math.exp(-distance / parameters.eta) for _, distance in near]
        for c in range(class_count):
            expected = parameters.beta[c] + math.fsum(
                exponential
                / math.fsum(exponentials)
                * (
                    math.tanh(support.logits[index, c])
                    + parameters.gamma[c] * (1 if support.labels[index] == c else -1)
                )
                for (index, _), exponential in zip(near, exponentials, strict=True)
            )
            assert view.logits[row, c] == pytest.approx(expected, rel=1e-12, abs=1e-13)
        assert view.predicted[row] == max(range(class_count), key=lambda c: view.logits[row, c])
        q = 0
        for index, _ in near:
            network_predicted = max(range(class_count), key=lambda c: support.logits[index, c])
            if not view.predicted[row] == network_predicted == support.labels[index]:
                break
            q += 1
        assert view.match_count[row] == q
        assert view.distance[row] == near[0][1]


@given(seeds, class_counts, neighbour_counts, st.sampled_from([1, 10_000, 200_000]))
@settings(deadline=None, max_examples=40)
def test_batches_blocks_and_row_order_change_no_bit(
    seed: int, class_count: int, neighbour_count: int, block_bytes: int
) -> None:
    neighbours, support, parameters = made_up(seed, 37, 50, class_count, neighbour_count)
    whole = approximate(neighbours, support, parameters)
    parts: list[slice | IntArray] = [slice(row, row + 1) for row in range(37)]
    parts += [slice(0, 20), slice(20, 37), np.random.default_rng(seed).permutation(37)]
    for rows in parts:
        assert_same(approximate(rows_of(neighbours, rows), support, parameters), whole, rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "TILE_BYTES", block_bytes)
        assert_same(approximate(neighbours, support, parameters), whole, slice(None))


@given(seeds, class_counts, st.booleans())
@settings(deadline=None, max_examples=40)
def test_softmax_and_score_of_a_row_have_the_same_bits_in_any_batch(
    seed: int, class_count: int, by_column: bool
) -> None:
    generator = np.random.default_rng(seed)
    logits = 5.0 * generator.normal(size=(33, class_count))
    labels = generator.integers(0, class_count, 33)
    batch = np.asfortranarray(logits) if by_column else logits
    probabilities, scores = softmax(batch), nonconformity(batch, labels)
    for row in range(33):
        part = slice(row, row + 1)
        np.testing.assert_array_equal(softmax(logits[part]), probabilities[part])
        np.testing.assert_array_equal(nonconformity(logits[part], labels[part]), scores[part])


@given(seeds, class_counts, st.sampled_from([1e-3, 1.0, 1e3, 1e300]))
@settings(deadline=None)
def test_softmax_is_a_distribution_and_score_is_its_complement(seed: int, class_count: int, scale: float) -> None:
    generator = np.random.default_rng(seed)
    logits, labels = scale * generator.normal(size=(9, class_count)), generator.integers(0, class_count, 9)
    probabilities = softmax(logits)
    assert probabilities.dtype == np.float64
    assert np.all((probabilities >= 0) & (probabilities <= 1))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(np.argmax(probabilities, axis=1), network_prediction(logits))
    np.testing.assert_array_equal(nonconformity(logits, labels), 1.0 - probabilities[np.arange(9), labels])


def test_softmax_of_float32_logits_is_taken_in_float64() -> None:
    logits = np.array([[0.1, 2.3, -7.0]], dtype=np.float32)
    np.testing.assert_array_equal(softmax(logits), softmax(logits.astype(np.float64)))


@given(seeds, neighbour_counts, st.floats(1e-308, 1e308))
@settings(deadline=None)
def test_weights_fall_with_distance_and_sum_to_one(seed: int, neighbour_count: int, eta: float) -> None:
    distances = np.sort(np.random.default_rng(seed).gamma(3.0, size=(8, neighbour_count)), axis=1)
    weights = neighbour_weights(distances, eta)
    assert np.all(weights >= 0)
    assert np.all(np.diff(weights, axis=1) <= 0)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("eta", "expected"), [(5e-324, [0.5, 0.5, 0.0]), (1.7e308, [1 / 3] * 3), (1.0, [0.465, 0.465, 0.063])]
)
def test_equal_distances_weigh_the_same_at_any_temperature(eta: float, expected: list[float]) -> None:
    weights = neighbour_weights(np.array([[5.0, 5.0, 7.0]]), eta)
    assert weights[0].tolist() == pytest.approx(expected, abs=4e-3)
    assert weights[0, 0] == weights[0, 1]


def test_ties_of_logits_go_to_the_lower_class() -> None:
    logits = np.array([[1, 3, 3], [2, 2, 2], [0, 0, 1]], dtype=np.float32)
    predicted = network_prediction(logits)
    assert predicted.tolist() == [1, 0, 2]
    assert predicted.dtype == np.int64


@pytest.mark.parametrize(
    ("near", "expected"),
    [
        ([0, 0, 0], 3),
        ([0, 0, 1], 2),
        ([1, 0, 0], 0),
        ([0, 2, 0], 1),
        ([0, 3, 0], 1),
    ],
)
def test_matches_are_counted_up_to_the_first_that_disagrees(near: list[int], expected: int) -> None:
    """Exemplar 0 agrees with class 0; 1 by label only, 2 by prediction only, 3 in neither."""
    support = Support(
        logits=np.array([[1, 0], [0, 1], [1, 0], [0, 1]], dtype=np.float32), labels=np.array([0, 0, 1, 1])
    )
    neighbours = Neighbours(indices=np.array([near]), distances=np.ones((1, 3)))
    counts = match_count(np.array([0]), neighbours, support)
    assert counts.tolist() == [expected]
    assert counts.dtype == np.int64


@given(seeds, class_counts, neighbour_counts)
@settings(deadline=None, max_examples=40)
def test_match_counts_lie_between_zero_and_k(seed: int, class_count: int, neighbour_count: int) -> None:
    neighbours, support, parameters = made_up(seed, 30, 40, class_count, neighbour_count)
    counts = approximate(neighbours, support, parameters).match_count
    assert np.all((counts >= 0) & (counts <= neighbour_count))


def test_no_points_have_an_empty_approximation() -> None:
    neighbours, support, parameters = made_up(0, 0, 40, 3, 5)
    view = approximate(neighbours, support, parameters)
    assert view.logits.shape == (0, 3)
    assert view.predicted.shape == view.match_count.shape == view.distance.shape == (0,)


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        (np.zeros(3), r"got shape \(3,\)"),
        (np.zeros((3, 1)), r"at least 2 classes, got shape \(3, 1\)"),
        (np.array([[0.0, 1.0], [0.0, np.nan]]), "got nan in row 1, column 1"),
        (np.array([[np.inf, 1.0]]), "got inf in row 0, column 0"),
    ],
)
def test_logits_that_are_none_are_refused(logits: FloatArray, message: str) -> None:
    for function in (network_prediction, softmax):
        with pytest.raises(InvalidInputError, match=message):
            function(logits)
    with pytest.raises(InvalidInputError, match=message):
        nonconformity(logits, np.zeros(logits.shape[0], dtype=np.int64))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 2], "from 0 to 1, got 2 in row 1"),
        ([-1, 0], "from 0 to 1, got -1 in row 0"),
        ([0], r"each of 2 rows of logits, got shape \(1,\)"),
    ],
)
def test_labels_that_do_not_fit_the_logits_are_refused(labels: list[int], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        nonconformity(np.zeros((2, 2)), np.array(labels))


def test_records_that_do_not_fit_each_other_are_refused() -> None:
    neighbours, support, parameters = made_up(0, 4, 10, 3, 5)
    fewer = Support(logits=support.logits[:3], labels=support.labels[:3])
    unlabelled = Support(logits=support.logits, labels=support.labels - 3)
    narrow = Neighbours(indices=neighbours.indices, distances=neighbours.distances[:, :4])
    with pytest.raises(InvalidInputError, match="neighbour indices from 0 to 2"):
        approximate(neighbours, fewer, parameters)
    with pytest.raises(InvalidInputError, match="labels from 0 to 2"):
        approximate(neighbours, unlabelled, parameters)
    with pytest.raises(InvalidInputError, match="the same shape"):
        approximate(narrow, support, parameters)
    with pytest.raises(InvalidInputError, match="prediction for each of 4 points"):
        match_count(np.zeros(3, dtype=np.int64), neighbours, support)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (KnnParameters(beta=np.zeros(2), gamma=np.ones(3), eta=1.0), "beta and gamma of 3 classes"),
        (KnnParameters(beta=np.zeros(3), gamma=np.full(3, np.nan), eta=1.0), "finite beta and gamma"),
        (KnnParameters(beta=np.zeros(3), gamma=np.ones(3), eta=0.0), "eta above 0, got 0"),
        (KnnParameters(beta=np.zeros(3), gamma=np.ones(3), eta=math.nan), "eta above 0, got nan"),
        (KnnParameters(beta=np.zeros(3), gamma=np.ones(3), eta=math.inf), "eta above 0, got inf"),
    ],
)
def test_parameters_out_of_range_are_refused(parameters: KnnParameters, message: str) -> None:
    neighbours, support, _ = made_up(0, 4, 10, 3, 5)
    with pytest.raises(InvalidInputError, match=message):
        knn_logits(neighbours, support, parameters)
