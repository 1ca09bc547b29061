"""What leading components leave of a support holds the nearest of each point, whatever the vectors are."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.neighbours.lists import vectors
from venn_admit.core.neighbours import leading
from venn_admit.core.neighbours.leading import LeadingComponents
from venn_admit.core.neighbours.one_pass import OnePassSupport
from venn_admit.core.neighbours.search import exact_neighbours
from venn_admit.core.types import Float32Array

FEW_COLUMNS = 4
ROWS, DIMENSION, NEIGHBOURS = 30_000, 160, 25


def of_low_dimension(rows: int, *, seed: int = 0) -> Float32Array:
    """(rows, 160): ten latent dimensions and a little noise."""
    latent = vectors(rows, 10, seed=seed) @ vectors(10, DIMENSION, seed=100)
    return latent + np.float32(0.05) * vectors(rows, DIMENSION, seed=seed + 1)


def assert_found(queries: Float32Array, support: Float32Array, prepared: OnePassSupport, together: int) -> None:
    expected = exact_neighbours(queries, support, NEIGHBOURS)
    for start in range(0, len(queries), together):
        part = slice(start, start + together)
        found = prepared.nearest(queries[part], NEIGHBOURS)
        assert found.certain.all()
        np.testing.assert_array_equal(found.found.indices, expected.indices[part])
        np.testing.assert_array_equal(found.found.distances, expected.distances[part])


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 60),
    st.integers(FEW_COLUMNS - 2, 12),
    st.integers(1, 12),
    st.sampled_from([-140, -100, -40, 0, 20]),
    st.sampled_from([0.0, 1.0, 300.0, 1e6]),
    st.sampled_from(["any", "tied", "constant", "one far", "one direction", "alike"]),
)
def test_the_nearest_are_among_what_is_left(
    seed: int, rows: int, dimension: int, neighbour_count: int, exponent: int, offset: float, kind: str
) -> None:
    rng = np.random.default_rng(seed)
    neighbour_count = min(neighbour_count, rows)
    drawn = rng.standard_normal((rows + 10, dimension))
    if kind == "tied":
        drawn = rng.integers(-2, 3, drawn.shape).astype(float)
    elif kind == "constant":
        drawn[:, 1:] = 1.0
    elif kind == "one far":
        drawn[-1] *= 1e8
    elif kind == "one direction":
        drawn = drawn[:, :1] * rng.standard_normal(dimension) + 1e-6 * drawn
    elif kind == "alike":
        drawn[5:] = drawn[5]
    made = ((drawn + offset) * 2.0**exponent).astype(np.float32)
    queries, support = made[:10], made[10:]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"COLUMNS": FEW_COLUMNS, "_MOST_LEFT": 1.0, "_PAIRS": 3 * rows}.items():
            patch.setattr(leading, name, value)
        prepared = LeadingComponents(support, support.mean(axis=0, dtype=np.float64), neighbour_count)
        left = prepared.left(queries, neighbour_count)
    expected = exact_neighbours(queries, support, neighbour_count)
    for rows_left, nearest in zip(left, expected.indices, strict=True):
        assert rows_left is not None
        assert np.isin(nearest, rows_left).all()


@pytest.mark.parametrize("together", [1, 3, 64])
def test_lists_are_the_same_alone_and_together(together: int) -> None:
    support = of_low_dimension(ROWS)
    support[7::1000] = support[3]  # equal distances
    prepared = OnePassSupport(support, NEIGHBOURS)
    assert prepared._leading is not None
    queries = np.concatenate((of_low_dimension(30, seed=2), support[:4], 30 * vectors(30, DIMENSION, seed=3)))
    assert_found(queries, support, prepared, together)


def test_little_is_left_of_vectors_of_low_dimension() -> None:
    prepared = OnePassSupport(of_low_dimension(ROWS), NEIGHBOURS)._leading
    assert prepared is not None
    left = prepared.left(of_low_dimension(16, seed=2), NEIGHBOURS)
    assert max(ROWS if rows is None else len(rows) for rows in left) < ROWS / 100


def test_points_of_which_too_much_is_left_are_compared_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    support, queries = of_low_dimension(ROWS), of_low_dimension(9, seed=2)
    prepared = OnePassSupport(support, NEIGHBOURS)
    assert prepared._leading is not None
    counts = [len(rows) for rows in prepared._leading.left(queries, NEIGHBOURS) if rows is not None]
    monkeypatch.setattr(leading, "_MOST_LEFT", (np.median(counts) + 0.5) / ROWS)
    assert 0 < sum(rows is None for rows in prepared._leading.left(queries, NEIGHBOURS)) < len(queries)
    assert_found(queries, support, prepared, 9)


def test_vectors_that_are_left_are_copied_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    support = of_low_dimension(ROWS)
    prepared = OnePassSupport(support, NEIGHBOURS)
    assert prepared._leading is not None
    monkeypatch.setattr(leading, "_MOST_LEFT", 1.0)
    query = 1e6 * vectors(1, DIMENSION, seed=3)
    (rows,) = prepared._leading.left(query, NEIGHBOURS)
    assert rows is not None
    assert len(rows) > ROWS / 2
    tracemalloc.start()
    prepared.nearest(query, NEIGHBOURS)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < support.nbytes / 3


def test_columns_that_leave_too_much_are_not_kept() -> None:
    """Independent components have no leading ones, so that a point takes as long as before."""
    assert OnePassSupport(vectors(ROWS, DIMENSION), NEIGHBOURS)._leading is None


@pytest.mark.parametrize(("dimension", "columns"), [(leading.LEAST_DIMENSION - 1, 0), (384, leading.COLUMNS)])
def test_what_a_row_takes_counts_the_columns(dimension: int, columns: int) -> None:
    """With its norm, and half a squared distance."""
    assert OnePassSupport.row_bytes(dimension) == 4 * (dimension + 2 + columns)
