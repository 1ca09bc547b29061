"""The localizer: its weights, those of a category, and the bits of its results."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venn_admit.core import budget as memory
from venn_admit.core.approximation import localizer
from venn_admit.core.approximation.distance_tiles import SUPPORT_TILE, SupportTiles, pairwise_distances
from venn_admit.core.approximation.localizer import FLOAT64_SUPPORT, category_weight, localizer_logits
from venn_admit.core.types import BoolArray, Float32Array, FloatArray, IntArray
from venn_admit.errors import InvalidInputError

GOLDEN = Path(__file__).parents[2] / "golden"
SEEDS = st.integers(0, 2**32 - 1)
LENGTHS = [1, 2, 7, 128, 384, 1000]

# Prints digests of results at several vector lengths, forwards and backwards, for a process with another number of
# threads or other kernels.
DIGEST_PROGRAM = """
import hashlib
import numpy as np
from venn_admit.core.approximation import localizer
from venn_admit.core.approximation.distance_tiles import SupportTiles
from tests.core.approximation.test_localizer import all_results, make_points, make_windows
forwards, backwards = hashlib.sha256(), hashlib.sha256()
for localizer.FLOAT64_SUPPORT in (2**15, 0):
    for length in (7, 384, 1000):
        queries, support = make_points(length)
        windows = make_windows(len(queries), len(support))
        for digest, step in ((forwards, 1), (backwards, -1)):
            for result in all_results(queries[::step], support, tuple(bounds[::step] for bounds in windows)):
                digest.update(result[::step].tobytes())
        few = localizer.LocalizerSupport(support, 0.7, keep_tiles=True)
        for digest, size in ((forwards, 5), (backwards, 150)):
            cuts = range(size, 150, size)
            parts = zip(*(np.split(array, cuts) for array in (queries, *windows)))
            digest.update(np.concatenate([few.category_weight(*part) for part in parts]).tobytes())
print(forwards.hexdigest(), backwards.hexdigest())
"""


@pytest.fixture(params=["float64", "float32"])
def _precision(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights over a support that counts as small, and as large."""
    if request.param == "float32":
        monkeypatch.setattr(localizer, "FLOAT64_SUPPORT", 0)


def make_points(length: int, query_count: int = 150) -> tuple[Float32Array, Float32Array]:
    """Queries and a support of more than one tile, off the origin; some queries are copies or near copies."""
    rng = np.random.default_rng(length)
    support = (rng.standard_normal((1500, length)) + 3.0).astype(np.float32)
    queries = (rng.standard_normal((query_count, length)) + 3.0).astype(np.float32)
    queries[10:40] = support[1010:1040]
    queries[40:60] = support[:20] + np.float32(1e-4)
    return queries, support


def make_windows(query_count: int, support_count: int) -> tuple[IntArray, IntArray]:
    rng = np.random.default_rng(query_count)
    bounds = np.sort(rng.integers(0, support_count + 1, (query_count, 2)), axis=1)
    return bounds[:, 0], bounds[:, 1]


def all_results(
    queries: Float32Array,
    support: Float32Array,
    windows: tuple[IntArray, IntArray] | None = None,
    memory_budget: int = memory.DEFAULT_MEMORY_BUDGET,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    low, high = make_windows(len(queries), len(support)) if windows is None else windows
    knn_logits = np.random.default_rng(0).standard_normal((len(support), 3))
    return (
        category_weight(queries, support, low, high, 0.7, memory_budget=memory_budget),
        localizer_logits(queries, support, knn_logits, 0.7, memory_budget=memory_budget),
        pairwise_distances(queries, support, memory_budget=memory_budget),
    )


def direct_distances(queries: Float32Array, support: Float32Array) -> FloatArray:
    exact = support.astype(np.float64)
    return np.array([np.sqrt(np.square(exact - query).sum(axis=1)) for query in queries])  # (m, n)


def direct_weights(queries: Float32Array, support: Float32Array, eta_loc: float) -> FloatArray:
    distances = direct_distances(queries, support)
    exponentials = np.exp((distances.min(axis=1, keepdims=True) - distances) / eta_loc)
    weights: FloatArray = exponentials / exponentials.sum(axis=1, keepdims=True)
    return weights


def golden_categories(golden: dict[str, npt.NDArray[Any]], rows: IntArray) -> BoolArray:
    """Which points of vp (columns) are in the category of each scored point, by its definition."""
    omega = float(golden["omega"])
    distance = golden["score_d"][rows, np.newaxis]
    in_band = (golden["vp_d"] >= distance - omega) & (golden["vp_d"] <= distance + omega)
    same_count = golden["vp_q"] == golden["score_q"][rows, np.newaxis]
    same_prediction = golden["vp_predicted"] == golden["score_predicted"][rows, np.newaxis]
    same_set = (golden["vp_set"] == golden["score_set"][rows, np.newaxis]).all(axis=2)
    categories: BoolArray = in_band & same_count & same_prediction & same_set
    return categories


@pytest.mark.parametrize("name", ["sentiment", "edge"])
def test_golden_upweights(name: str) -> None:
    with np.load(GOLDEN / f"{name}.npz") as arrays:
        golden = dict(arrays)
    scored = np.flatnonzero(golden["score_set"].sum(axis=1) == 1)
    singleton = golden["vp_set"].sum(axis=1) == 1
    order = np.lexsort((golden["vp_d"], golden["vp_predicted"], golden["vp_q"], singleton))
    categories = golden_categories(golden, scored)[:, order]
    sizes = categories.sum(axis=1)
    low = np.where(sizes > 0, categories.argmax(axis=1), 0)
    high = low + sizes
    assert all(row[start:stop].all() for row, start, stop in zip(categories, low, high, strict=True))
    np.testing.assert_array_equal(sizes, golden["score_category_size"][scored])

    weight = category_weight(
        golden["score_r"][scored].astype(np.float32),
        golden["vp_r"][order].astype(np.float32),
        low,
        high,
        float(golden["eta_loc"]),
    )

    expected = golden["score_upweight"][scored]
    np.testing.assert_array_equal(weight == 0, ~np.isfinite(expected))
    found = weight > 0
    assert found.sum() > len(scored) / 2
    np.testing.assert_allclose(1 / weight[found], expected[found], rtol=1e-9)


@pytest.mark.parametrize("length", LENGTHS)
def test_matches_the_definition(length: int) -> None:
    queries, support = make_points(length, query_count=70)
    low, high = make_windows(70, len(support))
    knn_logits = np.random.default_rng(1).standard_normal((len(support), 3))
    weights = direct_weights(queries, support, 0.7)
    inside = (low[:, np.newaxis] <= np.arange(len(support))) & (np.arange(len(support)) < high[:, np.newaxis])
    np.testing.assert_allclose(
        category_weight(queries, support, low, high, 0.7),
        (weights * inside).sum(axis=1),
        rtol=1e-9,
        atol=1e-300,
    )
    np.testing.assert_allclose(
        localizer_logits(queries, support, knn_logits, 0.7), weights @ knn_logits, rtol=1e-9, atol=1e-12
    )
    np.testing.assert_allclose(pairwise_distances(queries, support), direct_distances(queries, support), rtol=1e-10)


def clustered_points() -> tuple[Float32Array, Float32Array]:
    """Queries and a large support in clusters off the origin; some queries are copies or near copies."""
    rng = np.random.default_rng(2)
    centres = 3 * rng.standard_normal((20, 32)) + 5
    points = centres[rng.integers(20, size=FLOAT64_SUPPORT + 1 + 60)] + rng.standard_normal((FLOAT64_SUPPORT + 61, 32))
    queries, support = np.split(points.astype(np.float32), [60])
    queries[:10] = support[-10:]
    queries[10:20] = support[:10] + np.float32(1e-3)
    return queries, support


@pytest.fixture
def _float32_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products in float32 even if this processor's kernels round them by place."""
    monkeypatch.setattr(localizer, "rows_are_alike", lambda *_: True)


@pytest.mark.usefixtures("_float32_products")
def test_a_large_support_is_weighed_in_float32() -> None:
    queries, support = clustered_points()
    rng = np.random.default_rng(3)
    low = rng.integers(len(support) - 5000, size=len(queries))
    high = low + rng.integers(1, 5000, size=len(queries))
    low[-1], high[-1] = 0, len(support)
    weights = direct_weights(queries, support, 1.0)
    expected = np.array([row[start:stop].sum() for row, start, stop in zip(weights, low, high, strict=True)])

    found = category_weight(queries, support, low, high, 1.0)

    np.testing.assert_allclose(found, expected, rtol=2e-5)
    assert found[-1] == 1.0
    assert np.abs(found / expected - 1).max() > 1e-9  # or float64 was at work, whose time this is about


@pytest.mark.usefixtures("_float32_products")
def test_queries_too_far_for_float32_are_weighed_in_float64(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, support = clustered_points()
    queries[::2] += 30
    low, high = make_windows(len(queries), len(support))
    found = category_weight(queries, support, low, high, 1.0)
    monkeypatch.setattr(localizer, "FLOAT64_SUPPORT", len(support))
    expected = category_weight(queries, support, low, high, 1.0)
    np.testing.assert_array_equal(found == expected, np.arange(len(queries)) % 2 == 0)
    np.testing.assert_allclose(found, expected, rtol=2e-5)


@pytest.mark.usefixtures("_precision")
@pytest.mark.parametrize("length", LENGTHS)
def test_bits_do_not_depend_on_the_batch(length: int) -> None:
    queries, support = make_points(length)
    low, high = make_windows(len(queries), len(support))
    knn_logits = np.random.default_rng(0).standard_normal((len(support), 3))
    weight, logits, distances = all_results(queries, support)
    order = np.random.default_rng(5).permutation(len(queries))
    alone = [np.array([row]) for row in (0, 15, 45, 63, 64, 149)]
    for rows in (order, order[:33], np.repeat(order[:5], 30), *alone):
        part = queries[rows]
        np.testing.assert_array_equal(category_weight(part, support, low[rows], high[rows], 0.7), weight[rows])
        np.testing.assert_array_equal(localizer_logits(part, support, knn_logits, 0.7), logits[rows])
        np.testing.assert_array_equal(pairwise_distances(part, support), distances[rows])


@pytest.mark.processes
@pytest.mark.parametrize("kernels", ["", "Haswell", "Sandybridge"])
def test_bits_depend_neither_on_blas_threads_nor_on_the_place_in_a_batch(kernels: str) -> None:
    """kernels: of the processors whose OpenBLAS kernels are used; empty: those for this one."""
    root = Path(__file__).parents[3]
    digests = set()
    for threads in ("1", "4"):
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "PYTHONPATH": str(root)}
        finished = subprocess.run(
            [sys.executable, "-c", DIGEST_PROGRAM],
            env=environment | ({"OPENBLAS_CORETYPE": kernels} if kernels else {}),
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        )
        digests.update(finished.stdout.split())
    assert len(digests) == 1


def test_a_product_that_rounds_by_place_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As OpenBLAS' float32 kernel for Haswell: every other six rows are summed in another order."""
    queries, support = make_points(7)
    low, high = make_windows(len(queries), len(support))
    expected = category_weight(queries, support, low, high, 0.7)
    monkeypatch.setattr(localizer, "FLOAT64_SUPPORT", 0)
    monkeypatch.setattr(localizer, "rows_are_alike", lambda dtype, *_: dtype == "float64")
    np.testing.assert_array_equal(category_weight(queries, support, low, high, 0.7), expected)


@pytest.mark.usefixtures("_precision")
@pytest.mark.parametrize("length", LENGTHS)
def test_bits_do_not_depend_on_what_is_kept(length: int) -> None:
    queries, support = make_points(length)
    low, high = make_windows(len(queries), len(support))
    expected = category_weight(queries, support, low, high, 0.7)
    for budget in (1, 1 << 30):
        kept = localizer.LocalizerSupport(support, 0.7, keep_tiles=True, memory_budget=budget)
        for rows in (slice(0, 150), slice(0, 1), slice(7, 19), slice(60, 100)):
            np.testing.assert_array_equal(kept.category_weight(queries[rows], low[rows], high[rows]), expected[rows])


@pytest.mark.usefixtures("_precision")
def test_several_categories_of_one_window_weigh_what_each_does_alone() -> None:
    queries, support = make_points(7)
    low, high = make_windows(len(queries), len(support))
    members = np.random.default_rng(2).random((3, len(support))) < [[0.1], [0.5], [1.0]]
    held = localizer.LocalizerSupport(support, 0.7)
    found = held.weights_of_members(queries, low, high, members)
    for alone, of_one in zip(members, found, strict=True):
        np.testing.assert_array_equal(held.weights_of_members(queries, low, high, alone[np.newaxis])[0], of_one)
        # Sorted so that the members of the window stand together, as `category_weight` has them.
        for query in range(0, len(queries), 10):
            inside = np.zeros(len(support), dtype=np.bool_)
            inside[low[query] : high[query]] = alone[low[query] : high[query]]
            order = np.argsort(~inside, kind="stable")
            whole = np.array([0]), np.array([inside.sum()])
            (expected,) = category_weight(queries[[query]], support[order], *whole, 0.7)
            assert of_one[query] == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(found[2], held.category_weight(queries, low, high), rtol=1e-6)


@pytest.mark.parametrize(("budget", "is_kept"), [(3 * 2048 * 10 * 8, True), (3 * 2048 * 10 * 8 - 1, False)])
def test_tiles_are_kept_within_a_third_of_the_budget(
    budget: int, is_kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries, support = make_points(7)
    prepared: list[int] = []
    prepare = SupportTiles._prepare

    def counted(tiles: SupportTiles, start: int, room: Any) -> Any:
        prepared.append(start)
        return prepare(tiles, start, room)

    monkeypatch.setattr(SupportTiles, "_prepare", counted)
    kept = localizer.LocalizerSupport(support, 0.7, keep_tiles=True, memory_budget=budget)
    for _ in range(3):
        kept.category_weight(queries, *make_windows(len(queries), len(support)))
    assert prepared == [0, 1024] * (1 if is_kept else 3)


@pytest.mark.usefixtures("_precision")
def test_bits_do_not_depend_on_memory_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, support = make_points(7)
    expected = all_results(queries, support)
    monkeypatch.setattr(memory, "TILE_BYTES", 1)
    for result, whole in zip(all_results(queries, support, memory_budget=1), expected, strict=True):
        np.testing.assert_array_equal(result, whole)


@pytest.mark.usefixtures("_precision")
def test_reads_a_memory_map(tmp_path: Path) -> None:
    queries, support = make_points(7)
    np.save(tmp_path / "support.npy", support)
    mapped = np.load(tmp_path / "support.npy", mmap_mode="r")
    for result, expected in zip(all_results(queries, mapped), all_results(queries, support), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_copies_are_at_distance_zero(offset: float) -> None:
    rng = np.random.default_rng(0)
    support = (rng.standard_normal((300, 40)) + offset).astype(np.float32)
    distances = pairwise_distances(support[::-1], support)
    assert (np.diagonal(distances[::-1]) == 0).all()
    assert np.count_nonzero(distances == 0) == 300
    np.testing.assert_allclose(distances, direct_distances(support[::-1], support), rtol=1e-10)


def test_a_small_distance_between_far_points_keeps_its_digits() -> None:
    rng = np.random.default_rng(0)
    clusters = 1e3 * rng.standard_normal((5, 1, 20))
    support = (clusters + 1e-2 * rng.standard_normal((5, 30, 20))).reshape(150, 20).astype(np.float32)
    np.testing.assert_allclose(pairwise_distances(support, support), direct_distances(support, support), rtol=1e-10)


@given(seed=SEEDS, count=st.integers(1, 40), eta_loc=st.floats(1e-3, 1e3))
@settings(max_examples=40, deadline=None)
def test_windows_share_out_the_weight(seed: int, count: int, eta_loc: float) -> None:
    rng = np.random.default_rng(seed)
    support = rng.integers(-2, 3, (count, 3)).astype(np.float32)
    query = rng.integers(-2, 3, (1, 3)).astype(np.float32)
    cuts = np.sort(rng.integers(0, count + 1, 3))
    bounds = np.array([0, *cuts, count])
    queries = np.repeat(query, len(bounds) - 1, axis=0)

    parts = category_weight(queries, support, bounds[:-1], bounds[1:], eta_loc)
    assert ((parts >= 0) & (parts <= 1)).all()
    assert parts.sum() == pytest.approx(1.0, abs=1e-12)

    nested = category_weight(queries, support, np.zeros(4, dtype=np.int64), bounds[1:], eta_loc)
    assert (np.diff(nested) >= 0).all()
    assert nested[-1] == 1.0


@pytest.mark.usefixtures("_precision")
def test_an_empty_window_weighs_nothing() -> None:
    queries, support = make_points(2)
    edges = np.arange(len(queries)) * 10
    assert (category_weight(queries, support, edges, edges, 0.5) == 0).all()


@pytest.mark.usefixtures("_precision")
def test_far_points_leave_the_near_their_weight() -> None:
    support = np.array([[0.0], [1.0], [1e30]], dtype=np.float32)
    queries = np.repeat(support[-1:] * np.float32(2), 3, axis=0)
    starts = np.arange(3)
    np.testing.assert_array_equal(category_weight(queries, support, starts, starts + 1, 1.0), [0.0, 0.0, 1.0])


@pytest.mark.usefixtures("_precision")
@pytest.mark.parametrize(("eta_loc", "expected"), [(5e-324, [0.0, 0.5, 0.5]), (1e308, [1 / 3, 1 / 3, 1 / 3])])
def test_extreme_temperatures(eta_loc: float, expected: list[float]) -> None:
    support = np.array([[0.0], [2.0], [2.0]], dtype=np.float32)
    queries = np.full((3, 1), 3.0, dtype=np.float32)
    starts = np.arange(3)
    np.testing.assert_allclose(category_weight(queries, support, starts, starts + 1, eta_loc), expected)


@pytest.mark.usefixtures("_precision")
def test_no_queries() -> None:
    _, support = make_points(2)
    nothing = np.empty(0, dtype=np.int64)
    assert category_weight(support[:0], support, nothing, nothing, 1.0).shape == (0,)
    assert localizer_logits(support[:0], support, np.zeros((len(support), 2)), 1.0).shape == (0, 2)
    assert pairwise_distances(support[:0], support).shape == (0, len(support))


@pytest.mark.parametrize("eta_loc", [0.0, -1.0, np.inf, np.nan])
def test_refuses_a_temperature(eta_loc: float) -> None:
    queries, support = make_points(2)
    low, high = make_windows(len(queries), len(support))
    with pytest.raises(InvalidInputError, match="eta_loc > 0"):
        category_weight(queries, support, low, high, eta_loc)
    with pytest.raises(InvalidInputError, match="eta_loc > 0"):
        localizer_logits(queries, support, np.zeros((len(support), 2)), eta_loc)


@pytest.mark.parametrize(("low", "high"), [(-1, 5), (6, 5), (0, 1501)])
def test_refuses_a_window(low: int, high: int) -> None:
    queries, support = make_points(2)
    lows, highs = make_windows(len(queries), len(support))
    lows[7], highs[7] = low, high
    with pytest.raises(InvalidInputError, match=rf"1500, got \[{low}, {high}\) for query 7"):
        category_weight(queries, support, lows, highs, 1.0)


def test_refuses_arrays_that_do_not_fit() -> None:
    queries, support = make_points(2)
    low, high = make_windows(len(queries), len(support))
    with pytest.raises(InvalidInputError, match="window for each of 150"):
        category_weight(queries, support, low[:-1], high[:-1], 1.0)
    with pytest.raises(InvalidInputError, match="expected KNN logits"):
        localizer_logits(queries, support, np.zeros((3, 2)), 1.0)
    with pytest.raises(InvalidInputError, match="vectors of the same classifier"):
        pairwise_distances(queries[:, :1], support)
    with pytest.raises(InvalidInputError, match="expected float32"):
        pairwise_distances(queries.astype(np.float64), support)
    with pytest.raises(InvalidInputError, match="at least one exemplar in split vp"):
        pairwise_distances(queries, support[:0])


@pytest.mark.usefixtures("_precision")
@pytest.mark.parametrize("eta_loc", [0.02, 1.0])
def test_a_row_that_is_left_out_weighs_nothing(eta_loc: float) -> None:
    """However little the others weigh beside it: at the smaller parameter, next to nothing."""
    _, support = make_points(7)
    count = len(support)
    rows = np.array([0, 5, SUPPORT_TILE - 1, SUPPORT_TILE, count - 1])
    low, high = np.full(len(rows), 3), np.full(len(rows), count - 2)
    found = localizer.LocalizerSupport(support, eta_loc).category_weight(support[rows], low, high, left_out=rows)
    for row, weight in zip(rows.tolist(), found.tolist(), strict=True):
        others = np.delete(support, row, axis=0)
        first, end = (np.array([bound - (row < bound)]) for bound in (3, count - 2))
        (expected,) = category_weight(support[[row]], others, first, end, eta_loc)
        assert weight == pytest.approx(expected, rel=1e-4)
