"""What a computation takes of memory beside its input and its result stays within the budget, and shows in no bit."""

import tracemalloc
from collections.abc import Callable
from dataclasses import astuple, is_dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from venn_admit.core.approximation.knn import approximate
from venn_admit.core.approximation.localizer import category_weight, localizer_logits
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET, TILE_BYTES
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.comparison.localized import local_thresholds
from venn_admit.core.neighbours.search import exact_neighbours
from venn_admit.core.types import CalibrationPoints, KnnParameters, Neighbours, Support

SMALL = 16 << 20
"""The least that the settings take."""

# Tiles of the localizer at 64 dimensions, and of everything else.
TILES = 4 * TILE_BYTES

Compute = Callable[[int], Any]


def arrays(result: Any) -> list[np.ndarray[Any, Any]]:
    if isinstance(result, np.ndarray):
        return [result]
    if is_dataclass(result) and not isinstance(result, type):
        return [array for part in astuple(result) for array in arrays(part)]
    return [array for part in result for array in arrays(part)] if isinstance(result, tuple | list) else []


def peak_beside_result(compute: Compute, budget: int) -> tuple[int, list[np.ndarray[Any, Any]]]:
    """Bytes at the peak, less what the result holds, and the arrays of the result."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        result = compute(budget)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    found = arrays(result)
    return peak - before - sum(array.nbytes for array in found), found


def sets_of_a_band() -> Compute:
    """ADMIT sets of 60,000 points of one bin, of 15 classes: 43 MB of temporaries at once."""
    rng = np.random.default_rng(0)
    classes, held, scored = 15, 300_000, 60_000
    points = CalibrationPoints(
        label=rng.integers(0, classes, held),
        predicted=rng.integers(0, classes, held),
        match_count=np.zeros(held, np.int64),
        distance=rng.random(held),
        score=rng.random(held),
    )
    settings = CalibratorSettings(Decimal("0.1"), 1.0, 1, (0,), (Decimal("0.9"),) * classes)
    index = AdmitIndex(points, class_count=classes, settings=settings, omega=0.1)
    logits = rng.standard_normal((scored, classes))
    query = logits.argmax(axis=1), np.zeros(scored, np.int64), rng.random(scored)
    return lambda budget: index.sets(logits, *query, memory_budget=budget)


def vectors(count: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(count).standard_normal((count, 64)).astype(np.float32)


def thresholds() -> Compute:
    """Local thresholds of 3,000 points from 4,000: 96 MB of distances."""
    queries, support, score = vectors(3000), vectors(4000), np.random.default_rng(0).random(4000)
    return lambda budget: local_thresholds(
        queries, support, score, alpha=Decimal("0.1"), eta_loc=1.0, memory_budget=budget
    )


def weights() -> Compute:
    """Category weights of 40,000 points: 40 MB of centred vectors."""
    queries, support = vectors(40_000), vectors(1500)
    low, high = np.zeros(40_000, np.int64), np.full(40_000, 700, np.int64)
    return lambda budget: category_weight(queries, support, low, high, 1.0, memory_budget=budget)


def localized() -> Compute:
    queries, support = vectors(40_000), vectors(1500)
    logits = np.random.default_rng(0).standard_normal((1500, 3))
    return lambda budget: localizer_logits(queries, support, logits, 1.0, memory_budget=budget)


def neighbours() -> Compute:
    queries, support = vectors(3000), vectors(3000)
    return lambda budget: exact_neighbours(queries, support, 5, memory_budget=budget)


CASES = {
    "sets": sets_of_a_band,
    "local thresholds": thresholds,
    "category weights": weights,
    "localizer logits": localized,
    "neighbours": neighbours,
}


@pytest.mark.parametrize("case", CASES)
def test_a_small_budget_is_kept_and_changes_no_bit(case: str) -> None:
    compute = CASES[case]()
    peak, found = peak_beside_result(compute, SMALL)
    assert peak <= SMALL + TILES
    peak_of_whole, whole = peak_beside_result(compute, 64 * DEFAULT_MEMORY_BUDGET)
    assert [array.tobytes() for array in found] == [array.tobytes() for array in whole]
    if case != "neighbours":
        assert peak_of_whole > SMALL + TILES, "what a small budget holds back"


def test_an_approximation_takes_tiles_alone() -> None:
    rng = np.random.default_rng(0)
    n, trained, classes = 20_000, 50_000, 40
    logits = rng.standard_normal((trained, classes)).astype(np.float32)
    support = Support(logits, rng.integers(0, classes, trained))
    lists = Neighbours(rng.integers(0, trained, (n, 3)), np.sort(rng.random((n, 3)), axis=1))
    parameters = KnnParameters(np.zeros(classes), np.ones(classes), 1.0)
    peak, _ = peak_beside_result(lambda _: approximate(lists, support, parameters), SMALL)
    # The predictions of the support and of the points, which are inputs to q, take 8 bytes each.
    assert peak <= TILES + 8 * (2 * trained + 4 * n)
