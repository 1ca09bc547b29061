"""Neighbours among fewer training exemplars are those of a search without them, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venn_admit.core.neighbours.search import exact_neighbours, neighbours_without
from venn_admit.errors import NotReadyError


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 5), left=st.integers(0, 8), ties=st.booleans())
def test_it_equals_a_search_without_them(seed: int, k: int, left: int, *, ties: bool) -> None:
    generator = np.random.default_rng(seed)
    support = generator.normal(size=(40, 3)).astype(np.float32)
    queries = generator.normal(size=(12, 3)).astype(np.float32)
    if ties:
        support, queries = np.round(support), np.round(queries)
    left_out = generator.choice(40, size=left, replace=False)
    kept = np.setdiff1d(np.arange(40), left_out)
    found = neighbours_without(queries, support, k, left_out)
    expected = exact_neighbours(queries, support[kept], k)
    assert np.array_equal(found.indices, kept[expected.indices])
    assert np.array_equal(found.distances, expected.distances)


def test_too_few_would_remain() -> None:
    support = np.zeros((6, 2), dtype=np.float32)
    with pytest.raises(NotReadyError, match="4 training exemplars would remain, expected at least K = 5"):
        neighbours_without(support[:1], support, 5, np.array([0, 3]))
