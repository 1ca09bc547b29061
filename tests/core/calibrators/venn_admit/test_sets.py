"""ADMIT sets: agreement with the point-by-point reference, and the properties they owe."""

import dataclasses
from decimal import Decimal
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import reference
from tests.core.scenarios import Scenario, admit_index, make_view, reordered, scenarios, sets_of, with_labels
from venn_admit.core import budget as memory
from venn_admit.core.approximation.knn import softmax
from venn_admit.core.calibrators.order_statistics import conformal_rank
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.calibrators.venn_admit import sets as admit
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex, smallest_class_count
from venn_admit.core.types import AdmitSets, Approximation
from venn_admit.errors import InvalidInputError

ALPHAS = st.decimals("0.000001", "0.999999", places=6)


def assert_same_bits(one: AdmitSets, other: AdmitSets) -> None:
    for field in dataclasses.fields(AdmitSets):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name), err_msg=field.name)


def assert_agrees_with_reference(scenario: Scenario) -> None:
    view, sets = scenario.scored, sets_of(admit_index(scenario), scenario.scored)
    class_score = 1 - softmax(view.logits)
    for row in range(len(view.predicted)):
        expected = reference.admit_set(
            class_score[row],
            int(view.predicted[row]),
            int(view.match_count[row]),
            float(view.distance[row]),
            scenario.mc,
            scenario.settings,
            scenario.omega,
        )
        assert set(np.flatnonzero(sets.included[row])) == expected.members
        assert sets.band_size[row].tolist() == expected.band_size
        assert sets.threshold[row].tolist() == expected.threshold
        assert sets.starved[row] == expected.starved
        assert sets.singleton[row] == (len(expected.members) == 1)


@settings(deadline=None)
@given(alpha=ALPHAS, counts=st.lists(st.integers(0, 10**9), max_size=20))
def test_rank_is_exact(alpha: Decimal, counts: list[int]) -> None:
    expected = [ceil((count + 1) * (1 - Fraction(alpha))) for count in counts]
    np.testing.assert_array_equal(conformal_rank(np.array(counts, dtype=np.int64), alpha), expected)


def test_rank_is_exact_where_floats_and_64_bits_are_not() -> None:
    assert (9 + 1) * (1 - 0.7) > 3  # what float arithmetic would make rank 4
    np.testing.assert_array_equal(conformal_rank(np.array([[9, 19]]), Decimal("0.7")), [[3, 6]])
    many_digits = Decimal("0.1000000000000000000000000000001")
    np.testing.assert_array_equal(conformal_rank(np.array([9, 10**9 - 1]), many_digits), [9, 9 * 10**8])


@settings(deadline=None)
@given(scenario=scenarios())
def test_sets_agree_with_the_reference(scenario: Scenario) -> None:
    assert_agrees_with_reference(scenario)


def test_sets_of_a_thousand_classes_agree_with_the_reference() -> None:
    rng, class_count = np.random.default_rng(11), 1000
    mc_view = make_view(rng, 5 * class_count, class_count, 1)
    scenario = Scenario(
        class_count=class_count,
        neighbour_count=1,
        settings=make_settings(class_count, 1, alpha=Decimal("0.4"), kappa=1, q_bins=(0,)),
        omega=0.2,
        mc=with_labels(mc_view, np.arange(5 * class_count) % class_count),
        vp_view=mc_view,
        vp=with_labels(mc_view, mc_view.predicted),
        scored=make_view(rng, 6, class_count, 1),
    )
    starved = sets_of(admit_index(scenario), scenario.scored).starved
    assert 0 < starved.sum() < len(starved)
    assert_agrees_with_reference(scenario)


@settings(deadline=None)
@given(scenario=scenarios())
def test_the_prediction_is_in_the_set_and_a_starved_set_is_all_classes(scenario: Scenario) -> None:
    sets = sets_of(admit_index(scenario), scenario.scored)
    assert np.take_along_axis(sets.included, scenario.scored.predicted[:, None], axis=1).all()
    assert sets.included[sets.starved].all()
    np.testing.assert_array_equal(sets.starved, smallest_class_count(sets.band_size) < scenario.settings.kappa)


@settings(deadline=None)
@given(scenario=scenarios(), alphas=st.lists(ALPHAS, min_size=2, max_size=2).map(sorted))
def test_sets_grow_as_alpha_falls(scenario: Scenario, alphas: list[Decimal]) -> None:
    larger, smaller = (
        sets_of(
            admit_index(dataclasses.replace(scenario, settings=dataclasses.replace(scenario.settings, alpha=alpha))),
            scenario.scored,
        )
        for alpha in alphas
    )
    assert not (smaller.included & ~larger.included).any()
    assert (larger.threshold <= smaller.threshold).all()


@settings(deadline=None)
@given(scenario=scenarios(), seed=st.integers(0, 2**32 - 1))
def test_neither_row_order_nor_batches_change_a_bit(scenario: Scenario, seed: int) -> None:
    view, rng = scenario.scored, np.random.default_rng(seed)
    whole = sets_of(admit_index(scenario), view)
    shuffled_mc = reordered(scenario.mc, rng.permutation(len(scenario.mc.label)))
    assert_same_bits(sets_of(admit_index(scenario, shuffled_mc), view), whole)

    rows = rng.permutation(len(view.predicted))
    index = admit_index(scenario)
    batches = [sets_of(index, view, batch) for batch in np.array_split(rows, 3)]
    for field in dataclasses.fields(AdmitSets):
        joined = np.concatenate([getattr(batch, field.name) for batch in batches])
        np.testing.assert_array_equal(joined, getattr(whole, field.name)[rows], err_msg=field.name)


def test_blocks_within_a_call_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    mc_view, view = make_view(rng, 500, 4, 2), make_view(rng, 97, 4, 2)
    index = AdmitIndex(
        with_labels(mc_view, rng.integers(0, 4, 500)),
        class_count=4,
        settings=make_settings(4, 2, kappa=3),
        omega=0.1,
    )
    whole = sets_of(index, view)
    monkeypatch.setattr(memory, "TILE_BYTES", 4 * admit.TEMPORARY_BYTES * 7)
    for classes in (1, 3):
        budget = memory.BLOCK_SHARE * classes * admit.TEMPORARY_BYTES * len(view.predicted)
        few = index.sets(view.logits, view.predicted, view.match_count, view.distance, memory_budget=budget)
        assert_same_bits(few, whole)


def test_kappa_of_the_largest_smallest_class_count_keeps_a_band_and_one_more_keeps_none() -> None:
    rng = np.random.default_rng(3)
    mc_view, view = make_view(rng, 400, 3, 2), make_view(rng, 50, 3, 2)
    mc = with_labels(mc_view, rng.integers(0, 3, 400))

    def starved(kappa: int) -> int:
        index = AdmitIndex(mc, class_count=3, settings=make_settings(3, 2, kappa=kappa), omega=0.1)
        return int(sets_of(index, view).starved.sum())

    sets = sets_of(AdmitIndex(mc, class_count=3, settings=make_settings(3, 2), omega=0.1), view)
    largest = int(smallest_class_count(sets.band_size).max())
    assert 0 < starved(largest) < len(view.predicted)
    assert starved(largest + 1) == len(view.predicted)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"logits": np.zeros((2, 4))}, r"expected logits of shape \(m, 3\), got \(2, 4\)"),
        ({"logits": np.full((2, 3), np.nan)}, "finite"),
        ({"distance": np.array([0.1, np.inf])}, "finite"),
        ({"distance": np.array([0.1])}, "distance 1"),
        ({"predicted": np.array([0, 3])}, r"in \[0, 3\)"),
        ({"match_count": np.array([-1, 0])}, "q must be at least 0"),
    ],
)
def test_points_that_do_not_fit_are_refused(change: dict[str, np.ndarray], message: str) -> None:
    rng = np.random.default_rng(0)
    mc_view = make_view(rng, 30, 3, 2)
    mc = with_labels(mc_view, mc_view.predicted)
    index = AdmitIndex(mc, class_count=3, settings=make_settings(3, 2), omega=0.1)
    view = dataclasses.replace(make_view(rng, 2, 3, 2), **change)
    assert isinstance(view, Approximation)
    with pytest.raises(InvalidInputError, match=message):
        sets_of(index, view)
