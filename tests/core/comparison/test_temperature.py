"""The temperature: the golden one, the minimum it must be, and what is returned where there is none."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from venn_admit.core.comparison import confidence
from venn_admit.core.comparison.confidence import SEARCH_RANGE, fit_temperature
from venn_admit.core.types import Float32Array, IntArray
from venn_admit.errors import InvalidInputError, NotReadyError

GOLDEN = Path(__file__).parents[2] / "golden" / "baselines.npz"


def slope(logits: Float32Array, label: IntArray, value: float) -> float:
    """Derivative of the mean negative log-likelihood by 1 / T: mean logit expected, less the label's."""
    exact = logits.astype(np.float64)
    weight = np.exp((exact - exact.max(axis=1, keepdims=True)) / value)
    expected = (weight * exact).sum(axis=1) / weight.sum(axis=1)
    return float((expected - exact[np.arange(len(label)), label]).mean())


def draw(seed: int, count: int, class_count: int) -> tuple[Float32Array, IntArray]:
    rng = np.random.default_rng(seed)
    label = rng.integers(class_count, size=count)
    logits = rng.standard_normal((count, class_count))
    logits[np.arange(count), label] += 1.0
    return logits.astype(np.float32), label


@pytest.mark.parametrize("name", ["two", "ten"])
def test_golden(name: str) -> None:
    with np.load(GOLDEN) as golden:
        logits, label = golden[f"{name}_f_cal"], golden[f"{name}_y_cal"]
        expected = float(golden[f"{name}_temperature"])
    found = fit_temperature(logits, label)
    assert found == pytest.approx(expected, rel=1e-6)
    assert slope(logits, label, found) == pytest.approx(0, abs=1e-13)


@given(seed=st.integers(0, 2**32 - 1), class_count=st.integers(2, 12), scale=st.sampled_from([1e-4, 0.03, 1.0, 40.0]))
@settings(max_examples=50, deadline=None)
def test_is_the_minimum(seed: int, class_count: int, scale: float) -> None:
    logits, label = draw(seed, 60, class_count)
    logits *= np.float32(scale)
    found = fit_temperature(logits, label)
    assert slope(logits, label, found) == pytest.approx(0, abs=1e-10 * scale)
    # In 1 / T the likelihood has one optimum: before it the slope is negative, after it positive.
    assert slope(logits, label, found * 1.01) < 0 < slope(logits, label, found * 0.99)


def test_scales_with_the_logits() -> None:
    logits, label = draw(0, 500, 5)
    assert fit_temperature(logits * 1024, label) == pytest.approx(1024 * fit_temperature(logits, label), rel=1e-12)


@pytest.mark.parametrize("elements", [1, 40, 400, 2**16])
def test_neither_the_order_nor_the_blocks_of_rows_show(elements: int, monkeypatch: pytest.MonkeyPatch) -> None:
    logits, label = draw(1, 401, 10)
    expected = fit_temperature(logits, label)
    monkeypatch.setattr(confidence, "BLOCK_ELEMENTS", elements)
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(label))
        assert fit_temperature(logits[order], label[order]) == expected


def test_no_row_is_summed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks of four, one of five rows would be, in another order than the others."""
    monkeypatch.setattr(confidence, "BLOCK_ELEMENTS", 1)
    for seed in range(20):
        logits, label = draw(seed, 5, 100)
        turned = [(np.roll(logits, places, axis=0), np.roll(label, places)) for places in range(5)]
        assert len({fit_temperature(*rows) for rows in turned}) == 1


def test_reads_a_memory_map(tmp_path: Path) -> None:
    logits, label = draw(2, 300, 4)
    np.save(tmp_path / "logits.npy", logits)
    mapped = np.load(tmp_path / "logits.npy", mmap_mode="r")
    assert fit_temperature(mapped, label) == fit_temperature(logits, label)


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ([0, 1, 1], 4.0 / SEARCH_RANGE),  # always the highest logit
        ([1, 0, 0], 4.0 * SEARCH_RANGE),  # always the lowest
        ([1, 1, 1], 4.0 * SEARCH_RANGE),  # no better than chance
    ],
)
def test_without_an_optimum_the_end_of_the_range(label: list[int], expected: float) -> None:
    logits = np.array([[4, 0], [0, 2], [0, 2]], dtype=np.float32)
    assert fit_temperature(logits, np.array(label)) == pytest.approx(expected)


def test_an_optimum_beyond_the_range() -> None:
    """One point's logits lie so far apart that the others' best temperature, about 1, is below the range."""
    logits = np.array([[1e12, 0], [1, 0], [0, 1], [1, 0]], dtype=np.float32)
    assert fit_temperature(logits, np.array([0, 0, 0, 0])) == pytest.approx(1e12 / SEARCH_RANGE, rel=1e-6)


def test_logits_that_tell_nothing() -> None:
    assert fit_temperature(np.full((3, 2), 7.0, dtype=np.float32), np.array([0, 1, 1])) == 1.0


def test_no_points() -> None:
    with pytest.raises(NotReadyError, match="ingest held-out data"):
        fit_temperature(np.empty((0, 2), dtype=np.float32), np.empty(0, dtype=np.int64))


@pytest.mark.parametrize(
    ("logits", "label", "message"),
    [
        ([[1.0], [2.0]], [0, 0], "at least 2 classes"),
        ([[1.0, 2.0]], [0, 0], "same points"),
        ([[1.0, 2.0]], [2], "labels from 0 to 1"),
        ([[1.0, 2.0]], [-1], "unlabelled"),
        ([[1.0, np.nan]], [0], "finite"),
        ([[np.inf, np.inf]], [0], "finite"),
        ([[-np.inf, 1.0]], [0], "finite"),
    ],
)
def test_refuses(logits: list[list[float]], label: list[int], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        fit_temperature(np.array(logits, dtype=np.float32), np.array(label))
