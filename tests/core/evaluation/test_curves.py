"""Reliability, coverage curves and the accuracy grid: hand-computed cases, and what holds for any points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venn_admit.core.evaluation.curves import (
    accuracy_grid,
    coverage_curve,
    coverage_curves,
    default_match_bins,
    reliability,
)
from venn_admit.core.evaluation.tallies import wilson_interval
from venn_admit.core.types import BoolArray, FloatArray
from venn_admit.errors import InvalidInputError


@st.composite
def scored(draw: st.DrawFn) -> tuple[FloatArray, BoolArray]:
    """Scores with ties and missing ones, and whether each prediction is right."""
    score = st.one_of(st.just(float("nan")), st.integers(0, 8).map(lambda eighth: eighth / 8))
    rows = draw(st.lists(st.tuples(score, st.booleans()), max_size=60))
    return np.array([s for s, _ in rows], np.float64), np.array([hit for _, hit in rows], np.bool_)


class TestReliability:
    def test_by_hand(self) -> None:
        lower = np.array([0.1, 0.2, 0.5, np.nan, 0.9, 1.0])
        correct = np.array([1, 0, 1, 1, 1, 0], np.bool_)
        bins = reliability(lower, correct, edges=(0.0, 0.25, 0.5, 0.75, 1.0))
        assert bins.count.tolist() == [2, 0, 1, 2]
        assert bins.frequency == pytest.approx([0.5, np.nan, 1.0, 0.5], nan_ok=True)
        assert bins.mean_probability == pytest.approx([0.15, np.nan, 0.5, 0.95], nan_ok=True)
        assert bins.few.tolist() == [True, False, True, True]
        low, high = wilson_interval([1, 0, 1, 1], [2, 0, 1, 2])
        assert bins.interval_low.tolist() == low.tolist()
        assert bins.interval_high.tolist() == high.tolist()

    def test_ten_points_are_not_few(self) -> None:
        bins = reliability(np.full(10, 0.3), np.ones(10, np.bool_), edges=(0.0, 0.5, 1.0))
        assert bins.few.tolist() == [False, False]

    @given(scored())
    def test_every_known_point_is_in_one_bin(self, points: tuple[FloatArray, BoolArray]) -> None:
        lower, correct = points
        bins = reliability(lower, correct)
        assert bins.count.sum() == (~np.isnan(lower)).sum()
        filled = bins.count > 0
        assert np.nansum(bins.frequency * bins.count) == pytest.approx(correct[~np.isnan(lower)].sum())
        for inside in (bins.frequency[filled], bins.mean_probability[filled]):
            assert ((inside >= 0) & (inside <= 1)).all()
        assert (bins.edges[:-1][filled] <= bins.mean_probability[filled] + 1e-12).all()
        assert (bins.mean_probability[filled] <= bins.edges[1:][filled] + 1e-12).all()
        assert (bins.interval_low[filled] <= bins.frequency[filled]).all()
        assert (bins.frequency[filled] <= bins.interval_high[filled]).all()


class TestCoverageCurve:
    def test_by_hand(self) -> None:
        score = np.array([0.5, 0.9, np.nan, 0.9, 0.2])
        curve = coverage_curve(score, np.array([0, 1, 1, 0, 1], np.bool_))
        assert curve.threshold.tolist() == [0.9, 0.5, 0.2]
        assert curve.count.tolist() == [2, 3, 4]
        assert curve.correct.tolist() == [1, 1, 2]
        assert curve.total == 5

    def test_no_admissible_point(self) -> None:
        curve = coverage_curve(np.full(3, np.nan), np.ones(3, np.bool_))
        assert (curve.threshold.size, curve.correct.size, curve.count.size, curve.total) == (0, 0, 0, 3)

    @given(scored())
    def test_each_entry_is_what_its_threshold_admits(self, points: tuple[FloatArray, BoolArray]) -> None:
        score, correct = points
        curve = coverage_curve(score, correct)
        assert curve.threshold.tolist() == sorted(set(score[~np.isnan(score)].tolist()), reverse=True)
        for threshold, hits, count in zip(curve.threshold, curve.correct, curve.count, strict=True):
            admitted = score >= threshold
            assert (hits, count) == (correct[admitted].sum(), admitted.sum())

    def test_classes_apart(self) -> None:
        score = np.array([0.5, 0.9, 0.7])
        correct = np.array([1, 1, 0], np.bool_)
        first, second, third = coverage_curves(score, correct, np.array([0, 0, 2]), class_count=3)
        assert (first.threshold.tolist(), first.correct.tolist(), first.total) == ([0.9, 0.5], [1, 2], 2)
        assert (second.threshold.tolist(), second.total) == ([], 0)
        assert (third.correct.tolist(), third.count.tolist(), third.total) == ([0], [1], 1)

    def test_refuses_a_class_out_of_range(self) -> None:
        with pytest.raises(InvalidInputError, match="group must lie in"):
            coverage_curves(np.array([0.5]), np.array([True]), np.array([2]), class_count=2)


class TestMatchBins:
    @pytest.mark.parametrize(
        ("neighbour_count", "expected"),
        [(1, (0, 1)), (2, (0, 1, 2)), (5, (0, 1, 2, 4, 5)), (25, (0, 1, 6, 16, 25))],
    )
    def test_default(self, neighbour_count: int, expected: tuple[int, ...]) -> None:
        assert default_match_bins(neighbour_count) == expected


class TestAccuracyGrid:
    def test_by_hand(self) -> None:
        grid = accuracy_grid(
            match_count=np.array([0, 0, 1, 2, 3, 3]),
            distance=np.array([1.0, 4.0, 2.0, 3.0, 1.0, 4.0]),
            correct=np.array([0, 1, 1, 0, 1, 1], np.bool_),
            neighbour_count=3,
            match_bins=(0, 1, 3),
            distance_bins=2,
        )
        assert grid.match_edges.tolist() == [0, 1, 3, 4]
        assert grid.distance_edges.tolist() == [1.0, 2.0, 4.0]
        assert grid.count.tolist() == [[1, 1], [0, 2], [1, 1]]
        assert grid.correct.tolist() == [[0, 1], [0, 1], [1, 1]]

    def test_equal_distances_share_one_bin(self) -> None:
        grid = accuracy_grid(np.zeros(7, np.int64), np.full(7, 2.0), np.ones(7, np.bool_), 3, (0, 1))
        assert grid.distance_edges.tolist() == [2.0, 2.0]
        assert grid.count.tolist() == [[7], [0]]

    @given(
        st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.booleans()), min_size=1, max_size=60),
        st.integers(1, 6),
    )
    def test_every_point_is_in_one_cell(self, rows: list[tuple[int, int, bool]], distance_bins: int) -> None:
        match_count, distance, correct = (np.array(column) for column in zip(*rows, strict=True))
        grid = accuracy_grid(match_count, distance.astype(np.float64), correct, 5, (0, 1, 3, 5), distance_bins)
        assert grid.count.sum() == len(rows)
        assert grid.correct.sum() == correct.sum()
        assert (grid.correct <= grid.count).all()
        assert (grid.count.sum(axis=0) > 0).all()
        assert 1 <= grid.count.shape[1] <= distance_bins
        assert grid.distance_edges.size == grid.count.shape[1] + 1
        below_three = match_count < 3
        assert grid.count[:2].sum() == below_three.sum()
        near = distance < grid.distance_edges[1]
        assert grid.count.shape[1] == 1 or grid.count[:, 0].sum() == near.sum()

    @pytest.mark.parametrize("match_bins", [(), (1, 2), (0, 2, 1), (0, 0, 1)])
    def test_refuses_bins_that_do_not_ascend_from_zero(self, match_bins: tuple[int, ...]) -> None:
        with pytest.raises(InvalidInputError, match="ascending lower edges, the first of them 0"):
            accuracy_grid(np.array([0]), np.array([1.0]), np.array([True]), 3, match_bins)

    def test_refuses_no_point(self) -> None:
        with pytest.raises(InvalidInputError, match="at least one point"):
            accuracy_grid(np.array([], np.int64), np.array([]), np.array([], np.bool_), 3, (0, 1))
