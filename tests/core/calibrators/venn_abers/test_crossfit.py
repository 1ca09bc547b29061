"""Cross-fitted p0 of calibration points, and the choice of a score by it."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.calibrators.venn_abers.isotonic import Case, cases
from tests.core.calibrators.venn_abers.test_reliability import NEIGHBOURS, labelled
from venn_admit.core.approximation.knn import network_prediction
from venn_admit.core.calibrators.settings import ScoreKind, make_venn_abers_settings
from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex
from venn_admit.core.calibrators.venn_abers.crossfit import (
    FOLD_COUNT,
    choose_score,
    cross_fit,
    crossfitted_lower,
    crossfitted_points,
    fold_of,
)
from venn_admit.core.calibrators.venn_abers.scores import network_score
from venn_admit.core.types import FloatArray, IntArray
from venn_admit.errors import InvalidInputError

SEEDS = st.integers(0, 2**32 - 1)


def keys_of(seed: int, count: int) -> list[str]:
    """Documents of a few points each, in no order."""
    return [f"document {number}" for number in np.random.default_rng(seed).integers(0, count // 2 + 1, count)]


def test_folds_are_even_and_keep_documents_whole() -> None:
    keys = [f"document {number // 3}" for number in range(30_000)]
    fold = fold_of(keys, seed=7)
    assert np.array_equal(fold[::3], fold[2::3])
    share = np.bincount(fold, minlength=FOLD_COUNT) / len(fold)
    assert np.all(np.abs(share - 1 / FOLD_COUNT) < 4 * sqrt(0.16 / 10_000))
    assert not np.array_equal(fold_of(keys, seed=8), fold)
    assert fold_of(keys[100:101], seed=7) == fold[100]


def test_no_label_bears_on_the_score_of_its_own_document() -> None:
    logits, view, label = labelled(1, 900, 3)
    keys = keys_of(1, 900)

    def scores(kind: ScoreKind, labels: IntArray) -> FloatArray:
        points = crossfitted_points(kind, logits, view, labels, keys, seed=7, neighbour_count=NEIGHBOURS)
        assert np.array_equal(points.predicted, network_prediction(logits))
        return points.score

    found = scores(ScoreKind.RELIABILITY, label)
    fold = fold_of(keys, seed=7)
    for number in range(FOLD_COUNT):
        own = fold == number
        changed = scores(ScoreKind.RELIABILITY, np.where(own, (label + 1) % 3, label))
        assert np.array_equal(changed[own], found[own])
        assert not np.array_equal(changed[~own], found[~own])
    assert np.array_equal(scores(ScoreKind.NETWORK, label), network_score(logits))


@settings(deadline=None)
@given(case=cases(), seed=SEEDS, weighted=st.booleans())
def test_each_fold_is_scored_by_the_others_in_any_order_of_rows(case: Case, seed: int, weighted: bool) -> None:
    count = len(case.right)
    fold = fold_of(keys_of(seed, count), seed=0)
    weight = np.random.default_rng(seed).gamma(2.0, 3.0, count) + 1 if weighted else None
    found = crossfitted_lower(
        case.mc, case.right, fold, class_count=case.class_count, q_bins=case.q_bins, upweight=weight
    )
    for number in range(FOLD_COUNT):
        others = fold != number
        index = VennAbersIndex(
            case.mc.take(others), case.right[others], class_count=case.class_count, q_bins=case.q_bins
        )
        expected = index.bounds(case.mc.take(~others), None if weight is None else weight[~others]).lower
        assert found[~others].tobytes() == expected.tobytes()
    order = np.random.default_rng(seed).permutation(count)
    again = crossfitted_lower(
        case.mc.take(order),
        case.right[order],
        fold[order],
        class_count=case.class_count,
        q_bins=case.q_bins,
        upweight=None if weight is None else weight[order],
    )
    assert again.tobytes() == found[order].tobytes()


@settings(deadline=None)
@given(seed=SEEDS, count=st.integers(0, 40), gain=st.floats(0.0, 1.0))
def test_the_choice_is_that_of_the_formula(seed: int, count: int, gain: float) -> None:
    rng = np.random.default_rng(seed)
    keys = keys_of(seed, count)
    network = rng.random(count) < 0.5
    reliability = network ^ (rng.random(count) < 0.3) | (rng.random(count) < gain)
    found = choose_score(network, reliability, keys)
    documents = sorted(set(keys))
    assert found.documents == len(documents)
    if len(documents) < 2:
        assert found.kind is ScoreKind.NETWORK
        return
    differences = reliability.astype(int) - network
    mean = differences.mean()
    residuals = [
        sum(differences[row] - mean for row in range(count) if keys[row] == document) for document in documents
    ]
    error = sqrt(len(documents) / (len(documents) - 1) * sum(residual**2 for residual in residuals)) / count
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.reliability_share - found.network_share, mean, atol=1e-12)
    if abs(mean - error) > 1e-9:
        assert (found.kind is ScoreKind.RELIABILITY) == (mean > error)


def test_a_gain_that_all_documents_share_is_enough_and_one_document_is_not() -> None:
    network, reliability = np.zeros(4, dtype=np.bool_), np.array([True, False, True, False])
    assert choose_score(network, reliability, ["a", "a", "b", "b"]).kind is ScoreKind.RELIABILITY
    assert choose_score(network, reliability, ["a", "b", "a", "b"]).kind is ScoreKind.NETWORK
    assert choose_score(network, reliability, ["a"] * 4).kind is ScoreKind.NETWORK
    assert choose_score(reliability, reliability, ["a", "a", "b", "b"]).kind is ScoreKind.NETWORK


def test_the_score_that_tells_right_from_wrong_is_chosen() -> None:
    rng = np.random.default_rng(3)
    zeros = np.zeros(3000, dtype=np.int64)
    telling = rng.random(3000)
    right = rng.random(3000) < 0.5 + 0.5 * telling
    keys = [f"point {number}" for number in range(3000)]
    blind, seeing = (CellPoints(zeros, zeros, score) for score in (rng.random(3000), telling))
    made = make_venn_abers_settings(2, 25)
    found = cross_fit(blind, seeing, right, keys, seed=1, settings=made)
    assert found.choice.kind is ScoreKind.RELIABILITY
    assert found.choice.network_share < 0.05 < found.choice.reliability_share
    assert cross_fit(seeing, blind, right, keys, seed=1, settings=made).choice.kind is ScoreKind.NETWORK
    lower = crossfitted_lower(seeing, right, found.fold, class_count=2)
    assert found.lower[ScoreKind.RELIABILITY].tobytes() == lower.tobytes()
    order = rng.permutation(3000)
    shuffled = cross_fit(
        blind.take(order), seeing.take(order), right[order], [keys[row] for row in order], seed=1, settings=made
    )
    assert shuffled.choice == found.choice


def test_arguments_of_other_lengths_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="expected as many verdicts as keys, got 1, 1 and 2"):
        choose_score(np.ones(1, dtype=np.bool_), np.ones(1, dtype=np.bool_), ["a", "b"])
