"""SGR against a slow search with scipy's binomial law, and what must not matter to it."""

from decimal import Decimal
from math import ceil, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from venn_admit.core.comparison.confidence import binomial_upper_bound, guaranteed_risk
from venn_admit.core.types import BoolArray, FloatArray
from venn_admit.errors import InvalidInputError

ALPHA, LEVEL = Decimal("0.1"), Decimal("0.95")


def slow_search(confidence: FloatArray, right: BoolArray) -> tuple[float, float]:
    """Threshold and bound, point by point as the paper's algorithm tells it, with scipy's quantile of the beta law."""
    ascending = sorted(confidence.tolist())
    steps = ceil(log2(len(ascending))) or 1
    low, high, found = 1, len(ascending), (np.inf, 1.0)
    for _ in range(steps):
        middle = ceil((low + high) / 2)
        least = ascending[middle - 1]
        outcomes = [bool(hit) for value, hit in zip(confidence, right, strict=True) if value >= least]
        errors, count = outcomes.count(False), len(outcomes)
        bound = 1.0 if errors == count else stats.beta.ppf(1 - 0.05 / steps, errors + 1, count - errors)
        if bound <= 0.1:
            high, found = middle, (least, bound)
        else:
            low = middle
    return found


@given(st.integers(1, 400), st.integers(2, 60), st.floats(0, 0.3), st.integers(0, 2**32 - 1))
def test_agrees_with_a_slow_search(count: int, values: int, error: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    confidence = rng.integers(0, values, count) / values
    right = rng.random(count) >= error * (2 - 2 * confidence)
    found = guaranteed_risk(confidence, right, alpha=ALPHA, level=LEVEL)
    threshold, bound = slow_search(confidence, right)
    assert found.threshold == threshold
    assert found.bound == pytest.approx(bound, abs=1e-9)
    reached = confidence >= found.threshold
    assert (found.admitted, found.wrong) == (reached.sum(), (reached & ~right).sum())


@given(st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_the_order_of_the_points_does_not_matter(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    confidence, right = rng.random(count).round(2), rng.random(count) < 0.95
    order = rng.permutation(count)
    assert guaranteed_risk(confidence, right, alpha=ALPHA) == guaranteed_risk(
        confidence[order], right[order], alpha=ALPHA
    )


@pytest.mark.parametrize(("wrong", "count"), [(0, 1), (0, 400), (3, 17), (40, 500), (1200, 14000), (16, 17)])
@pytest.mark.parametrize("level", [0.05, 0.05 / 14])
def test_the_bound_is_that_of_clopper_and_pearson(wrong: int, count: int, level: float) -> None:
    assert binomial_upper_bound(wrong, count, level) == pytest.approx(
        stats.beta.ppf(1 - level, wrong + 1, count - wrong), abs=1e-10
    )
    assert binomial_upper_bound(count, count, level) == 1


def test_without_points_or_evidence_nothing_is_admitted() -> None:
    for count in (0, 1, 20):
        found = guaranteed_risk(np.linspace(0.5, 1, count), np.ones(count, dtype=np.bool_), alpha=ALPHA)
        assert (found.threshold, found.admitted, found.bound) == (np.inf, 0, 1)


@pytest.mark.parametrize(
    ("confidence", "alpha", "level"),
    [
        ([0.5, np.nan], "0.1", "0.95"),
        ([0.5, 0.6], "0", "0.95"),
        ([0.5, 0.6], "0.1", "1"),
        ([0.5, 0.6], "NaN", "0.95"),
        ([0.5], "0.1", "0.95"),
    ],
)
def test_refused(confidence: list[float], alpha: str, level: str) -> None:
    with pytest.raises(InvalidInputError):
        guaranteed_risk(np.array(confidence), np.array([True, False]), alpha=Decimal(alpha), level=Decimal(level))
