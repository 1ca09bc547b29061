"""The label budget: medians of what rejected points lack."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from venn_admit.core.monitoring.bands import label_budget
from venn_admit.core.types import IntArray
from venn_admit.errors import InvalidInputError


def test_known_answers() -> None:
    """Kappa 100 and 2,000 labels: a band of 80 lacks 20, at 2000 / 80 labels each."""
    budget = label_budget(np.array([[80, 200], [50, 40], [90, 10]]), np.array([0, 3, 3]), kappa=100, label_count=2000.0)
    assert (budget.kappa, list(budget.per_bin)) == (100, [0, 3])
    first = budget.per_bin[0]
    assert (first.points, first.lacking.tolist(), first.labels_per_class.tolist()) == (1, [20, 0], [500.0, 0.0])
    assert first.labels == 500.0
    # The larger of two points: max(50, 10), max(60, 90); 2000 labels and 18,000 to the last class.
    last = budget.per_bin[3]
    assert (last.points, last.lacking.tolist()) == (2, [50, 90])
    assert last.labels_per_class.tolist() == [2000.0, 18_000.0]
    assert last.labels == 18_000.0
    assert budget.overall.points == 3
    assert budget.overall.lacking.tolist() == [20, 60]
    assert budget.overall.labels == 3000.0


def test_a_band_without_a_class_gives_no_rate() -> None:
    budget = label_budget(np.array([[5, 0], [5, 0], [5, 5]]), np.zeros(3, dtype=np.int64), kappa=10, label_count=100.0)
    assert budget.overall.labels_per_class.tolist() == [100.0, np.inf]
    assert budget.overall.labels == np.inf
    assert budget.overall.lacking.tolist() == [5, 10]


@given(arrays(np.int64, (7, 3), elements=st.integers(0, 30)), st.integers(1, 30), st.permutations(range(7)))
def test_bounds_and_order(band_size: IntArray, kappa: int, order: list[int]) -> None:
    q_bin = np.array([0, 0, 1, 1, 1, 2, 2])
    budget = label_budget(band_size, q_bin, kappa=kappa, label_count=50.0)
    again = label_budget(band_size[order], q_bin[order], kappa=kappa, label_count=50.0)
    for number, found in [*budget.per_bin.items(), (None, budget.overall)]:
        other = again.overall if number is None else again.per_bin[number]
        assert (found.lacking >= 0).all()
        assert (found.lacking <= kappa).all()
        assert found.labels >= found.labels_per_class.max()
        assert found.lacking.tolist() == other.lacking.tolist()
        assert found.labels == other.labels
    assert sum(found.points for found in budget.per_bin.values()) == budget.overall.points == 7


def test_refusals() -> None:
    with pytest.raises(InvalidInputError, match="at least one rejected point"):
        label_budget(np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.int64), kappa=1, label_count=1.0)
    with pytest.raises(InvalidInputError, match="one length"):
        label_budget(np.zeros((2, 2), dtype=np.int64), np.zeros(1, dtype=np.int64), kappa=1, label_count=1.0)
