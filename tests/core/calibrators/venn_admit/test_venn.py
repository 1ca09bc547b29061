"""Venn-ADMIT: categories, probabilities and decisions."""

import dataclasses
import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import reference
from tests.core.scenarios import Scenario, admit_index, reordered, scenarios, sets_of
from venn_admit.core.calibrators.venn_admit.venn import Categories, VennIndex, select, venn_probabilities
from venn_admit.core.reasons import Reason
from venn_admit.core.types import AdmitSets, FloatArray, IntArray, VennProbabilities
from venn_admit.errors import InvalidInputError

SEEDS = st.integers(0, 2**32 - 1)


def venn_index(scenario: Scenario, vp_rows: IntArray | None = None) -> tuple[VennIndex, AdmitSets]:
    """The scenario's vp, or the same in other rows, with the ADMIT sets of vp in their first order."""
    vp_sets = sets_of(admit_index(scenario), scenario.vp_view)
    rows = np.arange(len(scenario.vp.label)) if vp_rows is None else vp_rows
    index = VennIndex(
        reordered(scenario.vp, rows),
        vp_sets.singleton[rows],
        class_count=scenario.class_count,
        settings=scenario.settings,
        omega=scenario.omega,
    )
    return index, vp_sets


def categories_of(index: VennIndex, scenario: Scenario, sets: AdmitSets) -> Categories:
    view = scenario.scored
    return index.categories(sets.singleton, view.predicted, view.match_count, view.distance)


def some_weights(seed: int, size: IntArray) -> FloatArray:
    """Values of psi' in [0, 1], 0 for empty categories and for some others."""
    rng = np.random.default_rng(seed)
    return np.where((size == 0) | (rng.random(len(size)) < 0.1), 0.0, rng.random(len(size)))


@settings(deadline=None)
@given(scenario=scenarios(), seed=SEEDS)
def test_categories_and_probabilities_agree_with_the_reference(scenario: Scenario, seed: int) -> None:
    view, sets = scenario.scored, sets_of(admit_index(scenario), scenario.scored)
    index, vp_sets = venn_index(scenario)
    found = categories_of(index, scenario, sets)
    psi = some_weights(seed, found.size)
    plain = venn_probabilities(sets.singleton, found.size, found.correct, None)
    weighted = venn_probabilities(sets.singleton, found.size, found.correct, psi)
    for row in range(len(view.predicted)):
        predicted = int(view.predicted[row])
        expected = reference.category(
            scenario.vp,
            vp_sets.included,
            sets.included[row],
            predicted,
            int(view.match_count[row]),
            float(view.distance[row]),
            scenario.settings.q_bins,
            scenario.omega,
        )
        assert sorted(index.order[found.low[row] : found.high[row]]) == expected
        labels = scenario.vp.label[expected]
        assert (found.size[row], found.correct[row]) == (len(expected), (labels == predicted).sum())
        if not sets.singleton[row]:
            assert np.isnan([plain.lower[row], plain.upper[row], weighted.upweight[row]]).all()
            continue
        for probabilities, upweight in ((plain, 1.0), (weighted, 1 / psi[row] if psi[row] else math.inf)):
            interval = reference.venn_interval(labels, predicted, scenario.class_count, upweight)
            assert (probabilities.lower[row], probabilities.upper[row]) == interval
            assert probabilities.upweight[row] == upweight


@settings(deadline=None)
@given(scenario=scenarios())
def test_the_sorted_order_holds_every_row_once_and_singletons_first(scenario: Scenario) -> None:
    index, vp_sets = venn_index(scenario)
    np.testing.assert_array_equal(np.sort(index.order), np.arange(len(scenario.vp.label)))
    np.testing.assert_array_equal(vp_sets.singleton[index.order], np.sort(vp_sets.singleton)[::-1])


@settings(deadline=None)
@given(scenario=scenarios(), seed=SEEDS)
def test_neither_row_order_nor_batches_change_a_category(scenario: Scenario, seed: int) -> None:
    view, sets = scenario.scored, sets_of(admit_index(scenario), scenario.scored)
    index, _ = venn_index(scenario)
    whole = categories_of(index, scenario, sets)
    shuffle = np.random.default_rng(seed).permutation(len(scenario.vp.label))
    other_index, _ = venn_index(scenario, shuffle)
    batches = [
        other_index.categories(sets.singleton[rows], view.predicted[rows], view.match_count[rows], view.distance[rows])
        for rows in np.array_split(np.arange(len(view.predicted)), 3)
    ]
    for field in dataclasses.fields(Categories):
        joined = np.concatenate([getattr(batch, field.name) for batch in batches])
        np.testing.assert_array_equal(joined, getattr(whole, field.name), err_msg=field.name)


counts = st.integers(0, 10**6).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size)))
weights = st.floats(0.0, 1.0)


@settings(deadline=None)
@given(count=counts, psi=st.tuples(weights, weights).map(sorted))
def test_lower_never_exceeds_the_frequency_and_never_rises_with_the_upweight(
    count: tuple[int, int], psi: list[float]
) -> None:
    size, correct = np.full(3, count[0]), np.full(3, count[1])
    found = venn_probabilities(np.ones(3, dtype=bool), size, correct, np.array([*psi, 1.0]))
    assert (found.upweight >= 1).all()
    assert (found.lower <= correct / np.maximum(size, 1)).all()
    assert (found.lower <= found.upper).all()
    assert (np.diff(found.lower) >= 0).all()
    assert (np.diff(found.upper) <= 0).all()
    assert found.lower.min() >= 0
    assert found.upper.max() <= 1
    plain = venn_probabilities(np.ones(3, dtype=bool), size, correct, None)
    np.testing.assert_array_equal(plain.lower[2], found.lower[2])


def test_an_empty_category_says_nothing_and_a_weight_of_nothing_says_as_little() -> None:
    singleton, size, correct = np.array([True, True, False]), np.array([0, 7, 0]), np.array([0, 7, 0])
    plain = venn_probabilities(singleton, size, correct, None)
    np.testing.assert_array_equal(plain.lower, [0, 7 / 8, np.nan])
    np.testing.assert_array_equal(plain.upper, [1, 1, np.nan])
    weighted = venn_probabilities(singleton, size, correct, np.array([0.0, 0.0, np.nan]))
    np.testing.assert_array_equal(weighted.upweight, [np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(weighted.lower, [0, 0, np.nan])
    np.testing.assert_array_equal(weighted.upper, [1, 1, np.nan])


@pytest.mark.parametrize("psi", [-0.1, 1.1, math.nan])
def test_weights_outside_zero_to_one_are_refused(psi: float) -> None:
    one = np.array([1])
    with pytest.raises(InvalidInputError, match="point 0"):
        venn_probabilities(np.array([True]), one, one, np.array([psi]))


def test_reasons_come_in_their_order_and_q_below_k_only_where_nothing_else_is_wrong() -> None:
    starved = np.array([True, False, False, False, False, False])
    singleton = np.array([False, False, True, True, True, True])
    lower = np.array([np.nan, np.nan, 0.89, 0.9, 18 / 20, 0.94])
    predicted = np.array([0, 0, 0, 0, 0, 1])
    match_count = np.array([0, 0, 0, 2, 5, 5])
    unused = np.zeros((6, 2))
    sets = AdmitSets(unused > 0, unused.astype(np.int64), unused, singleton, starved)
    probabilities = VennProbabilities(np.zeros(6, dtype=np.int64), lower, lower, lower)
    thresholds = (Decimal("0.9"), Decimal("0.95"))

    for require_full_match, fourth in ((True, Reason.MATCH_COUNT_BELOW_K), (False, None)):
        found = select(
            sets,
            probabilities,
            predicted,
            match_count,
            neighbour_count=5,
            thresholds=thresholds,
            require_full_match=require_full_match,
        )
        assert [Reason.of_code(code) for code in found.reason] == [
            Reason.BAND_BELOW_KAPPA,
            Reason.SET_NOT_SINGLETON,
            Reason.PROBABILITY_BELOW_THRESHOLD,
            fourth,
            None,
            Reason.PROBABILITY_BELOW_THRESHOLD,
        ]
        np.testing.assert_array_equal(found.decision, [-1, -1, -1, 0 if fourth is None else -1, 0, -1])


@settings(deadline=None)
@given(size=st.integers(1, 2000))
def test_a_lower_probability_that_is_the_threshold_exactly_admits(size: int) -> None:
    correct, total = 9 * size, 10 * size
    one = np.array([0])
    found = venn_probabilities(np.array([True]), np.array([total - 1]), np.array([correct]), None)
    sets = AdmitSets(np.array([[True, False]]), np.ones((1, 2), int), np.zeros((1, 2)), one == 0, one > 0)
    selection = select(
        sets, found, one, one, neighbour_count=1, thresholds=(Decimal("0.9"),) * 2, require_full_match=False
    )
    assert selection.decision.tolist() == [0]
