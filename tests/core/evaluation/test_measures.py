"""Shares, coverage and F0.5 of a method: hand-computed cases, and what holds for any points."""

from decimal import Decimal
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venn_admit.core.documents import Documents
from venn_admit.core.evaluation.measures import (
    MethodMeasures,
    measure_admission,
    measure_method,
    point_accuracy,
)
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.core.types import BoolArray, IntArray, MethodSets
from venn_admit.errors import InvalidInputError

CLASSES = 3


@st.composite
def sets(draw: st.DrawFn) -> tuple[IntArray, IntArray, BoolArray]:
    """Labels, predictions, and sets that hold the predictions."""
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, 2), st.integers(0, 2), st.lists(st.booleans(), min_size=3, max_size=3)),
            min_size=1,
            max_size=60,
        )
    )
    label, predicted, included = (np.array(column) for column in zip(*rows, strict=True))
    return label, predicted, included | (predicted[:, None] == np.arange(CLASSES))


def measure(label: IntArray, predicted: IntArray, included: BoolArray) -> MethodMeasures:
    return measure_method(MethodSets("APS", predicted, included), label, None)


class TestMethod:
    def test_by_hand(self) -> None:
        label = np.array([0, 0, 0, 1, 1, 2])
        predicted = np.array([0, 1, 0, 1, 1, 0])
        included = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 1, 0], [0, 1, 0], [1, 1, 1]], np.bool_)
        measured = measure(label, predicted, included)
        assert measured.singletons.per_true_class == (Tally(1, 2, 6), Tally(2, 2, 6), Tally(0, 0, 6))
        assert measured.singletons.per_predicted_class == (Tally(1, 1, 6), Tally(2, 3, 6), Tally(0, 0, 6))
        assert measured.singletons.overall == Tally(3, 4, 6)
        assert measured.coverage.per_true_class == (Tally(2, 3, 6), Tally(2, 2, 6), Tally(1, 1, 6))
        assert measured.coverage.per_predicted_class == (Tally(3, 3, 6), Tally(2, 3, 6), Tally(0, 0, 6))
        assert measured.coverage.overall == Tally(5, 6, 6)
        assert [(stratum.least, stratum.most, stratum.covered) for stratum in measured.by_size] == [
            (1, 1, Tally(3, 4, 6)),
            (2, 2, Tally(1, 1, 6)),
            (3, 3, Tally(1, 1, 6)),
        ]
        assert measured.mean_size == 1.5

    @given(sets())
    def test_all_views_count_the_same_points(self, points: tuple[IntArray, IntArray, BoolArray]) -> None:
        measured = measure(*points)
        for tallies in (measured.singletons, measured.coverage):
            for view in (tallies.per_true_class, tallies.per_predicted_class):
                assert sum(tally.count for tally in view) == tallies.overall.count
                assert sum(tally.correct for tally in view) == tallies.overall.correct
                assert all(tally.total == points[0].size for tally in view)
        assert measured.coverage.overall.count == points[0].size
        assert sum(stratum.covered.count for stratum in measured.by_size) == points[0].size
        assert sum(stratum.covered.correct for stratum in measured.by_size) == measured.coverage.overall.correct
        single = [stratum.covered for stratum in measured.by_size if stratum.most == 1]
        assert single in ([], [measured.singletons.overall])
        true, said = measured.singletons.per_true_class, measured.singletons.per_predicted_class
        assert [tally.correct for tally in true] == [tally.correct for tally in said]

    @settings(max_examples=30, deadline=None)  # each draws a thousand samples
    @given(sets(), st.randoms(use_true_random=False))
    def test_order_does_not_matter(self, points: tuple[IntArray, IntArray, BoolArray], random: Random) -> None:
        order = list(range(points[0].size))
        random.shuffle(order)
        label, predicted, included = points
        # As text, since records of arrays equal themselves alone.
        assert repr(measure(label[order], predicted[order], included[order])) == repr(measure(*points))
        shuffled = point_accuracy(label[order], predicted[order], CLASSES)
        assert repr(shuffled) == repr(point_accuracy(label, predicted, CLASSES))

    @pytest.mark.parametrize(
        ("class_count", "sizes", "expected"),
        [
            (10, [1, 10], [(1, 1), (10, 10)]),
            (11, [1, 2, 3, 4, 6, 7, 11], [(1, 1), (2, 3), (4, 6), (7, 10), (11, 11)]),
            (50, [11, 50], [(11, 50)]),
            (1200, [100, 101, 1000, 1001, 1200], [(11, 100), (101, 1000), (1001, 1200)]),
        ],
    )
    def test_strata_of_sizes(self, class_count: int, sizes: list[int], expected: list[tuple[int, int]]) -> None:
        included = np.arange(class_count) < np.array(sizes)[:, None]
        zeros = np.zeros(len(sizes), np.int64)
        assert [(one.least, one.most) for one in measure(zeros, zeros, included).by_size] == expected

    def test_documents_reach_every_cell(self) -> None:
        label = np.array([0, 0, 1, 1])
        method = MethodSets("APS", label, label[:, None] == np.arange(2))
        measured = measure_method(method, label, Documents(np.array([0, 0, 0, 1]), 2))
        assert [tally.documents for tally in measured.coverage.per_true_class] == [1, 2]
        assert measured.singletons.overall.documents == measured.by_size[0].covered.documents == 2

    def test_refuses_an_unlabelled_point_by_its_row(self) -> None:
        with pytest.raises(InvalidInputError, match=r"label must lie in \[0, 2\), got -1 in row 1"):
            measure(np.array([0, -1]), np.array([0, 0]), np.ones((2, 2), np.bool_))

    def test_refuses_unequal_lengths(self) -> None:
        with pytest.raises(InvalidInputError, match="included of 'APS' must have 2 rows"):
            measure(np.array([0, 1]), np.array([0, 1]), np.ones((1, 2), np.bool_))

    def test_refuses_a_set_without_its_prediction(self) -> None:
        with pytest.raises(InvalidInputError, match="'APS' to hold its prediction, got one that does not in row 1"):
            measure(np.array([0, 1]), np.array([0, 0]), np.array([[1, 0], [0, 1]], np.bool_))


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

    @settings(max_examples=30, deadline=None)
    @given(sets())
    def test_agrees_with_precision_and_recall(self, points: tuple[IntArray, IntArray, BoolArray]) -> None:
        label, predicted, _ = points
        measured = point_accuracy(label, predicted, CLASSES)
        for c in range(CLASSES):
            hits = int(((label == c) & (predicted == c)).sum())
            if hits:
                precision, recall = hits / (predicted == c).sum(), hits / (label == c).sum()
                assert measured.f_half[c] == pytest.approx(1.25 * precision * recall / (0.25 * precision + recall))
            elif (label == c).any() or (predicted == c).any():
                assert measured.f_half[c] == 0
        assert measured.tallies.overall.share == pytest.approx(float((label == predicted).mean()))

    def test_the_interval_of_f_half_is_that_of_resampled_points(self) -> None:
        """Against a bootstrap by the definition, point by point."""
        random = np.random.default_rng(0)
        label = random.integers(0, 2, 300)
        predicted = np.where(random.random(300) < 0.8, label, 1 - label)
        low, high = point_accuracy(label, predicted, 2).f_half_interval

        def f_half(rows: IntArray) -> float:
            y, said = label[rows], predicted[rows]
            hits = [((y == c) & (said == c)).sum() for c in range(2)]
            return float(np.mean([1.25 * hits[c] / (0.25 * (y == c).sum() + (said == c).sum()) for c in range(2)]))

        drawn = [f_half(random.integers(300, size=300)) for _ in range(2000)]
        assert [low, high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]).tolist(), abs=0.006)

    def test_documents_widen_the_interval_of_f_half(self) -> None:
        label = np.repeat(np.arange(60) % 2, 20)
        predicted = np.where(np.repeat(np.arange(60) % 5, 20) > 0, label, 1 - label)
        independent = point_accuracy(label, predicted, 2).f_half_interval
        clustered = point_accuracy(label, predicted, 2, Documents(np.repeat(np.arange(60), 20), 60)).f_half_interval
        ratio = (clustered[1] - clustered[0]) / (independent[1] - independent[0])
        assert ratio == pytest.approx(np.sqrt(20), rel=0.2)


class TestAdmission:
    LABEL = np.array([0, 0, 0, 1, 1, 2])
    PREDICTED = np.array([0, 1, 0, 1, 1, 0])

    def test_by_hand(self) -> None:
        admitted = np.array([1, 1, 0, 1, 1, 0], np.bool_)
        measured = measure_admission(self.LABEL, self.PREDICTED, admitted, CLASSES, None)
        assert measured.admitted == Tally(4, 6, 6)
        assert measured.right.per_true_class == (Tally(1, 2, 6), Tally(2, 2, 6), Tally(0, 0, 6))
        assert measured.right.per_predicted_class == (Tally(1, 1, 6), Tally(2, 3, 6), Tally(0, 0, 6))
        assert measured.right.overall == Tally(3, 4, 6)

    def test_a_class_without_admitted_points_falls_short_of_nothing(self) -> None:
        def reaches(admitted: list[int], alpha: str) -> bool:
            measured = measure_admission(self.LABEL, self.PREDICTED, np.array(admitted, np.bool_), CLASSES, None)
            return measured.every_class_reaches(Decimal(alpha))

        assert reaches([1, 0, 0, 1, 1, 0], "0.000001")
        assert reaches([1, 1, 0, 1, 1, 0], "0.5")  # exactly one half of true class 0
        assert not reaches([1, 1, 0, 1, 1, 0], "0.499999")
        assert not reaches([1, 0, 0, 1, 1, 1], "0.5")  # true class 2
        alone = measure_admission(np.array([0, 0]), np.array([0, 1]), np.array([1, 0], np.bool_), CLASSES, None)
        assert alone.every_predicted_class_reaches(Decimal("0.1"))

    def test_intervals_are_of_documents(self) -> None:
        documents = Documents(np.array([0, 0, 1, 1, 2, 2]), 3)
        admitted = np.array([1, 1, 0, 1, 0, 0], np.bool_)
        measured = measure_admission(self.LABEL, self.PREDICTED, admitted, CLASSES, documents)
        assert (measured.admitted.documents, measured.right.overall.documents) == (3, 2)
        low, high = measured.admitted.interval
        assert low <= 0.5 <= high

    def test_other_lengths_are_refused(self) -> None:
        with pytest.raises(InvalidInputError, match="admitted must have 6 rows"):
            measure_admission(self.LABEL, self.PREDICTED, np.ones(5, np.bool_), CLASSES, None)
