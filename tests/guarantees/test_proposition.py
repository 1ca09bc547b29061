"""Simulated: what the validity of a Venn predictor says, and the counterexample to what it does not say.

The source's Proposition 1: if the points of a category and the scored point are exchangeable, and the category was
fixed without the labels of `vp`, one of the two probabilities is calibrated: that of the assumed label that comes true.
It does not follow that predictions whose lower probability is at least 1 - alpha are right that often.
"""

from math import comb, sqrt

import numpy as np
import pytest

from venn_admit.core.calibrators.venn_admit.venn import venn_probabilities
from venn_admit.core.types import BoolArray, IntArray, VennProbabilities

DRAWS, SHARE_RIGHT, TARGET = 200_000, 0.89, 0.9


def drawn(size: int) -> tuple[IntArray, BoolArray, VennProbabilities]:
    """Categories of `size` points that are right with probability .89, and a scored point of the same law each."""
    rng = np.random.default_rng(size)
    correct = rng.binomial(size, SHARE_RIGHT, DRAWS)
    sizes, every = np.full(DRAWS, size), np.ones(DRAWS, np.bool_)
    return correct, rng.random(DRAWS) < SHARE_RIGHT, venn_probabilities(every, sizes, correct, None)


@pytest.mark.parametrize("size", [50, 200, 1000])
def test_the_probability_of_the_label_that_comes_true_is_calibrated(size: int) -> None:
    """Whatever value it has: among points with it, that share is right."""
    correct, right, found = drawn(size)
    came_true = np.where(right, found.upper, found.lower)
    together = correct + right
    for count in np.flatnonzero(np.bincount(together) > 2000).tolist():
        among = together == count
        value = came_true[among]
        assert value.min() == value.max() == pytest.approx(count / (size + 1))
        error = sqrt(count / (size + 1) * (1 - count / (size + 1)) / among.sum())
        assert right[among].mean() == pytest.approx(count / (size + 1), abs=4.5 * error)


@pytest.mark.parametrize(("size", "admitting"), [(50, 0.344), (200, 0.293), (1000, 0.144)])
def test_lower_probabilities_of_the_target_do_not_make_that_share_right(size: int, admitting: float) -> None:
    """A category that is .89 right is admitted in many calibrations, and what is admitted is then .89 right."""
    _, right, found = drawn(size)
    admitted = found.lower >= TARGET
    least = int(np.ceil(TARGET * (size + 1) - 1e-9))
    expected = sum(
        comb(size, count) * SHARE_RIGHT**count * (1 - SHARE_RIGHT) ** (size - count) for count in range(least, size + 1)
    )
    assert expected == pytest.approx(admitting, abs=0.0005)
    assert admitted.mean() == pytest.approx(expected, abs=0.005)
    assert right[admitted].mean() == pytest.approx(SHARE_RIGHT, abs=0.005)
    assert right[admitted].mean() < TARGET
