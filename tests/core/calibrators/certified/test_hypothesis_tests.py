"""The tests of one class: against other libraries, and their properties."""

import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.guarantees.draws import Draws
from venn_admit.core.calibrators.certification import DocumentTest
from venn_admit.core.calibrators.certified import hypothesis_tests
from venn_admit.core.calibrators.certified.hypothesis_tests import (
    Bets,
    betting_p_values,
    binomial_tail,
    class_p_values,
    document_excess,
    document_variance,
    largest_passing,
    p_values_of_bets,
    staked_p_values,
    stakes_of,
)
from venn_admit.core.calibrators.certified.losses import LossRanges
from venn_admit.core.types import FloatArray, IntArray

ALPHA = 0.1


@settings(deadline=None)
@given(trials=st.integers(0, 60_000), part=st.floats(0, 1), probability=st.floats(0.001, 0.999))
def test_the_binomial_tail_is_scipys(trials: int, part: float, probability: float) -> None:
    count = round(part * trials)
    expected = stats.binom.cdf(count, trials, probability)
    # Below 1e-200 SciPy has fewer right digits than rational numbers show ours to have.
    assert binomial_tail(count, trials, probability) == pytest.approx(expected, rel=1e-7, abs=1e-200)


def test_a_tiny_binomial_tail_is_that_of_rational_numbers() -> None:
    trials, count, probability = 314, 29, Fraction(0.921875)
    terms = (comb(trials, k) * probability**k * (1 - probability) ** (trials - k) for k in range(count + 1))
    assert binomial_tail(count, trials, float(probability)) == pytest.approx(float(sum(terms)), rel=1e-12)


def test_the_binomial_tail_of_nothing_is_one() -> None:
    assert binomial_tail(0, 0, ALPHA) == 1.0


def zero_one(width: int) -> LossRanges:
    return LossRanges(np.ones(width), np.ones(width))


def p_values(admitted: IntArray, wrong: IntArray, *, test: DocumentTest = DocumentTest.FINITE_SAMPLE) -> FloatArray:
    most = np.maximum(admitted.max(axis=0), 1)
    excess = document_excess(admitted, wrong.astype(np.float64), most, ALPHA)
    return class_p_values(
        excess,
        admitted,
        known=excess,
        bound=(1 - ALPHA) * most,
        ranges=zero_one(len(most)),
        alpha=ALPHA,
        level=0.05,
        test=test,
        generator=np.random.default_rng(3),
    )


@settings(deadline=None)
@given(trials=st.integers(0, 3000), probability=st.floats(0.01, 0.9), level=st.floats(0.001, 0.9))
def test_the_largest_count_that_passes_is_scipys(trials: int, probability: float, level: float) -> None:
    found = largest_passing(trials, probability, level)
    assert found == -1 or binomial_tail(found, trials, probability) <= level
    assert found == trials or binomial_tail(found + 1, trials, probability) > level


@pytest.mark.parametrize("test", DocumentTest)
def test_a_class_of_which_nothing_is_admitted_has_no_evidence(test: DocumentTest) -> None:
    nothing = np.zeros((50, 1), dtype=np.int64)
    assert p_values(nothing, nothing, test=test).tolist() == [1.0]


@pytest.mark.parametrize("test", DocumentTest)
def test_many_right_documents_pass_and_wrong_ones_do_not(test: DocumentTest) -> None:
    admitted = np.full((200, 2), 4)
    wrong = np.zeros_like(admitted)
    wrong[::4, 1] = 4
    right, failing = p_values(admitted, wrong, test=test)
    assert right <= 0.05
    assert failing > 0.5


def test_the_asymptotic_test_is_a_score_test_if_errors_are_fewer_than_chance_explains() -> None:
    admitted = np.full((50, 1), 2)
    statistic = -ALPHA * 2 * math.sqrt(50) / math.sqrt(ALPHA * (1 - ALPHA) * 2)
    found = p_values(admitted, np.zeros_like(admitted), test=DocumentTest.ASYMPTOTIC)
    assert found == pytest.approx([stats.norm.cdf(statistic)])


def test_variance_is_over_documents() -> None:
    admitted = np.array([[4], [4], [4], [4]])
    excess = np.array([[0], [4], [0], [4]]) - ALPHA * admitted
    assert document_variance(excess, admitted, zero_one(1), ALPHA) == pytest.approx([np.var([0, 4, 0, 4], ddof=1)])


def test_a_large_document_counts_as_the_largest_that_proposed() -> None:
    admitted, wrong = np.array([[2], [60]]), np.array([[1.0], [60.0]])
    assert document_excess(admitted, wrong, np.array([3]), ALPHA) == pytest.approx(np.array([[0.8], [2.7]]))


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), scale=st.sampled_from([0.25, 2.0, 1024.0]))
def test_bets_do_not_depend_on_the_unit(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    differences, known = rng.uniform(-1, 0.9, (60, 2)), rng.uniform(-1, 0.9, (30, 2))
    bound = np.array([0.9, 0.9])
    expected = betting_p_values(differences, bound, known, level=0.05, uniform=0.5)
    scaled = betting_p_values(differences * scale, bound * scale, known * scale, level=0.05, uniform=0.5)
    np.testing.assert_allclose(scaled, expected)


@pytest.mark.parametrize("most_together", [1, 1_000, 1 << 20])
def test_games_that_are_played_together_have_the_bits_of_each_alone(
    most_together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Games have few documents or many, one statistic or several, and are won early or never."""
    monkeypatch.setattr(hypothesis_tests, "MOST_TOGETHER", most_together)
    rng = np.random.default_rng(0)
    several = [
        Bets(
            rng.uniform(-1, 0.9, (count, width)) - shift,
            rng.uniform(0.5, 1, width),
            rng.uniform(-1, 1, (10, width)),
            1 - rng.random(),
        )
        for count, width, shift in [(1, 1, 0.0), (90, 3, 0.4), (60, 1, 0.0), (4500, 2, 0.1)]
        for _ in range(2)
    ]
    found = p_values_of_bets(several, level=0.05)
    assert [len(of) for of in found] == [len(of.bound) for of in several]
    for of, p_values in zip(several, found, strict=True):
        alone = betting_p_values(of.differences, of.bound, of.known, level=0.05, uniform=of.uniform)
        assert p_values.tobytes() == alone.tobytes()
    assert len(np.unique(np.concatenate(found))) > 10


def test_one_document_of_the_largest_excess_can_take_all_that_was_won() -> None:
    """Ten documents without an error allow for a rare one all wrong: no p-value below .9 ** 10 would be valid."""
    differences = np.full((10, 1), -ALPHA)
    p = betting_p_values(differences, np.array([1 - ALPHA]), differences, level=0.05, uniform=1.0)
    least = (1 + ALPHA / (1 - ALPHA)) ** -10
    assert p[0] >= least - 1e-12


def test_an_oversize_excess_counts_as_the_bound() -> None:
    rng = np.random.default_rng(0)
    differences, known = rng.uniform(-1, 0.5, (60, 1)), rng.uniform(-1, 0.5, (30, 1))
    cut, beyond = differences.copy(), differences.copy()
    cut[5], beyond[5] = 0.9, 50.0
    bound = np.array([0.9])
    assert betting_p_values(beyond, bound, known, level=0.05, uniform=0.5) == pytest.approx(
        betting_p_values(cut, bound, known, level=0.05, uniform=0.5), abs=0
    )


def test_a_class_does_not_pass_by_a_small_uniform_number_alone() -> None:
    rng = np.random.default_rng(0)
    differences = rng.uniform(-1, 0.9, (100, 1)) + 0.1
    p = betting_p_values(differences, np.array([1.0]), differences, level=0.05, uniform=1e-6)
    assert p[0] > 0.5


def staked(rng: np.random.Generator, documents: int, more: float = 0.0) -> float:
    """The p-value of a class that is exactly alpha wrong, in documents of 1 to 6 points of which most share an outcome.

    more: What is added to the excess of documents with an error.
    """
    known, excess = (rng.integers(1, 7, count) for count in (documents // 5, documents))
    parts = []
    for size in (known, excess):
        shared = np.repeat(rng.random(len(size)), size)
        document = np.repeat(np.arange(len(size)), size)
        number = np.where(rng.random(len(shared)) < 0.7, shared, rng.random(len(shared)))
        wrong = np.bincount(document, weights=number < ALPHA)
        parts.append(((wrong - ALPHA * size) / ((1 - ALPHA) * 6))[:, np.newaxis])
    foretold = parts[1]
    differences = np.minimum(foretold + more * (foretold > 0), 1.0)
    return float(staked_p_values(differences, stakes_of(foretold, parts[0], 0.1), 1.0 - rng.random())[0])


def test_games_with_given_stakes_are_won_with_their_level_at_most() -> None:
    draws = Draws.as_sharp_as(1_000, 0.1)
    passed = 0
    for seed in draws:
        found = staked(np.random.default_rng(seed), 300) <= 0.1
        draws.add(found)
        passed += found
    assert draws.seldom
    assert passed > 0.03 * draws.count


def test_no_p_value_of_games_with_given_stakes_falls_if_a_difference_grows() -> None:
    for seed in range(50):
        values = [staked(np.random.default_rng(seed), 60, more) for more in (0.0, 0.05, 0.3)]
        assert values == sorted(values)
