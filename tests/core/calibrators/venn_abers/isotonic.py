"""Venn-Abers bounds as section 9 defines them: isotonic regression refitted for every point, in rational numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.types import BoolArray, FloatArray, IntArray


def isotonic_value(
    scores: Sequence[float], weights: Sequence[Fraction], ones: Sequence[Fraction], at: float
) -> Fraction:
    """The value of isotonic regression at one of the scores, by pooling adjacent violators.

    ones: the weight of each observation that counts as one.
    """
    groups: dict[float, tuple[Fraction, Fraction]] = {}
    for score, weight, one in zip(scores, weights, ones, strict=True):
        total, hits = groups.get(score, (Fraction(0), Fraction(0)))
        groups[score] = total + weight, hits + one
    pools: list[tuple[Fraction, Fraction, float]] = []  # weight, ones, greatest score
    for score in sorted(groups):
        total, hits = groups[score]
        while pools and pools[-1][1] / pools[-1][0] >= hits / total:
            total, hits = total + pools[-1][0], hits + pools[-1][1]
            pools.pop()
        pools.append((total, hits, score))
    return next(hits / total for total, hits, greatest in pools if at <= greatest)


def bounds_of(scores: FloatArray, right: BoolArray, score: float, weight: float = 1.0) -> tuple[Fraction, Fraction]:
    """p0 and p1 of one point: it is added w times with outcome wrong, then right."""
    added = [*scores.tolist(), score]
    weights = [*[Fraction(1)] * len(scores), Fraction(weight)]
    outcomes = [Fraction(int(one)) for one in right]
    lower = isotonic_value(added, weights, [*outcomes, Fraction(0)], score)
    upper = isotonic_value(added, weights, [*outcomes, Fraction(weight)], score)
    return lower, upper


@dataclass(frozen=True)
class Case:
    """Points of mc, points to score with their weights, and the bins of q."""

    class_count: int
    q_bins: tuple[int, ...]
    mc: CellPoints
    right: BoolArray
    scored: CellPoints
    weight: FloatArray

    def cell_rows(self, row: int) -> BoolArray:
        """Which points of mc are in the cell of a scored point."""

        def bins(match_count: IntArray) -> IntArray:
            return np.digitize(match_count, self.q_bins)

        same_bin = bins(self.mc.match_count) == bins(self.scored.match_count[row : row + 1])
        found: BoolArray = same_bin & (self.mc.predicted == self.scored.predicted[row])
        return found


def draw_points(rng: np.random.Generator, count: int, class_count: int, grid: int) -> CellPoints:
    """Points whose scores lie on a grid, so that many are tied; grid 0 stands for no grid."""
    score = rng.random(count) if grid == 0 else rng.integers(0, grid + 1, count) / grid
    return CellPoints(rng.integers(0, class_count, count), rng.integers(0, 4, count), score)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """C in 1..3, one or two bins of q, ties or none, cells with nothing right, nothing wrong, or nothing at all."""
    class_count = draw(st.integers(1, 3))
    grid = draw(st.sampled_from([0, 1, 3, 10]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    mc = draw_points(rng, draw(st.sampled_from([0, 1, 2, 5, 20, 60])), class_count, grid)
    law = draw(st.sampled_from(["as the score", "against the score", "all right", "all wrong", "often right"]))
    chance: FloatArray = {
        "as the score": mc.score,
        "against the score": 1 - mc.score,
        "all right": np.ones(len(mc.score)),
        "all wrong": np.zeros(len(mc.score)),
        "often right": np.full(len(mc.score), 0.9),
    }[law]
    scored = draw_points(rng, draw(st.sampled_from([0, 1, 12])), class_count, grid)
    weight = np.where(rng.random(len(scored.score)) < 0.2, 1.0, rng.gamma(0.7, 10.0, len(scored.score)) + 0.01)
    return Case(
        class_count=class_count,
        q_bins=draw(st.sampled_from([(0,), (0, 2)])),
        mc=mc,
        right=rng.random(len(mc.score)) < chance,
        scored=scored,
        weight=weight,
    )
