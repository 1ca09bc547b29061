"""Plain Venn-Abers bounds against the package venn-abers 1.5 (Petej), an independent implementation.

Both are inductive Venn-Abers predictors in which equal scores share one value, and a scored point that is tied with
calibration points joins their group. Its definition is compared for each cell on its own, because the package knows no
cells. What it has beyond that (weights per class, several classes, cross validation, rounding of scores) has no
counterpart here, and it has no weights per scored point.
"""

import warnings

import numpy as np
import pytest

from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex
from venn_admit.core.types import BoolArray, FloatArray

with np.errstate():  # the package changes NumPy's handling of errors for the whole process
    from venn_abers import VennAbers


def draw(grid: int, seed: int) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Scores of mc, whether they are right, and scores to judge; ties between all of them if there is a grid."""
    rng = np.random.default_rng(seed)
    scores = rng.random(900) if grid == 0 else rng.integers(0, grid + 1, 900) / grid
    right = rng.random(700) < 0.4 + 0.5 * scores[:700]
    return scores[:700], right, scores[700:]


@pytest.mark.parametrize("grid", [0, 3, 40])
@pytest.mark.parametrize("seed", range(5))
def test_bounds_agree(grid: int, seed: int) -> None:
    calibrating, right, scored = draw(grid, seed)
    library = VennAbers()
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        library.fit(np.stack([1 - calibrating, calibrating], axis=1), right.astype(np.int64))
        _, expected = library.predict_proba(np.stack([1 - scored, scored], axis=1))

    def points(score: FloatArray) -> CellPoints:
        return CellPoints(np.zeros(len(score), dtype=np.int64), np.zeros(len(score), dtype=np.int64), score)

    found = VennAbersIndex(points(calibrating), right, class_count=1).bounds(points(scored))
    np.testing.assert_allclose(np.stack([found.lower, found.upper], axis=1), expected, rtol=0, atol=1e-12)
