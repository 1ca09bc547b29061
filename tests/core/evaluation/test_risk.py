"""Risk-coverage curves against a slow computation of the expectation over orders of equal points."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venn_admit.core.evaluation.curves import risk_curve

SMALL = st.lists(st.tuples(st.sampled_from([0.2, 0.5, 0.9, np.nan]), st.booleans()), min_size=1, max_size=6)
LARGER = st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.5, 0.9, np.nan]), st.booleans()), min_size=1, max_size=60)


def slow_area(points: list[tuple[float, bool]]) -> float:
    """The mean area over every order of the points that is descending in confidence, those without one last."""
    areas = []
    for order in permutations(points):
        values = [-1.0 if np.isnan(value) else value for value, _ in order]
        if values == sorted(values, reverse=True):
            errors = [not hit for _, hit in order]
            areas.append(np.mean([sum(errors[:k]) / k for k in range(1, len(errors) + 1)]))
    return float(np.mean(areas))


@given(SMALL)
def test_the_area_is_the_mean_over_the_orders_of_equal_points(points: list[tuple[float, bool]]) -> None:
    confidence, right = np.array([value for value, _ in points]), np.array([hit for _, hit in points])
    assert risk_curve("any", confidence, right).area == pytest.approx(slow_area(points), abs=1e-12)


@given(LARGER, st.randoms())
def test_the_order_of_the_points_changes_no_bit(points: list[tuple[float, bool]], random: object) -> None:
    shuffled = list(points)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    curves = [
        risk_curve("any", np.array([value for value, _ in part]), np.array([hit for _, hit in part]))
        for part in (points, shuffled)
    ]
    assert curves[0].area == curves[1].area
    np.testing.assert_array_equal(curves[0].coverage, curves[1].coverage)
    np.testing.assert_array_equal(curves[0].risk, curves[1].risk)


def test_the_curve_ends_where_no_threshold_admits_more() -> None:
    curve = risk_curve("any", np.array([0.9, 0.9, 0.5, np.nan]), np.array([True, False, True, False]))
    assert curve.coverage.tolist() == [0.5, 0.75]
    assert curve.risk.tolist() == [0.5, 1 / 3]


def test_without_a_confidence_the_area_is_the_share_wrong() -> None:
    curve = risk_curve("none", np.full(4, np.nan), np.array([True, False, True, True]))
    assert (curve.coverage.size, curve.area) == (0, 0.25)


def test_a_perfect_ranking_has_the_least_area() -> None:
    right = np.arange(100) < 80
    best = risk_curve("best", -np.arange(100.0), right).area
    worst = risk_curve("worst", np.arange(100.0), right).area
    chance = risk_curve("chance", np.zeros(100), right).area
    assert best < chance < worst
    assert chance == pytest.approx(0.2)
