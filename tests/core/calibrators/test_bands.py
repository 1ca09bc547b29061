"""Bins, band radius, windows, and the order statistics that are asked of them."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import reference
from tests.core.scenarios import Scenario, reordered, scenarios
from venn_admit.core.calibrators.bands import (
    WindowIndex,
    band_radius,
    bin_of,
    check_calibration_points,
    standard_deviation,
)
from venn_admit.core.calibrators.order_statistics import OrderStatistics
from venn_admit.core.types import CalibrationPoints
from venn_admit.errors import InvalidInputError, NotReadyError

SEEDS = st.integers(0, 2**32 - 1)
GRID = np.array([0.1 * step for step in range(8)])


def points_at(distances: list[float], *, match_count: int = 1) -> CalibrationPoints:
    """Right predictions of class 0."""
    count = len(distances)
    return CalibrationPoints(
        label=np.zeros(count, dtype=np.int64),
        predicted=np.zeros(count, dtype=np.int64),
        match_count=np.full(count, match_count),
        distance=np.array(distances),
        score=np.zeros(count),
    )


@settings(deadline=None)
@given(seed=SEEDS, size=st.integers(1, 200), distinct=st.integers(1, 40), windows=st.sampled_from([1, 16, 17, 50]))
def test_rank_smallest_is_that_of_the_sorted_window(seed: int, size: int, distinct: int, windows: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=distinct)[rng.integers(0, distinct, size)]
    low = rng.integers(0, size, windows)
    high = rng.integers(low, size) + 1
    rank = rng.integers(0, high - low) + 1
    expected = [np.sort(values[a:b])[k - 1] for a, b, k in zip(low, high, rank, strict=True)]
    np.testing.assert_array_equal(OrderStatistics(values).rank_smallest(low, high, rank), expected)


def test_order_statistics_of_no_values_answer_no_windows() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert OrderStatistics(np.zeros(0)).rank_smallest(nothing, nothing, nothing).shape == (0,)


@pytest.mark.parametrize(("low", "high", "rank"), [(0, 3, 1), (-1, 1, 1), (0, 2, 3), (0, 2, 0), (1, 1, 1)])
def test_order_statistics_refuse_windows_and_ranks_that_do_not_exist(low: int, high: int, rank: int) -> None:
    with pytest.raises(InvalidInputError, match="must"):
        OrderStatistics(np.array([1.0, 2.0])).rank_smallest(np.array([low]), np.array([high]), np.array([rank]))


def test_order_statistics_refuse_numbers_without_an_order() -> None:
    with pytest.raises(InvalidInputError, match="finite"):
        OrderStatistics(np.array([1.0, np.nan]))


def test_bins_of_q() -> None:
    edges = (0, 1, 6, 16, 25)
    np.testing.assert_array_equal(bin_of(np.array([0, 1, 5, 6, 15, 16, 24, 25]), edges), [0, 1, 1, 2, 2, 3, 3, 4])
    with pytest.raises(InvalidInputError, match="got -1"):
        bin_of(np.array([3, -1]), edges)


@settings(deadline=None)
@given(scenario=scenarios(), seed=SEEDS, delta=st.sampled_from([0.5, 1.0, 2.0]))
def test_band_radius_is_the_references_whatever_the_row_order(scenario: Scenario, seed: int, delta: float) -> None:
    distance = np.random.default_rng(seed).gamma(3.0, size=len(scenario.mc.label) + 2)
    known = points_at([0.0, 1.0])
    mc = CalibrationPoints(
        label=np.r_[scenario.mc.label, known.label],
        predicted=np.r_[scenario.mc.predicted, known.predicted],
        match_count=np.r_[scenario.mc.match_count, known.match_count],
        distance=distance,
        score=np.r_[scenario.mc.score, known.score],
    )
    radius = band_radius(mc, delta)
    assert radius.omega == delta * radius.s_hat
    assert math.isclose(radius.omega, reference.radius(mc, delta), rel_tol=1e-12)
    shuffled = reordered(mc, np.random.default_rng(seed + 1).permutation(len(distance)))
    assert band_radius(shuffled, delta) == radius


@given(
    st.lists(st.floats(0, 1e100, allow_subnormal=False), min_size=2, max_size=600),
    st.sampled_from([1.0, 0.25, 1e-120]),
)
def test_the_standard_deviation_is_rounded_once(values: list[float], scale: float) -> None:
    """That is what the standard library gives, whose fractions take ten times as long."""
    scaled = [value * scale for value in values]
    assert standard_deviation(np.array(scaled)) == statistics.stdev(scaled)


def test_band_radius_needs_two_right_predictions_with_a_match() -> None:
    with pytest.raises(NotReadyError, match="got 1 of 1"):
        band_radius(points_at([1.0]), 1.0)
    with pytest.raises(NotReadyError, match="got 0 of 3"):
        band_radius(points_at([1.0, 2.0, 3.0], match_count=0), 1.0)


def test_band_radius_of_points_at_one_distance_is_zero_and_an_unbounded_delta_stays_so() -> None:
    one_distance = points_at([0.1, 0.1, 0.1])
    assert band_radius(one_distance, 1.0).omega == 0.0
    assert band_radius(one_distance, math.inf).omega == math.inf
    assert band_radius(points_at([0.1, 0.3]), math.inf).omega == math.inf


@settings(deadline=None)
@given(seed=SEEDS, size=st.integers(0, 120), omega=st.sampled_from([0.0, 0.1, 0.3, 0.35, math.inf]))
def test_windows_hold_exactly_the_points_of_the_group_within_the_closed_interval(
    seed: int, size: int, omega: float
) -> None:
    rng = np.random.default_rng(seed)
    group, distance = rng.integers(0, 3, size), rng.choice(GRID, size)
    index = WindowIndex(group, distance)
    asked, at = rng.integers(0, 4, (20, 5)), rng.choice(GRID, 20)
    low, high = index.windows(asked, at, omega)
    for row, column in np.ndindex(asked.shape):
        within = (distance >= at[row] - omega) & (distance <= at[row] + omega)
        expected = np.flatnonzero(within & (group == asked[row, column]))
        found = index.order[low[row, column] : high[row, column]]
        np.testing.assert_array_equal(np.sort(found), expected)
    np.testing.assert_array_equal(index.windows(asked[:, 2], at, omega), (low[:, 2], high[:, 2]))


@settings(deadline=None)
@given(
    seed=SEEDS,
    sizes=st.tuples(st.integers(0, 120), st.integers(1, 120)),
    groups=st.sampled_from([range(4), range(1, 3), range(3, 5)]),
    omega=st.sampled_from([0.0, 0.1, 0.35, math.inf]),
)
def test_runs_spread_out_are_the_windows_and_never_more_than_the_points_that_come_and_go(
    seed: int, sizes: tuple[int, int], groups: range, omega: float
) -> None:
    size, asked = sizes
    rng = np.random.default_rng(seed)
    group, distance = rng.integers(0, 4, size), rng.choice(GRID, size)
    index = WindowIndex(group, distance)
    at = np.sort(rng.choice([*GRID, *rng.random(5)], asked))
    low, high = index.windows(np.tile(np.asarray(groups), (asked, 1)), at, omega)
    runs = index.window_runs(groups, at, omega)
    np.testing.assert_array_equal(runs.spread(runs.low), low)
    np.testing.assert_array_equal(runs.spread(runs.high), high)
    assert len(runs.length) <= 2 * np.isin(group, groups).sum() + len(groups)


@settings(deadline=None)
@given(seed=SEEDS)
def test_sorted_order_does_not_depend_on_the_row_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    group, distance = rng.integers(0, 3, 60), rng.choice(GRID, 60)
    first_tie_break, last_tie_break = rng.integers(0, 3, 60), rng.permutation(60)
    shuffle = rng.permutation(60)
    order = WindowIndex(group, distance, first_tie_break, last_tie_break).order
    shuffled_order = WindowIndex(
        group[shuffle], distance[shuffle], first_tie_break[shuffle], last_tie_break[shuffle]
    ).order
    np.testing.assert_array_equal(shuffle[shuffled_order], order)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("label", 2, r"label must be in \[0, 2\)"),
        ("predicted", -1, r"predicted must be in \[0, 2\)"),
        ("match_count", -1, "q >= 0"),
        ("distance", -0.5, "d >= 0"),
        ("distance", np.inf, "finite"),
        ("score", np.nan, "finite"),
    ],
)
def test_calibration_points_out_of_range_are_refused(field: str, value: float, message: str) -> None:
    points = points_at([0.1, 0.2])
    getattr(points, field)[1] = value
    with pytest.raises(InvalidInputError, match=message):
        check_calibration_points(points, 2)


def test_calibration_points_of_unequal_lengths_are_refused() -> None:
    whole = points_at([0.1, 0.2])
    with pytest.raises(InvalidInputError, match="score 1"):
        check_calibration_points(
            CalibrationPoints(whole.label, whole.predicted, whole.match_count, whole.distance, whole.score[:1]),
            2,
        )


@pytest.mark.parametrize("omega", [-0.1, math.nan])
def test_a_radius_that_is_none_is_refused(omega: float) -> None:
    index = WindowIndex(np.array([0]), np.array([0.5]))
    with pytest.raises(InvalidInputError, match="omega must be at least 0"):
        index.windows(np.array([0]), np.array([0.5]), omega)
    with pytest.raises(InvalidInputError, match="omega must be at least 0"):
        index.window_runs(range(1), np.array([0.5]), omega)
