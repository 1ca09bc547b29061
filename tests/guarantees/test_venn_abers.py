"""Simulated: Venn-Abers is calibrated in its cell (Vovk & Petej 2014, *Venn-Abers predictors*, theorem 1).

The points of a law are independent, so that calibration points and scored points are exchangeable. Let P be the upper
probability if the prediction turns out right, and the lower one if it turns out wrong. Then E[right | P] = P. What is
admitted for its p0, which is at most P, is looked at besides. Isotonic regression on the calibration points alone,
without the scored point, promises too much on the same draws.
"""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import pytest

from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex
from venn_admit.core.types import BoolArray, FloatArray, IntArray

CLASS_COUNT = 2
DRAWS, CALIBRATION_SIZE, SCORED_SIZE = 1500, 120, 100
EDGES = np.array([0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0])
PROMISED_SHARE = 0.9
STANDARD_ERRORS = 4.0
NEARLY_NO_WEIGHT = 1e-9


def draw_points(rng: np.random.Generator, count: int) -> tuple[CellPoints, BoolArray]:
    """A network that is surer than it may be: of class 1 its score promises far more than for class 0."""
    predicted = (rng.random(count) < 0.3).astype(np.int64)
    score = rng.beta(4, 1, count)
    right = rng.random(count) < np.where(predicted == 1, 0.2 + 0.75 * score**3, 0.4 + 0.6 * score)
    return CellPoints(predicted, rng.integers(0, 6, count), score), right


@dataclass(frozen=True)
class Simulation:
    """All scored points, (draws, m) each; isotonic: isotonic regression without the scored point."""

    predicted: IntArray
    right: BoolArray
    lower: FloatArray
    upper: FloatArray
    isotonic: FloatArray

    def excess(self, among: BoolArray, said: FloatArray) -> tuple[float, float]:
        """The mean of right less what was said among some points, and its standard error over draws."""
        residual = np.where(among, self.right - said, 0.0).sum(axis=1)
        count = among.sum(axis=1)
        mean = residual.sum() / count.sum()
        return float(mean), sqrt(np.square(residual - mean * count).sum()) / float(count.sum())


@pytest.fixture(scope="module")
def simulation() -> Simulation:
    drawn: list[list[np.ndarray[tuple[int], np.dtype[np.generic]]]] = []
    for draw in range(DRAWS):
        rng = np.random.default_rng(draw)
        mc, mc_right = draw_points(rng, CALIBRATION_SIZE)
        scored, right = draw_points(rng, SCORED_SIZE)
        index = VennAbersIndex(mc, mc_right, class_count=CLASS_COUNT)
        bounds = index.bounds(scored)
        isotonic = index.bounds(scored, np.full(SCORED_SIZE, NEARLY_NO_WEIGHT)).lower
        drawn.append([scored.predicted, right, bounds.lower, bounds.upper, isotonic])
    predicted, right, lower, upper, isotonic = (np.stack(column) for column in zip(*drawn, strict=True))
    return Simulation(
        predicted.astype(np.int64),
        right.astype(np.bool_),
        lower.astype(np.float64),
        upper.astype(np.float64),
        isotonic.astype(np.float64),
    )


@pytest.mark.parametrize("predicted", range(CLASS_COUNT))
def test_the_bound_that_comes_true_is_calibrated(simulation: Simulation, predicted: int) -> None:
    said = np.where(simulation.right, simulation.upper, simulation.lower)
    place = np.digitize(said, EDGES[1:-1], right=True)
    for number in range(len(EDGES) - 1):
        among = (simulation.predicted == predicted) & (place == number)
        excess, error = simulation.excess(among, said)
        assert among.sum() > 500
        assert abs(excess) < STANDARD_ERRORS * error, f"P in ({EDGES[number]}, {EDGES[number + 1]}]"


@pytest.mark.parametrize("predicted", range(CLASS_COUNT))
def test_the_share_right_lies_between_the_bounds(simulation: Simulation, predicted: int) -> None:
    among = simulation.predicted == predicted
    above_lower, lower_error = simulation.excess(among, simulation.lower)
    below_upper, upper_error = simulation.excess(among, simulation.upper)
    assert above_lower > STANDARD_ERRORS * lower_error
    assert below_upper < -STANDARD_ERRORS * upper_error


@pytest.mark.parametrize("predicted", range(CLASS_COUNT))
def test_what_p0_admits_is_right_often_enough_where_isotonic_regression_falls_short(
    simulation: Simulation, predicted: int
) -> None:
    of_class = simulation.predicted == predicted
    promised = np.full(simulation.right.shape, PROMISED_SHARE)
    admitted = of_class & (simulation.lower >= PROMISED_SHARE)
    excess, error = simulation.excess(admitted, promised)
    assert admitted.sum() > 500
    assert excess > -STANDARD_ERRORS * error
    by_isotonic = of_class & (simulation.isotonic >= PROMISED_SHARE)
    shortfall, error = simulation.excess(by_isotonic, simulation.isotonic)
    assert shortfall < -STANDARD_ERRORS * error
