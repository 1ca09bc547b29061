"""The partition table and the methods compared, on points small enough to count by hand and on real ones."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from venn_admit.core.evaluation.measures import measure_method
from venn_admit.core.evaluation.partitions import partition_table
from venn_admit.core.evaluation.points import EvaluationPoints, check_points, standard_methods
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.core.types import AdmitOutcome, Approximation, MethodSets
from venn_admit.errors import InvalidInputError

GOLDEN = Path(__file__).parents[2] / "golden" / "sentiment.npz"
ALPHA = Decimal("0.1")
K = 3
APS = MethodSets(
    "APS", np.array([0, 0, 1, 1, 1, 1]), np.array([[1, 0], [1, 0], [1, 1], [1, 1], [0, 1], [0, 1]], np.bool_)
)


@pytest.fixture
def points() -> EvaluationPoints:
    """Six points of two classes; K is 3 and the median of d 3.5."""
    label = np.array([0, 0, 1, 1, 1, 0])
    predicted = np.array([0, 0, 1, 1, 0, 1])
    even = np.log(np.array([0.9, 0.8, 0.7, 0.6, 0.3, 0.2]))  # of the true class
    odd = np.log(1 - np.exp(even))
    logits = np.where(label[:, None] == np.arange(2), even[:, None], odd[:, None])  # (n, C)
    return EvaluationPoints(
        label=label,
        class_count=2,
        network_predicted=label,
        view=Approximation(
            logits=logits + 700.0,
            predicted=predicted,
            match_count=np.array([3, 3, 0, 2, 0, 3]),
            distance=np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        ),
        localizer_predicted=None,
        admit=AdmitOutcome(
            included=np.array([[1, 0], [1, 0], [0, 1], [1, 1], [1, 0], [1, 1]], np.bool_),
            lower_plain=np.array([0.95, 0.92, 0.91, np.nan, 0.5, np.nan]),
            upper_plain=np.array([0.96, 0.93, 0.92, np.nan, 0.6, np.nan]),
            lower_weighted=np.array([0.94, 0.4, 0.91, np.nan, 0.5, np.nan]),
            upper_weighted=np.array([0.97, 0.95, 0.92, np.nan, 0.7, np.nan]),
            admitted_plain=np.array([1, 1, 1, 0, 0, 0], np.bool_),
            admitted_weighted=np.array([1, 0, 1, 0, 0, 0], np.bool_),
        ),
        comparisons=(APS,),
    )


class TestMethods:
    def test_by_hand(self, points: EvaluationPoints) -> None:
        sets = {method.name: method.included.astype(int).tolist() for method in standard_methods(points, K)}
        zero, one, both = [1, 0], [0, 1], [1, 1]
        assert list(sets.items()) == [
            ("KNN", [zero, zero, one, one, zero, one]),
            ("APS", [zero, zero, both, both, one, one]),
            ("ADMIT", [zero, zero, one, both, zero, both]),
            ("Venn-ADMIT plain", [zero, zero, one, both, both, both]),
            ("Venn-ADMIT plain, q = K", [zero, zero, both, both, both, both]),
            ("Venn-ADMIT weighted", [zero, both, one, both, both, both]),
            ("Venn-ADMIT weighted, q = K", [zero, both, both, both, both, both]),
        ]

    def test_the_prediction_is_that_of_the_method(self, points: EvaluationPoints) -> None:
        for method in standard_methods(points, K):
            expected = APS.predicted if method.name == "APS" else points.knn.predicted
            assert method.predicted.tolist() == expected.tolist()

    def test_golden_shares(self) -> None:
        """The measures of real points agree with a count point by point."""
        golden = np.load(GOLDEN)
        label, decision = golden["score_y"].astype(np.int64), golden["score_decision_weighted"]
        included = (golden["score_predicted"][:, None] == np.arange(2)) | (decision < 0)[:, None]
        measured = measure_method(MethodSets("weighted", golden["score_predicted"], included), label, None).singletons
        admitted = [(int(y), int(c)) for y, c in zip(label, decision, strict=True) if c >= 0]
        assert admitted
        assert measured.overall == Tally(sum(y == c for y, c in admitted), len(admitted), 500)
        for c in range(2):
            of_true = [said == y for y, said in admitted if y == c]
            of_said = [said == y for y, said in admitted if said == c]
            assert measured.per_true_class[c] == Tally(sum(of_true), len(of_true), 500)
            assert measured.per_predicted_class[c] == Tally(sum(of_said), len(of_said), 500)


class TestPartitionTable:
    def test_by_hand(self, points: EvaluationPoints) -> None:
        table = partition_table(points, K, ALPHA)
        rows = {(row.matches, row.distances): row for row in table.rows}
        assert table.median == 3.5
        assert len(rows) == len(table.rows) == 9

        full_near = rows["q = K", "d < median"]
        assert full_near.overall.tally == Tally(2, 2, 6)
        assert full_near.per_class[0].tally == Tally(2, 2, 6)
        # Linear between the two probabilities .8 and .9, a tenth of the way.
        assert full_near.per_class[0].threshold == pytest.approx(0.81)
        assert full_near.per_class[1].tally == Tally(0, 0, 6)
        assert np.isnan(full_near.per_class[1].threshold)

        assert rows["q = K", "any d"].overall.tally == Tally(2, 3, 6)
        assert rows["q = 0", "d >= median"].per_class[1].tally == Tally(0, 1, 6)
        assert rows["q = 0", "d >= median"].per_class[1].threshold == pytest.approx(0.3)
        everything = rows["any q", "any d"]
        assert everything.overall.tally == Tally(4, 6, 6)
        assert everything.overall.threshold == pytest.approx(0.25)
        assert [cell.tally for cell in everything.per_class] == [Tally(2, 3, 6), Tally(2, 3, 6)]

    def test_a_point_at_the_median_is_above(self, points: EvaluationPoints) -> None:
        table = partition_table(with_view(points, distance=np.full(6, 2.0)), K, ALPHA)
        rows = {(row.matches, row.distances): row.overall.tally.count for row in table.rows}
        assert rows["any q", "d < median"] == 0
        assert rows["any q", "d >= median"] == 6

    @given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(2, 4))
    def test_parts_add_up(self, seed: int, count: int, classes: int) -> None:
        table = partition_table(random_points(seed, count, classes), K, ALPHA)
        rows = {(row.matches, row.distances): row for row in table.rows}
        for matches in ("q = 0", "q = K", "any q"):
            near, far, both = (rows[matches, side] for side in ("d < median", "d >= median", "any d"))
            assert near.overall.tally.count + far.overall.tally.count == both.overall.tally.count
        for row in table.rows:
            assert sum(cell.tally.count for cell in row.per_class) == row.overall.tally.count
            assert sum(cell.tally.correct for cell in row.per_class) == row.overall.tally.correct
            assert row.overall.tally.count == 0 or 0 <= row.overall.threshold <= 1

    @given(st.integers(0, 2**32 - 1))
    def test_order_does_not_matter(self, seed: int) -> None:
        points = random_points(seed, 30, 3)
        order = np.random.default_rng(seed).permutation(30)
        shuffled = replace(
            points,
            view=points.knn.take(order),
            **{
                name: getattr(points, name)[order]
                for name in EvaluationPoints.__dataclass_fields__
                if isinstance(getattr(points, name), np.ndarray)
            },
        )
        # As text, since a threshold without points is NaN and equals nothing.
        assert repr(partition_table(shuffled, K, ALPHA)) == repr(partition_table(points, K, ALPHA))


class TestChecks:
    def test_accepts(self, points: EvaluationPoints) -> None:
        check_points(points)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"label": np.array([0, 0, 1, 1, 1, -1])}, r"label must lie in \[0, 2\), got -1 in row 5"),
            ({"view": {"predicted": np.array([0, 0, 1, 2, 0, 1])}}, "predicted .* got 2 in row 3"),
            ({"view": {"logits": np.zeros((6, 3))}}, r"logits of 2 classes, got shape \(6, 3\)"),
            ({"localizer_predicted": np.array([0])}, "localizer_predicted must have 6 rows"),
            ({"view": {"distance": np.array([1.0])}}, "distance must have 6 rows, one per label; got 1"),
            ({"admit": {"admitted_plain": np.full(5, True)}}, "admitted_plain must have 6 rows"),
            ({"admit": {"included": np.ones((6, 3), np.bool_)}}, r"same shape as logits, \(6, 2\); got \(6, 3\)"),
            ({"label": np.array([], np.int64)}, "at least one labelled point"),
        ],
    )
    def test_refuses(self, points: EvaluationPoints, change: dict[str, Any], message: str) -> None:
        assert points.admit is not None
        change = {
            key: replace(getattr(points, key), **new) if isinstance(new, dict) else new for key, new in change.items()
        }
        with pytest.raises(InvalidInputError, match=message):
            check_points(replace(points, **change))


def with_view(points: EvaluationPoints, **change: Any) -> EvaluationPoints:
    return replace(points, view=replace(points.knn, **change))


def random_points(seed: int, count: int, classes: int) -> EvaluationPoints:
    """Points without any structure, with many equal distances."""
    random = np.random.default_rng(seed)
    logits = random.normal(size=(count, classes))
    predicted = logits.argmax(axis=1)
    lower = np.where(random.random(count) < 0.5, random.random(count), np.nan)
    return EvaluationPoints(
        label=random.integers(0, classes, count),
        class_count=classes,
        network_predicted=predicted,
        view=Approximation(
            logits=logits,
            predicted=predicted,
            match_count=random.integers(0, K + 1, count),
            distance=random.integers(0, 5, count).astype(np.float64),
        ),
        localizer_predicted=predicted,
        admit=AdmitOutcome(
            included=(random.random((count, classes)) < 0.5) | (predicted[:, None] == np.arange(classes)),
            lower_plain=lower,
            upper_plain=lower,
            lower_weighted=lower,
            upper_weighted=lower,
            admitted_plain=lower >= 0.9,
            admitted_weighted=lower >= 0.9,
        ),
    )
