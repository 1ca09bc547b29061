"""Drift: the statistic of Kolmogorov and Smirnov against SciPy's, sizes of documents, and outcomes by options."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from venn_admit.core.documents import Documents
from venn_admit.core.monitoring.drift import (
    SHIFTED,
    DecidedPoints,
    OutcomeCounts,
    Shift,
    effective_size,
    kolmogorov_smirnov,
    outcomes,
    shift,
)
from venn_admit.core.reasons import Reason
from venn_admit.core.types import Approximation, FloatArray
from venn_admit.errors import InvalidInputError

samples = st.lists(st.integers(0, 20).map(float), min_size=3, max_size=60).map(np.array)
STARVED, SEVERAL, NO_FULL_MATCH = (
    reason.code for reason in (Reason.BAND_BELOW_KAPPA, Reason.SET_NOT_SINGLETON, Reason.MATCH_COUNT_BELOW_K)
)

NONE = dict.fromkeys(Reason, 0)


@given(samples, samples)
def test_statistic_is_that_of_scipy(first: FloatArray, second: FloatArray) -> None:
    found = kolmogorov_smirnov(first, second, first.size, second.size)
    assert found.statistic == pytest.approx(ks_2samp(first, second, method="asymp").statistic, abs=1e-12)
    assert 0 <= found.p_value <= 1


@pytest.mark.parametrize("moved", [0.0, 0.05, 0.1, 0.15, 0.2, 0.3])
def test_p_value_is_near_the_exact_one(moved: float) -> None:
    generator = np.random.default_rng(7)
    first, second = generator.normal(size=400), generator.normal(moved, size=300)
    found = kolmogorov_smirnov(first, second, 400, 300).p_value
    assert found == pytest.approx(ks_2samp(first, second, method="exact").pvalue, rel=0.2, abs=0.01)


def test_equal_samples_and_samples_apart() -> None:
    values = np.arange(50.0)
    equal, apart = kolmogorov_smirnov(values, values, 50, 50), kolmogorov_smirnov(values, values + 50, 50, 50)
    assert (equal.statistic, equal.p_value) == (0.0, 1.0)
    assert apart.statistic == 1.0
    assert apart.p_value < 1e-20


def test_fewer_independent_points_say_less() -> None:
    values = np.arange(100.0)
    all_of_them, a_tenth = (kolmogorov_smirnov(values, values + 25, size, size) for size in (100, 10))
    assert all_of_them.statistic == a_tenth.statistic
    assert all_of_them.p_value < 0.01
    assert a_tenth.p_value > 0.5


def test_no_points_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="got 0 and 3 points"):
        kolmogorov_smirnov(np.zeros(0), np.zeros(3), 1, 3)


def test_effective_size() -> None:
    assert effective_size(5, None) == 5
    # Two documents of three points, one of two: 8^2 / (9 + 9 + 4).
    assert effective_size(8, Documents(np.array([0, 0, 0, 1, 1, 1, 2, 2]), 3)) == pytest.approx(64 / 22)


def test_quantiles_are_values_that_occur() -> None:
    found = shift(np.array([0.0, 25.0]), np.arange(11.0), 2, 11)
    assert found.calibrated.tolist() == [0, 0, 0, 25, 25]
    assert found.decided.tolist() == [1, 2, 5, 8, 9]


def decided(rows: list[tuple[int, bool, bool, int]]) -> DecidedPoints:
    """Decisions from rows (exemplar, weighted, q = K, reason)."""
    ids, weighted, full, reason = (np.array(column) for column in zip(*rows, strict=True))
    none = np.zeros(len(ids), dtype=np.int64)
    return DecidedPoints(
        exemplar_ids=ids,
        calibration_ids=none,
        weighted=weighted,
        require_full_match=full,
        predicted=none,
        approximation=Approximation(np.zeros((len(ids), 2)), none, ids % 3, ids / 10),
        reason=reason,
        comparable=none == 0,
        label=none - 1,
        is_random=none == 1,
        seen_count=0,
    )


def test_outcomes_stand_apart_by_options() -> None:
    points = decided(
        [(3, True, False, -1), (4, False, False, SEVERAL), (5, True, False, STARVED), (9, True, True, NO_FULL_MATCH)]
    )
    assert outcomes(points) == (
        OutcomeCounts(True, False, 2, 1, NONE | {Reason.BAND_BELOW_KAPPA: 1}),
        OutcomeCounts(True, True, 1, 0, NONE | {Reason.MATCH_COUNT_BELOW_K: 1}),
        OutcomeCounts(False, False, 1, 0, NONE | {Reason.SET_NOT_SINGLETON: 1}),
    )
    assert outcomes(points, np.array([True, False, False, False])) == (OutcomeCounts(True, False, 1, 1, NONE),)


@pytest.mark.parametrize("moved", [0.0, 0.3, 1.0])
def test_the_true_difference_is_seldom_overestimated(moved: float) -> None:
    """With confidence 0.99; of normal samples the true difference is 2 Phi(moved / 2) - 1."""
    generator = np.random.default_rng(3)
    true = 2 * NormalDist().cdf(moved / 2) - 1
    least = []
    for _ in range(200):
        first, second = generator.normal(size=150), generator.normal(moved, size=100)
        least.append(kolmogorov_smirnov(first, second, 150, 100).least)
    assert np.mean(np.array(least) > true) <= 0.02
    assert moved < 1 or np.median(least) > 0.1


def test_a_shift_counts_by_its_size_not_by_significance() -> None:
    """With many points any difference is significant, and with few a large one may be chance."""
    generator = np.random.default_rng(5)

    def moved(by: float, count: int) -> Shift:
        return shift(generator.normal(size=count), generator.normal(by, size=count), count, count)

    small, large, few = moved(0.1, 20_000), moved(0.5, 2000), moved(0.5, 20)
    assert small.test.p_value < 1e-6
    assert (small.is_large, large.is_large, few.is_large) == (False, True, False)
    assert few.test.statistic > SHIFTED
