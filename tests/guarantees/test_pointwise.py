"""Simulated: under which laws the pointwise rule admits predictions of which fewer than 1 - alpha are right.

Admitting where p0 >= 1 - alpha conditions on another event than the validity of Venn predictors does, so no share right
of the admitted follows from it. The laws are just short of 1 - alpha, and what they admit is right with a probability
that is known exactly. What held in both is the weaker statement on average over calibrations. The page on promises
has the figures.
"""

from collections.abc import Callable
from math import sqrt

import numpy as np
import pytest

from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex
from venn_admit.core.types import FloatArray

THRESHOLD, ALPHA = 0.9, 0.1
DRAWS = 400
GRID = np.linspace(0, 1, 2001)
"""Scores are uniform in [0, 1]; the share right of what is admitted is that of this grid."""


def flat(score: FloatArray) -> FloatArray:
    return np.full_like(score, 0.89)


def rising(score: FloatArray) -> FloatArray:
    return 0.80 + 0.099 * score


def points(score: FloatArray) -> CellPoints:
    none = np.zeros(len(score), dtype=np.int64)
    return CellPoints(none, none, score)


def simulate(law: Callable[[FloatArray], FloatArray], size: int) -> tuple[float, float, FloatArray]:
    """The share of calibrations that admit, the share right of all they admit, and the shares wrong, (draws,)."""
    right = law(GRID)
    admitted, correct = np.zeros(DRAWS), np.zeros(DRAWS)
    for draw in range(DRAWS):
        rng = np.random.default_rng([size, draw])
        score = rng.random(size)
        index = VennAbersIndex(points(score), rng.random(size) < law(score), class_count=1)
        among = index.bounds(points(GRID)).lower >= THRESHOLD
        admitted[draw], correct[draw] = among.mean(), (among * right).mean()
    wrong = np.divide(admitted - correct, admitted, out=np.zeros(DRAWS), where=admitted > 0)
    return float((admitted > 0).mean()), float(correct.sum() / admitted.sum()), wrong


@pytest.mark.parametrize(
    ("law", "size", "admitting", "share_right"),
    [
        (flat, 50, 0.62, 0.890),
        (flat, 200, 0.77, 0.890),
        (flat, 1000, 0.80, 0.890),
        (flat, 5000, 0.83, 0.890),
        (rising, 50, 0.53, 0.878),
        (rising, 200, 0.70, 0.884),
        (rising, 1000, 0.80, 0.889),
        (rising, 5000, 0.87, 0.893),
    ],
)
def test_a_law_just_short_of_the_target_is_admitted_and_falls_short(
    law: Callable[[FloatArray], FloatArray], size: int, admitting: float, share_right: float
) -> None:
    calibrations, right, wrong = simulate(law, size)
    assert calibrations == pytest.approx(admitting, abs=0.03)
    assert right == pytest.approx(share_right, abs=0.002)
    assert right < THRESHOLD
    # Nothing admitted counts as nothing wrong, which is what keeps the mean below alpha.
    assert wrong.mean() <= ALPHA + 3 * wrong.std() / sqrt(DRAWS)
