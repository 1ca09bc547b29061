"""The neighbour search is exact, and the same bit for bit however it is cut up."""

import math
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.neighbours.lists import assert_same, vectors
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.neighbours import bounds as neighbour_bounds
from venn_admit.core.neighbours import index as neighbour_index
from venn_admit.core.neighbours.bounds import DistanceBounds, faster_precision, multiplies_bfloat16
from venn_admit.core.neighbours.distances import first_of_each
from venn_admit.core.neighbours.index import NeighbourIndex
from venn_admit.core.neighbours.search import exact_neighbours, merge_neighbours, search
from venn_admit.core.types import Float32Array, Neighbours
from venn_admit.errors import InvalidInputError, NotReadyError

GOLDEN = Path(__file__).parents[2] / "golden"
EXAMPLE = Path(__file__).parents[3] / "examples" / "sentiment_small"

seeds = st.integers(0, 2**32 - 1)
budgets = st.sampled_from([1, 4_000, 100_000, DEFAULT_MEMORY_BUDGET])


def one_by_one(queries: Float32Array, support: Float32Array, neighbour_count: int) -> Neighbours:
    """Each exemplar measured alone, and all of them sorted."""
    alone = [exact_neighbours(queries, exemplar[None], 1).distances for exemplar in support]
    return sort_all(np.concatenate(alone, axis=1), neighbour_count)


def sort_all(distances: np.ndarray, neighbour_count: int) -> Neighbours:
    indices = np.argsort(distances, axis=1, kind="stable")[:, :neighbour_count]
    return Neighbours(indices=indices, distances=np.take_along_axis(distances, indices, axis=1))


@pytest.fixture(
    autouse=True,
    scope="module",
    params=[
        pytest.param(
            torch.bfloat16,
            marks=pytest.mark.skipif(not multiplies_bfloat16(), reason="the processor has no bfloat16"),
        ),
        torch.float32,
    ],
    ids=["bfloat16", "float32"],
)
def precision(request: pytest.FixtureRequest) -> Iterator[torch.dtype]:
    """Each test runs with candidates selected in either precision, unless it says otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbour_index, "faster_precision", lambda: request.param)
        yield request.param


# For what does not depend on how candidates are selected.
in_one_precision = pytest.mark.parametrize("precision", [torch.float32], ids=["float32"], indirect=True)


@pytest.fixture
def restored_torch() -> Iterator[None]:
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    yield
    torch.set_num_threads(threads)
    torch.set_float32_matmul_precision(precision)


@pytest.mark.parametrize("name", ["sentiment", "edge"])
@pytest.mark.parametrize("split", ["mc", "vp", "score"])
def test_the_reference_neighbours_are_found(name: str, split: str) -> None:
    with np.load(GOLDEN / f"{name}.npz") as golden:
        queries, support = (golden[f"{part}_r"].astype(np.float32) for part in (split, "train"))
        found = exact_neighbours(queries, support, int(golden["K"]))
        np.testing.assert_array_equal(found.indices, golden[f"{split}_neighbours"])
        np.testing.assert_allclose(found.distances, golden[f"{split}_distances"], rtol=1e-12)


@given(
    seeds,
    st.integers(1, 8),
    st.integers(1, 120),
    st.sampled_from([1, 2, 3, 8]),
    st.integers(0, 4),
    st.integers(-90, 90),
    budgets,
    st.data(),
)
@settings(deadline=None, max_examples=200)
def test_ties_of_integer_vectors_go_to_the_lower_row(
    seed: int,
    query_count: int,
    total: int,
    dimension: int,
    largest: int,
    exponent: int,
    budget: int,
    data: st.DataObject,
) -> None:
    """Sums of squares of small integers are exact, so the expected order is beyond doubt."""
    neighbour_count = data.draw(st.integers(1, min(total, 30)))
    generator = np.random.default_rng(seed)
    queries = generator.integers(-largest, largest, (query_count, dimension), endpoint=True)
    support = generator.integers(-largest, largest, (total, dimension), endpoint=True)
    squared = ((queries[:, None, :] - support[None, :, :]) ** 2).sum(axis=2)
    expected = sort_all(np.sqrt(squared.astype(np.float64)) * 2.0**exponent, neighbour_count)

    scale = np.float32(2.0**exponent)
    found = exact_neighbours(
        queries.astype(np.float32) * scale,
        support.astype(np.float32) * scale,
        neighbour_count,
        memory_budget=budget,
    )

    assert_same(found, expected)


@given(seeds, st.sampled_from([1, 2, 5, 40]), st.integers(1, 4), st.sampled_from([0, 3, 20, 38]), budgets)
@settings(deadline=None, max_examples=40)
def test_the_search_agrees_with_measuring_every_exemplar_alone(
    seed: int, dimension: int, neighbour_count: int, decades: int, budget: int
) -> None:
    """Coordinates over many orders of magnitude, to the ends of float32, around a mean that dwarfs some."""
    generator = np.random.default_rng(seed)

    def draw(count: int) -> Float32Array:
        drawn = generator.uniform(-3, 3, (count, dimension))
        drawn *= 10.0 ** generator.uniform(-decades, decades, (count, 1))
        drawn += generator.choice([0.0, 10.0**decades / 4])
        return drawn.astype(np.float32)

    queries, support = draw(3), draw(40)
    queries[0] = support[7]
    support[30] = support[20]
    found = exact_neighbours(queries, support, neighbour_count, memory_budget=budget)
    assert_same(found, one_by_one(queries, support, neighbour_count))


def test_many_blocks_of_full_groups_agree_with_integer_arithmetic() -> None:
    """Enough rows for groups of 32 and several blocks, with ties, repeated rows and a few outliers."""
    generator = np.random.default_rng(0)
    centres = generator.integers(-200, 200, (60, 12))
    support = centres[generator.integers(60, size=20_000)] + generator.integers(-9, 9, (20_000, 12), endpoint=True)
    support[9_000:9_030] = support[18_500]
    support[[5, 19_999]] *= 4_000
    queries = np.concatenate((support[::200], support[9_000:9_001])) + generator.integers(-1, 2, (101, 12))
    squared = np.stack([((support - query) ** 2).sum(axis=1) for query in queries])
    found, rescanned = search(
        queries.astype(np.float32), NeighbourIndex.of(support.astype(np.float32)), 25, memory_budget=8 * 2**20
    )
    assert_same(found, sort_all(np.sqrt(squared.astype(np.float64)), 25))
    assert rescanned < len(queries)


@pytest.mark.parametrize("dimension", [1, 3, 128, 1000])
@pytest.mark.parametrize("outlier", [1.0, 1e4])
def test_bounds_are_below_the_distances_and_close(dimension: int, outlier: float, precision: torch.dtype) -> None:
    support, queries = 3 + vectors(400, dimension, 1), 3 + vectors(30, dimension, 2)
    support[::100] *= np.float32(outlier)
    queries[:10] = support[100:110] * np.float32(1.001)
    index = NeighbourIndex.of(support)
    bounds = index.selecting
    assert bounds.precision == precision
    rounded = bounds.round_queries(queries)
    factor, products = torch.empty((400, bounds.width), dtype=precision), torch.empty((30, 400), dtype=precision)
    bounds.round_support(support, factor)
    bounds.product(rounded.factor, factor, out=products)
    owners, rows = (pairs.ravel() for pairs in np.indices((30, 400)))
    distances = index.distances(queries, owners, rows)
    reach = bounds.reach(distances, rounded.errors[owners])
    # A product is itself rounded, by as much as half a unit in its last place.
    unit = torch.finfo(precision).eps
    lower = products.to(torch.float64).numpy().ravel()
    assert (lower - unit * np.abs(lower) <= reach).all()
    typical = rows % 100 != 0
    half_squares = 0.5 * np.square(distances * float(bounds.scale))
    if outlier == 1.0 and dimension > 100:
        assert (lower[typical] >= 0.9 * half_squares[typical])[owners[typical] >= 10].all()


@pytest.mark.parametrize("dimension", [1, 2, 3, 7, 8, 128, 384, 1000, 4096])
@pytest.mark.usefixtures("restored_torch")
def test_batches_blocks_row_order_and_threads_change_no_bit(dimension: int) -> None:
    queries, support = vectors(20, dimension, 1), vectors(150, dimension, 2)
    whole = exact_neighbours(queries, support, 10)

    for budget in (1, 50 * dimension, 3_000 * dimension):
        assert_same(exact_neighbours(queries, support, 10, memory_budget=budget), whole)
    for size in (1, 7):
        for start in range(0, 20, size):
            part = slice(start, start + size)
            found = exact_neighbours(queries[part], support, 10)
            assert_same(found, Neighbours(whole.indices[part], whole.distances[part]))
    order = np.random.default_rng(3).permutation(20)
    found = exact_neighbours(queries[order], support, 10)
    assert_same(found, Neighbours(whole.indices[order], whole.distances[order]))
    for threads in (1, 2):
        torch.set_num_threads(threads)
        assert_same(exact_neighbours(queries, support, 10), whole)


@pytest.mark.parametrize("dimension", [1, 2, 3, 7, 8, 128, 1000, 4096])
def test_distances_are_accurate_to_float64(dimension: int) -> None:
    queries, support = vectors(4, dimension, 1), vectors(5, dimension, 2)
    found = exact_neighbours(queries, support, 5)
    for row, (indices, distances) in enumerate(zip(found.indices, found.distances, strict=True)):
        for index, distance in zip(indices, distances, strict=True):
            exact = math.dist(queries[row].tolist(), support[index].tolist())
            assert distance == pytest.approx(exact, rel=1e-15)


@in_one_precision
def test_distances_do_not_depend_on_the_memory_layout_of_the_vectors() -> None:
    queries, support = vectors(20, 33, 1), vectors(100, 33, 2)
    found = exact_neighbours(np.asfortranarray(queries), np.repeat(support, 2, axis=1)[:, ::2], 5)
    assert_same(found, exact_neighbours(queries, support, 5))


def test_real_data_hardly_ever_need_a_second_scan() -> None:
    with np.load(EXAMPLE / "train.npz") as train, np.load(EXAMPLE / "ood.npz") as shifted:
        support, queries = train["r"].astype(np.float32), shifted["r"].astype(np.float32)
    _, rescanned = search(queries, NeighbourIndex.of(support), 25, memory_budget=DEFAULT_MEMORY_BUDGET)
    assert rescanned <= 0.001 * len(queries)


def test_identical_points_are_ranked_by_row_within_the_memory_budget() -> None:
    support, budget = np.full((50_000, 16), 0.1, dtype=np.float32), 8 * 2**20
    tracemalloc.start()
    try:
        found, rescanned = search(support[:40], NeighbourIndex.of(support), 25, memory_budget=budget)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert_same(found, Neighbours(np.tile(np.arange(25), (40, 1)), np.zeros((40, 25))))
    assert rescanned == 40
    assert peak < budget


@pytest.mark.parametrize("dimension", [1, 2, 64])
def test_differences_lost_in_float32_products_are_found(dimension: int) -> None:
    """Exemplars a few units in the last place apart, among outliers that hide them from float32 products."""
    generator = np.random.default_rng(0)
    cluster = (1.0 + generator.integers(0, 50, (200, dimension)) * 2.0**-23).astype(np.float32)
    support = np.concatenate((cluster, np.full((1, dimension), 1e6), np.full((1, dimension), -3e6)))
    support = generator.permutation(support).astype(np.float32)
    found, rescanned = search(cluster[:20], NeighbourIndex.of(support), 5, memory_budget=DEFAULT_MEMORY_BUDGET)
    assert rescanned == 20
    assert_same(found, one_by_one(cluster[:20], support, 5))


@pytest.mark.parametrize(
    ("query_scale", "support_scale"),
    [(1e18, 1e18), (3e38, 3e38), (3e38, 1.0), (3e38, 1e-38), (1e-38, 3e38), (1e-44, 1e-44), (1.0, 0.0)],
)
def test_float32_products_may_overflow_or_underflow(query_scale: float, support_scale: float) -> None:
    generator = np.random.default_rng(0)
    queries = (generator.uniform(-1, 1, (5, 6)) * query_scale).astype(np.float32)
    support = (generator.uniform(-1, 1, (80, 6)) * support_scale).astype(np.float32)
    found = exact_neighbours(queries, support, 3)
    assert np.isfinite(found.distances).all()
    assert_same(found, one_by_one(queries, support, 3))


def test_a_far_query_does_not_send_its_block_to_a_second_scan() -> None:
    queries, support = vectors(100, 8, 1), vectors(500, 8, 2)
    queries[17] *= np.float32(1e37)
    found, rescanned = search(queries, NeighbourIndex.of(support), 5, memory_budget=DEFAULT_MEMORY_BUDGET)
    assert rescanned == 1
    assert_same(found, exact_neighbours(queries, support, 5, memory_budget=1))


@in_one_precision
@pytest.mark.parametrize(
    ("has_unit", "slow", "expected"),
    [
        (True, torch.float32, torch.bfloat16),
        (True, torch.bfloat16, torch.float32),
        (False, torch.float32, torch.float32),
    ],
)
def test_the_faster_precision_is_found_by_trial(
    has_unit: bool, slow: torch.dtype, expected: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0

    def product(queries: torch.Tensor, _exemplars: torch.Tensor, out: torch.Tensor) -> None:
        nonlocal now
        assert queries.dtype == out.dtype
        now += 2.0 if queries.dtype == slow else 1.0

    monkeypatch.setattr(neighbour_bounds, "time", SimpleNamespace(perf_counter=lambda: now))
    monkeypatch.setattr(neighbour_bounds, "multiplies_bfloat16", lambda: has_unit)
    monkeypatch.setattr(DistanceBounds, "product", product)
    assert faster_precision.__wrapped__() == expected


@pytest.mark.usefixtures("restored_torch")
def test_a_lower_product_precision_changes_nothing() -> None:
    queries, support = vectors(50, 128, 1), vectors(400, 128, 2)
    expected = exact_neighbours(queries, support, 5)
    torch.set_float32_matmul_precision("medium")
    assert_same(exact_neighbours(queries, support, 5), expected)
    assert torch.get_float32_matmul_precision() == "medium"


@in_one_precision
def test_vectors_may_be_read_only_memory_maps(tmp_path: Path) -> None:
    queries, support = vectors(10, 5, 1), vectors(60, 5, 2)
    np.save(tmp_path / "support.npy", support)
    mapped = np.load(tmp_path / "support.npy", mmap_mode="r")
    assert_same(exact_neighbours(queries, mapped, 4), exact_neighbours(queries, support, 4))
    assert_same(exact_neighbours(mapped, support, 4), exact_neighbours(support, support, 4))


@given(seeds, st.integers(1, 6), st.sampled_from([1, 300, 70_000]))
def test_pairs_are_sorted_as_by_three_keys(seed: int, distinct: int, apart: int) -> None:
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(20) * apart, rng.integers(5, 9, 20))
    rows, distances = rng.permutation(len(owners)), rng.integers(0, distinct * 5, len(owners)).astype(np.float64)
    order = np.lexsort((rows, distances, owners))
    among = np.concatenate([np.flatnonzero(owners[order] == owner)[:5] for owner in np.unique(owners)])
    found, found_distances = first_of_each(owners, rows, distances, 5)
    np.testing.assert_array_equal(found.ravel(), rows[order][among])
    np.testing.assert_array_equal(found_distances.ravel(), distances[order][among])


@in_one_precision
def test_no_queries_have_no_neighbours() -> None:
    found = exact_neighbours(vectors(0, 5), vectors(60, 5), 4)
    assert found.indices.shape == found.distances.shape == (0, 4)


@in_one_precision
@given(seeds, st.integers(1, 12), st.lists(st.integers(0, 15), min_size=1, max_size=5))
@settings(deadline=None)
def test_merging_as_the_support_grows_equals_one_search(seed: int, neighbour_count: int, increments: list[int]) -> None:
    generator = np.random.default_rng(seed)
    total = neighbour_count + sum(increments)
    queries = generator.integers(0, 3, (6, 2)).astype(np.float32)
    support = generator.integers(0, 3, (total, 2)).astype(np.float32)

    seen = neighbour_count
    merged = exact_neighbours(queries, support[:seen], neighbour_count)
    for increment in increments:
        if increment:
            fresh = exact_neighbours(queries, support[seen : seen + increment], min(increment, neighbour_count))
            shifted = Neighbours(indices=fresh.indices + seen, distances=fresh.distances)
            merged = merge_neighbours(shifted, merged)
            assert_same(merge_neighbours(merged, Neighbours(np.empty((6, 0), int), np.empty((6, 0)))), merged)
        seen += increment

    assert_same(merged, exact_neighbours(queries, support, neighbour_count))


@in_one_precision
def test_short_lists_merge_to_the_width_asked_for() -> None:
    queries, support = vectors(4, 3, 1), vectors(30, 3, 2)
    halves = [exact_neighbours(queries, support[part], 15) for part in (slice(0, 15), slice(15, 30))]
    later = Neighbours(indices=halves[1].indices + 15, distances=halves[1].distances)
    merged = merge_neighbours(halves[0], later, neighbour_count=25)
    assert_same(merged, exact_neighbours(queries, support, 25))


@in_one_precision
def test_lists_that_share_an_exemplar_or_differ_in_points_are_not_merged() -> None:
    queries, support = vectors(4, 3, 1), vectors(30, 3, 2)
    found = exact_neighbours(queries, support, 5)
    with pytest.raises(InvalidInputError, match="in both"):
        merge_neighbours(found, exact_neighbours(queries, support[:20], 5))
    with pytest.raises(InvalidInputError, match="4 and 3 points"):
        merge_neighbours(found, exact_neighbours(queries[:3], support, 5))


@in_one_precision
def test_too_few_training_exemplars_are_named_with_the_number_needed() -> None:
    with pytest.raises(NotReadyError, match=r"at least 25 training exemplars.*got 24"):
        exact_neighbours(vectors(2, 3), vectors(24, 3), 25)


@in_one_precision
@pytest.mark.parametrize(
    ("queries", "support", "neighbour_count", "message"),
    [
        (vectors(2, 3), vectors(9, 3), 0, "neighbour count of at least 1"),
        (vectors(2, 3), vectors(9, 4), 1, "the same dimension, got 3 and 4"),
        (vectors(2, 3)[0], vectors(9, 3), 1, r"queries of shape .* got shape \(3,\)"),
        (vectors(2, 0), vectors(9, 0), 1, r"queries of shape .* got shape \(2, 0\)"),
        (vectors(2, 3), vectors(9, 3).astype(np.float64), 1, r"support of shape .* dtype float64"),
        (vectors(2, 3), vectors(9, 3).astype(np.float16), 1, r"support of shape .* dtype float16"),
    ],
)
def test_what_does_not_fit_is_refused(
    queries: Float32Array, support: Float32Array, neighbour_count: int, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        exact_neighbours(queries, support, neighbour_count)


@in_one_precision
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("budget", [1, DEFAULT_MEMORY_BUDGET])
def test_values_that_are_not_finite_are_refused_by_row_and_column(value: float, budget: int) -> None:
    damaged = vectors(9, 3)
    damaged[6, 2] = value
    with pytest.raises(InvalidInputError, match=r"finite support, got .* in row 6, column 2"):
        exact_neighbours(vectors(2, 3), damaged, 1, memory_budget=budget)
    with pytest.raises(InvalidInputError, match=r"finite queries, got .* in row 6, column 2"):
        exact_neighbours(damaged, vectors(2, 3), 1, memory_budget=budget)
