"""Venn-Abers bounds of a batch against one np.sort of the scores, and against the package venn-abers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.data import generator
from benchmarks.measure import Measurement, compare
from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex
from venn_admit.core.types import BoolArray, FloatArray

_CALIBRATING = 125_000
_SCORED = 100_000
_LIBRARY_CALIBRATING = 12_500  # the package's time grows with the square of the points of a cell


def measure(large: bool) -> Iterator[Measurement]:
    for class_count in (3, 50):
        yield from _beside_sort(_Case.draw(class_count, _CALIBRATING))
        yield _beside_library(_Case.draw(class_count, _CALIBRATING if large else _LIBRARY_CALIBRATING))


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """Points of mc, whether they are right, and points to be scored with their weights."""

    class_count: int
    mc: CellPoints
    right: BoolArray
    scored: CellPoints
    upweight: FloatArray

    @classmethod
    def draw(cls, class_count: int, calibrating: int) -> "_Case":
        rng = generator()

        def points(count: int) -> CellPoints:
            predicted = rng.integers(class_count, size=count)
            return CellPoints(predicted, np.zeros(count, dtype=np.int64), rng.beta(4, 1, size=count))

        mc = points(calibrating)
        return cls(
            class_count=class_count,
            mc=mc,
            right=rng.random(calibrating) < 0.3 + 0.65 * mc.score,
            scored=points(_SCORED),
            upweight=1 + rng.gamma(1.0, 20.0, size=_SCORED),
        )

    def index(self) -> VennAbersIndex:
        return VennAbersIndex(self.mc, self.right, class_count=self.class_count)

    @property
    def size(self) -> str:
        return f"{len(self.scored.score):,} by {len(self.right):,}, C={self.class_count}"

    def by_library(self) -> FloatArray:
        """p0 and p1 as the package gives them, (m, 2)."""
        with np.errstate(all="ignore"):  # the package changes NumPy's handling of errors for the whole process
            from venn_abers import VennAbers

            found = np.empty((len(self.scored.score), 2))
            for predicted in range(self.class_count):
                inside, asked = self.mc.predicted == predicted, self.scored.predicted == predicted
                library = VennAbers()
                library.fit(_two_columns(self.mc.score[inside]), self.right[inside].astype(np.int64))
                _, found[asked] = library.predict_proba(_two_columns(self.scored.score[asked]))
        return found


def _beside_sort(case: _Case) -> Iterator[Measurement]:
    index = case.index()
    steps = {
        "Venn-Abers, steps of mc": case.index,
        "Venn-Abers, plain bounds": lambda: index.bounds(case.scored),
        "Venn-Abers, weighted, with mc": lambda: case.index().bounds(case.scored, case.upweight),
    }
    for what, work in steps.items():
        yield compare(what, case.size, "np.sort of mc's scores", work, lambda: np.sort(case.mc.score), turns=15)


def _beside_library(case: _Case) -> Measurement:
    bounds = case.index().bounds(case.scored)
    np.testing.assert_allclose(np.stack([bounds.lower, bounds.upper], axis=1), case.by_library(), rtol=0, atol=1e-12)
    return compare(
        "Venn-Abers, steps and plain bounds",
        case.size,
        "venn-abers 1.5, cell by cell",
        lambda: case.index().bounds(case.scored),
        case.by_library,
        turns=1,
    )


def _two_columns(score: FloatArray) -> npt.NDArray[Any]:
    return np.stack([1 - score, score], axis=1)
