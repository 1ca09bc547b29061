"""Venn-Abers bounds of points by their cells."""

import dataclasses
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.calibrators.venn_abers.isotonic import Case, bounds_of, cases, draw_points
from venn_admit.core.calibrators.venn_abers.cells import Bounds, CellPoints, StepPlaces, VennAbersIndex
from venn_admit.core.types import BoolArray, FloatArray
from venn_admit.errors import InvalidInputError

SEEDS = st.integers(0, 2**32 - 1)


def index_of(case: Case, rows: npt.NDArray[np.int64] | None = None) -> VennAbersIndex:
    """The case's mc, or the same in other rows."""
    order = np.arange(len(case.right)) if rows is None else rows
    return VennAbersIndex(case.mc.take(order), case.right[order], class_count=case.class_count, q_bins=case.q_bins)


def assert_same_bits(found: Bounds, expected: Bounds) -> None:
    for field in dataclasses.fields(Bounds):
        values, others = getattr(found, field.name), getattr(expected, field.name)
        assert values.tobytes() == others.tobytes(), field.name


@settings(deadline=None, max_examples=200)
@given(case=cases())
def test_plain_bounds_are_the_exact_ones_rounded_once(case: Case) -> None:
    found = index_of(case).bounds(case.scored)
    for row, score in enumerate(case.scored.score.tolist()):
        inside = case.cell_rows(row)
        lower, upper = bounds_of(case.mc.score[inside], case.right[inside], score)
        assert (found.lower[row], found.upper[row]) == (float(lower), float(upper))


@settings(deadline=None, max_examples=200)
@given(case=cases())
def test_weighted_bounds_agree_with_isotonic_regression(case: Case) -> None:
    found = index_of(case).bounds(case.scored, case.weight)
    for row, score in enumerate(case.scored.score.tolist()):
        inside = case.cell_rows(row)
        expected = bounds_of(case.mc.score[inside], case.right[inside], score, float(case.weight[row]))
        np.testing.assert_allclose([found.lower[row], found.upper[row]], [*map(float, expected)], rtol=1e-13, atol=0)


@settings(deadline=None)
@given(case=cases())
def test_weight_one_gives_the_plain_bits_and_infinite_weight_the_limits(case: Case) -> None:
    index, count = index_of(case), len(case.scored.score)
    plain = index.bounds(case.scored)
    assert_same_bits(index.bounds(case.scored, np.ones(count)), plain)
    assert_same_bits(index.bounds(case.scored, np.full(count, np.inf)), Bounds(np.zeros(count), np.ones(count)))
    near = index.bounds(case.scored, np.full(count, 1e300))
    np.testing.assert_allclose([near.lower, near.upper], [np.zeros(count), np.ones(count)], atol=1e-200)


@settings(deadline=None)
@given(case=cases(), seed=SEEDS)
def test_neither_row_order_nor_batches_change_a_bit(case: Case, seed: int) -> None:
    shuffle = np.random.default_rng(seed).permutation(len(case.right))
    index, other = index_of(case), index_of(case, shuffle)
    for weight in (None, case.weight):
        whole = index.bounds(case.scored, weight)
        one_by_one = [
            other.bounds(case.scored.take(np.array([row])), None if weight is None else weight[row : row + 1])
            for row in range(len(case.scored.score))
        ]
        if one_by_one:
            joined = Bounds(
                np.concatenate([one.lower for one in one_by_one]), np.concatenate([one.upper for one in one_by_one])
            )
            assert_same_bits(joined, whole)


@settings(deadline=None)
@given(case=cases())
def test_the_last_step_that_is_not_above_gives_the_bounds(case: Case) -> None:
    index = index_of(case)
    steps, found = index.steps, index.bounds(case.scored)
    starts = StepPlaces(steps).bounds(index.cell(case.scored), case.scored.score)[1]
    for row, (cell, score) in enumerate(zip(index.cell(case.scored).tolist(), case.scored.score.tolist(), strict=True)):
        rows = np.flatnonzero((steps.cell == cell) & (steps.score <= score))
        lower, upper, start = 0.0, 1.0, -np.inf
        if len(rows):
            last = rows[np.argmax(steps.score[rows])]
            lower, start = steps.lower[last], steps.score[last]
            upper = (steps.upper_at if start == score else steps.upper_above)[last]
        assert (found.lower[row], found.upper[row], starts[row]) == (lower, upper, start)


@settings(deadline=None)
@given(case=cases())
def test_steps_are_sorted_and_every_row_changes_something(case: Case) -> None:
    steps = index_of(case).steps
    same_cell = np.diff(steps.cell) == 0
    assert np.all(np.diff(steps.cell) >= 0)
    assert np.all(np.diff(steps.score)[same_cell] > 0)
    assert np.all(np.diff(steps.lower)[same_cell] >= 0)
    assert np.all(np.diff(steps.upper_above)[same_cell] >= 0)
    assert np.all(steps.upper_at <= steps.upper_above)
    changes = (np.diff(steps.lower) != 0) | (np.diff(steps.upper_above) != 0)
    assert np.all(changes[same_cell])
    first = np.flatnonzero(np.diff(steps.cell, prepend=-1))
    assert np.all(np.isneginf(steps.score[first]))
    assert np.isfinite(np.delete(steps.score, first)).all()
    assert np.array_equal(steps.cell[first], np.flatnonzero(index_of(case).cell_size))


@settings(deadline=None)
@given(case=cases())
def test_bounds_hold_each_other_and_rise_with_the_score(case: Case) -> None:
    index = index_of(case)
    scores = np.sort(np.concatenate([np.linspace(-0.1, 1.1, 25), case.mc.score]))
    for predicted in range(case.class_count):
        points = CellPoints(np.full(len(scores), predicted), np.zeros(len(scores), dtype=np.int64), scores)
        plain = index.bounds(points)
        assert np.all((plain.lower >= 0) & (plain.lower <= plain.upper) & (plain.upper <= 1))
        assert np.all(np.diff(plain.lower) >= 0)
        assert np.all(np.diff(plain.upper) >= 0)
        weighted = index.bounds(points, np.full(len(scores), 3.7))
        assert np.all(weighted.lower < weighted.upper)
        assert np.all(np.diff(weighted.lower) >= -1e-15)
        assert np.all(np.diff(weighted.upper) >= -1e-15)


@settings(deadline=None)
@given(case=cases(), weights=st.lists(st.floats(0.01, 1e6) | st.just(math.inf), min_size=2, max_size=2).map(sorted))
def test_a_greater_weight_moves_the_bounds_apart(case: Case, weights: list[float]) -> None:
    index = index_of(case)
    less, more = (index.bounds(case.scored, np.full(len(case.scored.score), weight)) for weight in weights)
    assert np.all(more.lower <= less.lower * (1 + 1e-15))
    assert np.all(more.upper >= less.upper * (1 - 1e-15))


def test_large_cells_agree_with_weight_one_and_with_another_division_of_the_work() -> None:
    """Tens of thousands of points, where the plain and the weighted search share only the minorant."""
    rng = np.random.default_rng(5)
    mc, scored = draw_points(rng, 30_000, 2, 0), draw_points(rng, 5_000, 2, 0)
    right = rng.random(30_000) < 0.3 + 0.6 * mc.score**2
    index = VennAbersIndex(mc, right, class_count=2)
    assert_same_bits(index.bounds(scored, np.ones(5_000)), index.bounds(scored))
    for predicted in range(2):
        inside, asked = mc.predicted == predicted, scored.predicted == predicted
        alone = VennAbersIndex(mc.take(inside), right[inside], class_count=2).bounds(scored.take(asked))
        whole = index.bounds(scored)
        assert_same_bits(alone, Bounds(whole.lower[asked], whole.upper[asked]))


def test_an_empty_cell_says_nothing() -> None:
    index = index_of_two([0.5], [True])
    points = CellPoints(np.array([1]), np.array([0]), np.array([0.9]))
    assert_same_bits(index.bounds(points), Bounds(np.zeros(1), np.ones(1)))
    assert_same_bits(index.bounds(points, np.array([2.0])), Bounds(np.zeros(1), np.ones(1)))


def index_of_two(scores: list[float], right: list[bool]) -> VennAbersIndex:
    """Points of class 0 of two classes."""
    count = len(scores)
    points = CellPoints(np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64), np.array(scores))
    return VennAbersIndex(points, np.array(right, dtype=np.bool_), class_count=2)


def test_evidence_shows_the_cell_and_the_steps_around_the_score() -> None:
    index = index_of_two([0.1, 0.2, 0.3, 0.4], [False, True, True, True])
    points = CellPoints(np.array([0, 0, 0, 1]), np.zeros(4, dtype=np.int64), np.array([0.05, 0.25, 0.9, 0.5]))
    found = index.evidence(points)
    assert found.cell.tolist() == [0, 0, 0, 1]
    assert found.cell_size.tolist() == [4, 4, 4, 0]
    assert found.cell_right.tolist() == [3, 3, 3, 0]
    assert found.step_score.tolist() == [-math.inf, 0.2, 0.4, -math.inf]
    assert found.next_score.tolist() == [0.1, 0.3, math.inf, math.inf]
    assert found.bounds.lower.tolist() == [0.0, 0.5, 0.75, 0.0]
    assert found.bounds.upper.tolist() == [0.5, 1.0, 1.0, 1.0]
    assert found.lower_before.tolist() == [0.0, 0.0, 2 / 3, 0.0]
    assert found.lower_after.tolist() == [0.0, 2 / 3, 0.75, 0.0]
    assert found.upper_before.tolist() == [0.5, 1.0, 1.0, 1.0]
    assert found.upper_after.tolist() == [1.0, 1.0, 1.0, 1.0]


@settings(deadline=None)
@given(case=cases())
def test_evidence_agrees_with_the_bounds_at_the_neighbouring_steps(case: Case) -> None:
    index = index_of(case)
    found, scored = index.evidence(case.scored), case.scored
    assert_same_bits(found.bounds, index.bounds(scored))
    assert np.all((found.step_score <= scored.score) & (scored.score < found.next_score))
    for score, expected in (
        (found.next_score, found.lower_after),
        (np.nextafter(found.step_score, -1), found.lower_before),
    ):
        known = np.isfinite(score)
        at = CellPoints(scored.predicted[known], scored.match_count[known], score[known])
        np.testing.assert_array_equal(index.bounds(at).lower, expected[known])
    for score, expected in (
        (np.nextafter(found.next_score, 2), found.upper_after),
        (np.nextafter(found.step_score, -1), found.upper_before),
    ):
        known = np.isfinite(score)
        at = CellPoints(scored.predicted[known], scored.match_count[known], score[known])
        np.testing.assert_array_equal(index.bounds(at).upper, expected[known])
    assert np.all(found.lower_before <= found.bounds.lower)
    assert np.all(found.bounds.lower <= found.lower_after)


@settings(deadline=None)
@given(case=cases())
def test_windows_hold_the_cells(case: Case) -> None:
    index = index_of(case)
    np.testing.assert_array_equal(np.sort(index.order), np.arange(len(case.right)))
    low, high = index.windows(case.scored)
    for row in range(len(low)):
        assert sorted(index.order[low[row] : high[row]]) == np.flatnonzero(case.cell_rows(row)).tolist()


@pytest.mark.parametrize(
    ("score", "right", "message"),
    [
        (np.array([0.5, math.nan]), np.array([True, True]), "point 1: expected a finite score, got nan"),
        (np.array([0.5, 0.5]), np.array([True]), "arrays of one length, got points 2, right 1"),
    ],
)
def test_points_that_do_not_fit_are_refused(score: FloatArray, right: BoolArray, message: str) -> None:
    points = CellPoints(np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64), score)
    with pytest.raises(InvalidInputError, match=message):
        VennAbersIndex(points, right, class_count=2)


def test_weights_that_are_not_positive_are_refused() -> None:
    points = CellPoints(np.array([0]), np.array([0]), np.array([0.9]))
    with pytest.raises(InvalidInputError, match=r"point 0: expected an up-weight above 0, got 0\.0"):
        index_of_two([0.5], [True]).bounds(points, np.zeros(1))
