"""Shares as whole numbers: hand-computed cases, and what holds for any points."""

from decimal import Decimal
from math import isnan, sqrt
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.tallies import (
    FEW,
    Tally,
    Verdict,
    point_accuracy,
    selective_accuracy,
    wilson_interval,
)
from service.core.types import BoolArray, IntArray
from service.errors import InvalidInputError

ALPHA = Decimal("0.1")
CLASSES = 3
NORMAL_QUANTILE = 1.959963984540054


@st.composite
def decided(draw: st.DrawFn) -> tuple[IntArray, IntArray, BoolArray]:
    """Labels, predictions (-1 where rejected) and who is admitted."""
    rows = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.booleans()), min_size=1, max_size=60))
    label, predicted, admitted = (np.array(column) for column in zip(*rows, strict=True))
    return label, np.where(admitted, predicted, -1), admitted.astype(np.bool_)


class TestTally:
    def test_shares(self) -> None:
        tally = Tally(correct=3, count=4, total=16)
        assert (tally.share, tally.portion) == (0.75, 0.25)

    def test_nothing_admitted_has_no_share(self) -> None:
        assert isnan(Tally(0, 0, 5).share)
        assert Tally(0, 0, 5).portion == 0

    @pytest.mark.parametrize(
        ("correct", "count", "alpha", "expected"),
        [
            (18, 20, "0.1", Verdict.WELL),
            (17, 20, "0.1", Verdict.UNDER),
            (FEW - 1, FEW - 1, "0.1", Verdict.FEW),
            (0, FEW - 1, "0.1", Verdict.FEW),
            (9, 10, "0.1", Verdict.WELL),
            (0, 0, "0.1", Verdict.FEW),
            # 1 - 0.9 is below 0.1 and 1 - 0.42 below 0.58 in binary; neither may change a verdict.
            (1, 10, "0.9", Verdict.WELL),
            (58, 100, "0.42", Verdict.WELL),
            (89_999, 100_000, "0.1", Verdict.UNDER),
        ],
    )
    def test_verdict(self, correct: int, count: int, alpha: str, expected: Verdict) -> None:
        assert Tally(correct, count, 100_000).verdict(Decimal(alpha)) is expected


class TestWilson:
    def test_by_hand(self) -> None:
        # None and all of 10: the far end is z^2 / (n + z^2) away.
        squared = NORMAL_QUANTILE**2
        low, high = wilson_interval([0, 10], [10, 10])
        assert low == pytest.approx([0, 10 / (10 + squared)])
        assert high == pytest.approx([squared / (10 + squared), 1])

    def test_no_point_says_nothing(self) -> None:
        assert [float(end) for end in wilson_interval(0, 0)] == [0.0, 1.0]

    @given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
    def test_holds_the_share_and_solves_its_equation(self, pair: tuple[int, int]) -> None:
        correct, count = pair
        share = correct / count
        low, high = (float(end) for end in wilson_interval(correct, count))
        assert 0 <= low <= share <= high <= 1
        for end in (low, high):
            assert abs(share - end) == pytest.approx(NORMAL_QUANTILE * sqrt(end * (1 - end) / count), abs=1e-7)

    @given(st.integers(1, 500), st.integers(1, 500))
    def test_is_symmetric_and_narrows_with_less_confidence(self, correct: int, wrong: int) -> None:
        low, high = wilson_interval(correct, correct + wrong)
        mirrored_low, mirrored_high = wilson_interval(wrong, correct + wrong)
        assert float(low) == pytest.approx(1 - float(mirrored_high))
        assert float(high) == pytest.approx(1 - float(mirrored_low))
        inner_low, inner_high = wilson_interval(correct, correct + wrong, confidence=0.5)
        assert low < inner_low < inner_high < high

    @pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
    def test_refuses_no_confidence(self, confidence: float) -> None:
        with pytest.raises(InvalidInputError, match="confidence"):
            wilson_interval(1, 2, confidence)


class TestSelectiveAccuracy:
    def test_by_hand(self) -> None:
        label = np.array([0, 0, 0, 1, 1, 2])
        predicted = np.array([0, 1, 0, 1, 1, -1])
        measured = selective_accuracy(label, predicted, np.array([1, 1, 0, 1, 1, 0], np.bool_), CLASSES)
        assert measured.per_true_class == (Tally(1, 2, 6), Tally(2, 2, 6), Tally(0, 0, 6))
        assert measured.per_predicted_class == (Tally(1, 1, 6), Tally(2, 3, 6), Tally(0, 0, 6))
        assert measured.overall == Tally(3, 4, 6)

    @given(decided())
    def test_both_views_count_the_same_points(self, points: tuple[IntArray, IntArray, BoolArray]) -> None:
        label, predicted, admitted = points
        measured = selective_accuracy(label, predicted, admitted, CLASSES)
        for view in (measured.per_true_class, measured.per_predicted_class):
            assert sum(tally.count for tally in view) == measured.overall.count == admitted.sum()
            assert sum(tally.correct for tally in view) == measured.overall.correct
            assert all(tally.total == label.size for tally in view)
            assert all(0 <= tally.correct <= tally.count for tally in view)
        assert [t.correct for t in measured.per_true_class] == [t.correct for t in measured.per_predicted_class]

    @given(decided(), st.randoms(use_true_random=False))
    def test_order_does_not_matter(self, points: tuple[IntArray, IntArray, BoolArray], random: Random) -> None:
        order = list(range(points[0].size))
        random.shuffle(order)
        label, predicted, admitted = points
        assert selective_accuracy(label[order], predicted[order], admitted[order], CLASSES) == selective_accuracy(
            label, predicted, admitted, CLASSES
        )

    def test_refuses_an_unlabelled_point_by_its_row(self) -> None:
        with pytest.raises(InvalidInputError, match=r"label must lie in \[0, 3\), got -1 in row 1"):
            selective_accuracy(np.array([0, -1]), np.array([0, 0]), np.array([True, True]), CLASSES)

    def test_refuses_unequal_lengths(self) -> None:
        with pytest.raises(InvalidInputError, match="admitted must have 2 rows"):
            selective_accuracy(np.array([0, 1]), np.array([0, 1]), np.array([True]), CLASSES)


class TestPointAccuracy:
    def test_by_hand(self) -> None:
        label = np.array([0, 0, 0, 1, 1, 1, 1, 1])
        predicted = np.array([0, 0, 1, 1, 1, 1, 1, 0])
        measured = point_accuracy(label, predicted, class_count=2)
        # Class 0: precision 2/3, recall 2/3. Class 1: precision 4/5, recall 4/5.
        assert measured.f_half == pytest.approx([2 / 3, 4 / 5])
        assert measured.f_half_macro == pytest.approx((2 / 3 + 4 / 5) / 2)
        assert measured.tallies.overall == Tally(6, 8, 8)

    def test_precision_counts_for_more_than_recall(self) -> None:
        label = np.array([0, 0, 0, 0, 1])
        predicted = np.array([0, 1, 1, 1, 1])
        measured = point_accuracy(label, predicted, class_count=2)
        # Class 0: precision 1, recall 1/4. Class 1: precision 1/4, recall 1.
        assert measured.f_half == pytest.approx([0.3125 / (0.25 + 0.25), 0.3125 / (0.0625 + 1)])

    def test_a_class_that_never_occurs_is_left_out_of_the_mean(self) -> None:
        measured = point_accuracy(np.array([0, 0]), np.array([0, 0]), CLASSES)
        assert np.isnan(measured.f_half).tolist() == [False, True, True]
        assert measured.f_half_macro == 1.0

    @given(decided())
    def test_agrees_with_precision_and_recall(self, points: tuple[IntArray, IntArray, BoolArray]) -> None:
        label, predicted = points[0], np.maximum(points[1], 0)
        measured = point_accuracy(label, predicted, CLASSES)
        for c in range(CLASSES):
            hits = int(((label == c) & (predicted == c)).sum())
            if hits:
                precision, recall = hits / (predicted == c).sum(), hits / (label == c).sum()
                assert measured.f_half[c] == pytest.approx(1.25 * precision * recall / (0.25 * precision + recall))
            elif (label == c).any() or (predicted == c).any():
                assert measured.f_half[c] == 0
        assert measured.tallies.overall.share == pytest.approx(float((label == predicted).mean()))
