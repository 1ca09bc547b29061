"""What the core computes, by counts: they do not depend on the machine, as seconds do."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from venn_admit.core.approximation import distance_tiles, localizer
from venn_admit.core.approximation.localizer import category_weight
from venn_admit.core.budget import BLOCK_SHARE, DEFAULT_MEMORY_BUDGET
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.calibrators.venn_admit import decide as deciding
from venn_admit.core.calibrators.venn_admit.decide import Decisions, Localizer, decide
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.calibrators.venn_admit.venn import VennIndex
from venn_admit.core.neighbours.index import NeighbourIndex
from venn_admit.core.neighbours.search import search
from venn_admit.core.types import Approximation, CalibrationPoints, Float32Array, FloatArray, IntArray

EXAMPLE = Path(__file__).parents[2] / "examples" / "sentiment_small"
K = 25


def real_vectors(name: str) -> Float32Array:
    with np.load(EXAMPLE / f"{name}.npz") as arrays:
        vectors: Float32Array = arrays["r"].astype(np.float32)
    return vectors


@pytest.mark.parametrize("precision", [torch.bfloat16, torch.float32])
def test_few_distances_are_measured_beside_those_of_the_neighbours(
    precision: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries, support = real_vectors("ood")[:500], real_vectors("train")
    measured = []
    measure = NeighbourIndex.distances

    def counted(index: NeighbourIndex, vectors: Float32Array, owners: IntArray, rows: IntArray) -> FloatArray:
        measured.append(len(rows))
        return measure(index, vectors, owners, rows)

    monkeypatch.setattr(NeighbourIndex, "distances", counted)
    index = NeighbourIndex.of(support, precision=precision)
    _, rescanned = search(queries, index, K, memory_budget=2**26)
    assert rescanned == 0
    assert K * len(queries) <= sum(measured) <= 1.25 * K * len(queries)


def test_a_category_weight_takes_one_product_a_tile_and_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, support = real_vectors("ood")[:130], real_vectors("train")[:2050]
    products: list[tuple[int, ...]] = []
    multiply = distance_tiles.tile_product

    def counted(left: Any, right: Any, out: Any, part: Any) -> None:
        products.append((*left.shape, right.shape[1]))
        multiply(left, right, out, part)

    monkeypatch.setattr(distance_tiles, "tile_product", counted)
    monkeypatch.setattr(distance_tiles, "_refine", lambda *_: pytest.fail("a distance was measured by its difference"))
    none = np.zeros(len(queries), dtype=np.int64)
    for float64_support in (len(support), 0):
        monkeypatch.setattr(localizer, "FLOAT64_SUPPORT", float64_support)
        products.clear()
        category_weight(queries, support, none, none + 100, eta_loc=1.0)
        assert products == [(64, support.shape[1] + 2, 1024)] * (3 * 3)


def test_each_query_is_weighed_once_in_the_precision_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, support = real_vectors("ood")[:130].copy(), real_vectors("train")[:1000]
    queries[::2] += 100
    products: list[np.dtype[Any]] = []
    multiply = distance_tiles.tile_product

    def counted(left: Any, right: Any, out: Any, part: Any) -> None:
        products.append(left.dtype)
        multiply(left, right, out, part)

    monkeypatch.setattr(localizer, "FLOAT64_SUPPORT", 0)
    monkeypatch.setattr(localizer, "rows_are_alike", lambda *_: True)  # whatever the processor
    monkeypatch.setattr(distance_tiles, "tile_product", counted)
    none = np.zeros(len(queries), dtype=np.int64)
    category_weight(queries, support, none, none + 100, eta_loc=1.0)
    assert products == [np.float32] * 2 + [np.float64] * 2  # of 65 queries each, in tiles of 64


def test_singletons_alone_are_weighed_in_blocks_of_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    count, class_count = 300, 3
    points = CalibrationPoints(
        label=rng.integers(class_count, size=count),
        predicted=rng.integers(class_count, size=count),
        match_count=rng.integers(2, size=count),
        distance=rng.random(count),
        score=rng.random(count),
    )
    settings = make_settings(class_count, K, kappa=1)
    admit = AdmitIndex(points, class_count=class_count, settings=settings, omega=0.5)
    every = np.ones(count, dtype=np.bool_)
    venn = VennIndex(points, every, class_count=class_count, settings=settings, omega=0.5)
    logits = 4 * rng.standard_normal((200, class_count))
    view = Approximation(logits, logits.argmax(axis=1), rng.integers(2, size=200), rng.random(200))
    vectors = rng.standard_normal((200 + count, 5)).astype(np.float32)
    weighed: list[Float32Array] = []

    def counted(queries: Float32Array, *rest: Any, **options: Any) -> FloatArray:
        weighed.append(queries)
        return category_weight(queries, *rest, **options)

    monkeypatch.setattr(deciding, "category_weight", counted)

    def decided_within(memory_budget: int) -> Decisions:
        weighed.clear()
        found = decide(
            admit,
            venn,
            view,
            settings,
            neighbour_count=K,
            require_full_match=False,
            localizer=Localizer.over(vectors[200:], 1.0, vectors[:200], memory_budget=memory_budget),
            memory_budget=memory_budget,
        )
        assert 0 < found.sets.singleton.sum() < 200
        np.testing.assert_array_equal(np.concatenate(weighed), vectors[:200][found.sets.singleton])
        return found

    whole = decided_within(DEFAULT_MEMORY_BUDGET)
    assert len(weighed) == 1
    parts = decided_within(16 * BLOCK_SHARE * vectors[0].nbytes)
    assert max(map(len, weighed)) == 16
    np.testing.assert_array_equal(parts.probabilities.upweight, whole.probabilities.upweight)
