"""A pass for a few points finds what the search for many does, to the last bit, or says that it is not certain."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.neighbours.lists import vectors
from tests.running import EXAMPLES
from venn_admit.core.neighbours import one_pass
from venn_admit.core.neighbours.distances import pair_distances
from venn_admit.core.neighbours.one_pass import MOST_QUERIES, OnePassSupport, PassNeighbours
from venn_admit.core.neighbours.search import exact_neighbours
from venn_admit.core.types import Float32Array

SMALL_BLOCK = 7


def searched(queries: Float32Array, support: Float32Array, neighbour_count: int) -> PassNeighbours:
    """What a pass finds, after a comparison of what it is certain of."""
    found = OnePassSupport(support, neighbour_count).nearest(queries, neighbour_count)
    expected = exact_neighbours(queries, support, neighbour_count)
    np.testing.assert_array_equal(found.found.indices[found.certain], expected.indices[found.certain])
    np.testing.assert_array_equal(found.found.distances[found.certain], expected.distances[found.certain])
    return found


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_BLOCK_ROWS": SMALL_BLOCK, "_BLOCK_PAIRS": 0, "_GROUPS": 3, "_GROUPS_EACH": 0}.items():
        monkeypatch.setattr(one_pass, name, value)


@pytest.mark.usefixtures("small_blocks")
@settings(deadline=None, max_examples=150)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 60),
    st.integers(1, 9),
    st.integers(1, 12),
    st.sampled_from([-100, -40, 0, 20, 60]),
    st.sampled_from([0.0, 1.0, 300.0, 1e6]),
    st.booleans(),
)
def test_what_it_is_certain_of_is_exact(
    seed: int, rows: int, dimension: int, neighbour_count: int, exponent: int, offset: float, tied: bool
) -> None:
    rng = np.random.default_rng(seed)
    neighbour_count = min(neighbour_count, rows)
    drawn = rng.integers(-2, 3, (rows + 10, dimension)) if tied else rng.standard_normal((rows + 10, dimension))
    made = ((drawn + offset) * 2.0**exponent).astype(np.float32)
    searched(made[:10], made[10:], neighbour_count)


@pytest.mark.parametrize(
    ("rows", "neighbour_count"), [(SMALL_BLOCK, SMALL_BLOCK), (SMALL_BLOCK + 1, SMALL_BLOCK + 1), (3 * SMALL_BLOCK, 10)]
)
@pytest.mark.usefixtures("small_blocks")
def test_more_neighbours_than_a_block_has_rows(rows: int, neighbour_count: int) -> None:
    found = searched(vectors(5, 4, seed=1), vectors(rows, 4), neighbour_count)
    assert found.certain.all()


def test_real_points_are_certain() -> None:
    with np.load(EXAMPLES / "train.npz") as train, np.load(EXAMPLES / "ood.npz") as ood:
        support, queries = train["r"].astype(np.float32), ood["r"].astype(np.float32)[:MOST_QUERIES]
    assert len(queries) == MOST_QUERIES
    assert searched(queries, support, 25).certain.all()


def test_neighbours_that_are_all_of_one_group_leave_few_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their bounds are looked at one by one, or a thirtieth of the support would be left."""
    support, query = vectors(20_000, 16, seed=2), np.zeros((1, 16), np.float32)
    support[:: one_pass._GROUPS] *= 1e-3
    found = list[int]()

    def noted(*given: Any) -> Any:
        found.append(len(given[1]))
        return pair_distances(*given)

    monkeypatch.setattr(one_pass, "pair_distances", noted)
    assert searched(query, support, 25).certain.all()
    assert found == [25]


def test_one_far_exemplar_leaves_the_bounds_of_others_tight() -> None:
    support = vectors(20_000, 30)
    support[17] *= 1e6
    assert searched(support[:20] + np.float32(0.01), support, 25).certain.all()


def test_a_point_with_too_many_at_one_distance_is_given_back_alone() -> None:
    support = vectors(20_000, 6)
    support[:5000] = 3.0
    queries = np.concatenate([np.full((1, 6), 3.0, np.float32), vectors(3, 6, seed=1)])
    assert searched(queries, support, 4).certain.tolist() == [False, True, True, True]


def test_vectors_that_have_most_in_common_are_certain() -> None:
    """As those of some transformers, whose mean is many times as long as the rest."""
    support = vectors(20_000, 384)
    support[:, 7] += 20 * np.sqrt(384)
    assert searched(vectors(20, 384, seed=1) + support.mean(axis=0), support, 25).certain.all()


def test_vectors_that_float32_does_not_tell_apart_are_given_back() -> None:
    support = vectors(20_000, 6) + np.float32(1e7)
    assert not searched(support[:3], support, 4).certain.any()


@pytest.mark.parametrize("magnitude", [1e18, 1e30, np.finfo(np.float32).max])
def test_vectors_whose_products_overflow_are_given_back(magnitude: float) -> None:
    support = vectors(50, 6)
    support = (support / np.abs(support).max() * magnitude).astype(np.float32)
    assert not searched(support[:3], support, 4).certain.any()


def test_zeros_are_neighbours_of_zeros() -> None:
    found = searched(np.zeros((2, 3), np.float32), np.zeros((9, 3), np.float32), 4)
    assert found.certain.all()
    assert found.found.indices.tolist() == [[0, 1, 2, 3]] * 2
