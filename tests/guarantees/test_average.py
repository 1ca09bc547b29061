"""Simulated: the average promise holds under every law, also those under which the pointwise rule fails.

The mean over calibrations of the share wrong of what is admitted, 0 if nothing is, is at most alpha. The law is known,
so that shares are those of the population and not of a sample.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from math import sqrt

import numpy as np
import pytest
from numpy.random import Generator

from venn_admit.core.calibrators.average.policy import (
    NO_TRAFFIC,
    UnlabelledCells,
    one_of_each_document,
    select_on_average,
)
from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex
from venn_admit.core.calibrators.venn_abers.certified_cells import LabelledCells
from venn_admit.core.types import BoolArray, FloatArray

ALPHA = 0.1
DRAWS = 400
GRID = np.linspace(0, 1, 2001)
"""Scores are uniform in [0, 1]; shares are those of this grid."""
Law = Callable[[FloatArray], FloatArray]
LAWS: dict[str, Law] = {
    "flat": lambda score: np.full_like(score, 0.89),
    "rising": lambda score: 0.80 + 0.099 * score,
    "steep": lambda score: 1 - 0.35 * (1 - score) ** 2 - 0.03,
    "linear": lambda score: 0.5 + 0.5 * score,
    "low": lambda score: 0.4 + 0.57 * score,
    "step": lambda score: np.where(score > 0.5, 0.98, 0.6),
}


def points(score: FloatArray) -> CellPoints:
    none = np.zeros(len(score), dtype=np.int64)
    return CellPoints(none, none, score)


def thresholds(law: Law, size: int, recent: int) -> Iterator[tuple[float, CellPoints, BoolArray]]:
    """The threshold of each draw, 2 for never, with the calibration points and whether they are right."""
    for draw in range(DRAWS):
        rng = np.random.default_rng([size, recent, draw])
        calibration = points(rng.random(size))
        right = rng.random(size) < law(calibration.score)
        cells = LabelledCells(calibration, (~right).astype(np.int64), [str(row) for row in range(size)])
        traffic = UnlabelledCells(points(rng.random(recent)), [f"t{row}" for row in range(recent)])
        (threshold,) = select_on_average(cells, traffic, class_count=1, alpha=Decimal("0.1")).policy.thresholds
        yield 2 if threshold is None else threshold, calibration, right


def bounded(wrong: FloatArray) -> bool:
    """Whether a mean of at most alpha explains the shares wrong of the draws, up to three standard errors."""
    return bool(wrong.mean() <= ALPHA + 3 * wrong.std() / sqrt(len(wrong)))


@pytest.mark.parametrize(("size", "recent"), [(20, 0), (50, 0), (200, 0), (50, 1000)])
@pytest.mark.parametrize("law", LAWS)
def test_at_most_alpha_are_wrong_on_average(law: str, size: int, recent: int) -> None:
    errors = 1 - LAWS[law](GRID)
    admitted = [threshold <= GRID for threshold, *_ in thresholds(LAWS[law], size, recent)]
    assert bounded(np.array([errors[among].sum() / max(1, among.sum()) for among in admitted]))


@pytest.mark.parametrize(
    ("law", "average", "pointwise"),
    [("steep", 0.73, 0.37), ("linear", 0.37, 0.15), ("low", 0.22, 0.09), ("step", 0.63, 0.44)],
)
def test_more_is_admitted_than_pointwise(law: str, average: float, pointwise: float) -> None:
    """With 200 labels of a predicted class."""
    shares = []
    for threshold, calibration, right in thresholds(LAWS[law], 200, 1000):
        lower = VennAbersIndex(calibration, right, class_count=1).bounds(points(GRID)).lower
        shares.append(((threshold <= GRID).mean(), (lower >= 1 - ALPHA).mean()))
    assert np.mean(shares, axis=0) == pytest.approx([average, pointwise], abs=0.02)


def documents(rng: Generator, count: int, size: int) -> tuple[CellPoints, BoolArray, list[str]]:
    """Documents of `size` points, of which all are right, all wrong, or as many as their scores say."""
    kind = rng.random(count).repeat(size)
    score = np.clip(kind / 2 + rng.random(count * size) / 2, 0, 1)
    right = np.where(kind < 0.3, kind < 0.15, rng.random(count * size) < 0.7 + 0.3 * score)
    return points(score), right, [f"d{row // size}" for row in range(count * size)]


def test_documents_count_by_one_point_each() -> None:
    """Points of a document say nearly the same; the share is that of a point of each of many documents."""
    wrong, every = np.zeros(DRAWS), np.zeros(DRAWS)
    for draw in range(DRAWS):
        rng = np.random.default_rng(draw)
        calibration, right, keys = documents(rng, 100, 8)
        cells = LabelledCells(calibration, (~right).astype(np.int64), keys)
        (threshold,) = select_on_average(cells, NO_TRAFFIC, class_count=1, alpha=Decimal("0.1")).policy.thresholds
        later, right, keys = documents(rng, 500, 8)
        counted = one_of_each_document(later, right, keys)
        admitted = later.score >= (2 if threshold is None else threshold)
        wrong[draw] = (admitted & counted & ~right).sum() / max(1, (admitted & counted).sum())
        every[draw] = admitted.mean()
    assert bounded(wrong)
    assert every.mean() > 0.1
