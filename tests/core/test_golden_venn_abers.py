"""Venn-Abers against independent results (tests/golden/README.md)."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from venn_admit.core.approximation.knn import network_prediction
from venn_admit.core.calibrators.venn_abers.cells import Bounds, CellPoints, VennAbersIndex
from venn_admit.core.calibrators.venn_abers.reliability import (
    ReliabilityModel,
    fit_reliability,
    reliability_score,
)
from venn_admit.core.types import Approximation, FloatArray, IntArray

NEIGHBOURS = 25
CASES = pytest.mark.parametrize("case", range(5))


@pytest.fixture(scope="module")
def golden() -> dict[str, npt.NDArray[Any]]:
    with np.load(Path(__file__).parents[1] / "golden" / "venn_abers.npz") as arrays:
        return dict(arrays)


def points(score: FloatArray, predicted: IntArray | None = None) -> CellPoints:
    zeros = np.zeros(len(score), dtype=np.int64)
    return CellPoints(zeros if predicted is None else predicted, zeros, score)


def view_of(golden: dict[str, npt.NDArray[Any]], split: str) -> Approximation:
    logits = golden[f"{split}_logits"]
    return Approximation(logits, network_prediction(logits), golden[f"{split}_q"], golden[f"{split}_d"])


def fitted(golden: dict[str, npt.NDArray[Any]]) -> ReliabilityModel:
    return fit_reliability(golden["knn_f"], view_of(golden, "knn"), golden["knn_y"], neighbour_count=NEIGHBOURS)


def assert_bounds(found: Bounds, expected: FloatArray) -> None:
    np.testing.assert_allclose(np.stack([found.lower, found.upper], axis=1), expected, rtol=0, atol=1e-9)


@CASES
@pytest.mark.parametrize("kind", ["plain", "weighted"])
def test_bounds(golden: dict[str, npt.NDArray[Any]], case: int, kind: str) -> None:
    right = golden[f"case{case}_cal_right"] == 1
    index = VennAbersIndex(points(golden[f"case{case}_cal_score"]), right, class_count=2)
    weight = golden[f"case{case}_weight"] if kind == "weighted" else None
    assert_bounds(index.bounds(points(golden[f"case{case}_score"]), weight), golden[f"case{case}_{kind}"])


def test_the_fit_of_the_reliability_score(golden: dict[str, npt.NDArray[Any]]) -> None:
    model = fitted(golden)
    np.testing.assert_allclose(model.median_distance, golden["median_d"], rtol=1e-12)
    for number in range(2):
        for name in ("mean", "sd", "coefficients", "intercept"):
            found = getattr(model.models[str(number)], name)
            np.testing.assert_allclose(found, golden[name][number], rtol=0, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("split", ["mc", "test"])
def test_reliability_scores(golden: dict[str, npt.NDArray[Any]], split: str) -> None:
    found = reliability_score(fitted(golden), golden[f"{split}_f"], view_of(golden, split), neighbour_count=NEIGHBOURS)
    np.testing.assert_allclose(found, golden[f"{split}_score"], rtol=0, atol=1e-8)


def test_bounds_of_the_reliability_score(golden: dict[str, npt.NDArray[Any]]) -> None:
    predicted = network_prediction(golden["mc_f"])
    index = VennAbersIndex(points(golden["mc_score"], predicted), predicted == golden["mc_y"], class_count=2)
    found = index.bounds(points(golden["test_score"], network_prediction(golden["test_f"])))
    assert_bounds(found, golden["test_lower_upper"])
