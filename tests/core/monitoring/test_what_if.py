"""Counts of what would change."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from venn_admit.core.monitoring.what_if import ViewChanges, count_flips, view_changes
from venn_admit.core.types import Approximation

CLASSES = 3
DECISIONS = st.lists(st.tuples(st.integers(-1, CLASSES - 1), st.integers(-1, CLASSES - 1)), max_size=30)


@given(pairs=DECISIONS, cut=st.integers(0, 30))
def test_flips_add_up_whatever_the_blocks(pairs: list[tuple[int, int]], cut: int) -> None:
    arrays = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    whole = count_flips(arrays[:, 0], arrays[:, 1], CLASSES)
    first, second = arrays[:cut], arrays[cut:]
    parts = count_flips(first[:, 0], first[:, 1], CLASSES) + count_flips(second[:, 0], second[:, 1], CLASSES)
    for name in whole.__slots__:
        assert np.array_equal(getattr(whole, name), getattr(parts, name))
    assert whole.total == sum(before != after for before, after in pairs)
    for number in range(CLASSES):
        assert whole.admitted_before[number] == sum(before == number for before, _ in pairs)
        assert whole.rejected[number] == pairs.count((number, -1))
        assert whole.admitted[number] == pairs.count((-1, number))
        assert whole.moved_to[number] == sum(-1 < before != after == number for before, after in pairs)
        assert whole.moved_from[number] == sum(-1 < after != before == number for before, after in pairs)
    gained = whole.admitted + whole.moved_to - whole.rejected - whole.moved_from
    assert np.array_equal(whole.admitted_after, whole.admitted_before + gained)


def test_views_are_compared_point_by_point() -> None:
    before = Approximation(np.zeros((3, 2)), np.array([0, 0, 1]), np.array([2, 0, 1]), np.array([0.5, 1.0, 2.0]))
    after = Approximation(np.ones((3, 2)), np.array([0, 1, 1]), np.array([1, 1, 1]), np.array([0.5, 1.0, 2.5]))
    found = view_changes(before, after)
    assert found == ViewChanges(points=3, touched=3, predicted=1, match_count=2, distance=1)
    assert found + ViewChanges(4, 0, 0, 0, 0) == ViewChanges(7, 3, 1, 2, 1)
