"""Simulated: Proposition 1 for Venn-ADMIT without a division, and the bands for which it does not hold, in either form.

Bands that depend on q alone part the points into categories, so the probability of the label that comes true is
calibrated for any number of points and any law. Bands of a width in d overlap: a point's category holds points whose
own categories are others. The shares are then calibrated as far as points of a band are right alike.
"""

from collections.abc import Iterator
from decimal import Decimal
from math import inf, log
from typing import Any

import numpy as np
import pytest

from tests.guarantees.draws import LEAST, MOST
from venn_admit.core.approximation.knn import calibration_points
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.calibrators.venn_admit.decide import decide, decide_undivided
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.calibrators.venn_admit.undivided import UndividedIndex
from venn_admit.core.calibrators.venn_admit.venn import VennIndex
from venn_admit.core.types import Approximation, IntArray

OFF = 0.15
"""A share right that is this much above or below what is said is told from one that is as said."""


def drawn(rng: np.random.Generator, count: int, right: np.ndarray) -> tuple[Approximation, IntArray]:
    """Points at the distances 0, 1, 2, that are right with these probabilities, whatever their logits say."""
    place = rng.integers(0, 3, count)
    predicted = rng.integers(0, 2, count)
    margin = np.round(1 + rng.random(count), 1)
    logits = np.where(predicted[:, np.newaxis] == np.arange(2), margin[:, np.newaxis], 0.0)
    label = np.where(rng.random(count) < right[place], predicted, 1 - predicted)
    return Approximation(logits, predicted, np.zeros(count, np.int64), place.astype(np.float64)), label


def said(right: np.ndarray, omega: float, *, count: int, scored: int) -> Iterator[tuple[float, bool]]:
    """The probability of being right that the label which comes true gives, and whether the point was right.

    scored: points that each calibration decides on, each as if it were alone.
    """
    rng = np.random.default_rng(11)
    under = make_settings(2, 1, alpha=Decimal("0.7"), kappa=3, q_bins=(0,), undivided=True)
    while True:
        (view, label), (others, true) = drawn(rng, count, right), drawn(rng, scored, right)
        index = UndividedIndex(calibration_points(view, label), view.logits, class_count=2, settings=under, omega=omega)
        evidence = others.logits, others.predicted, others.match_count, others.distance
        singleton = index.admit.sets(*evidence).singleton
        found = index.categories(singleton, *evidence)
        for row in np.flatnonzero(singleton).tolist():
            is_right, own = bool(true[row] == others.predicted[row]), int(true[row])
            yield (found.correct[row, own] + is_right) / (found.size[row, own] + 1), is_right


@pytest.mark.parametrize("right", [(0.9, 0.9, 0.9), (0.5, 1.0, 0.7)], ids=str)
@pytest.mark.parametrize("sign", [-1, 1])
def test_the_probability_of_the_label_that_comes_true_is_calibrated(right: tuple[float, ...], sign: int) -> None:
    """By Wald's test: as often right as said, and not `OFF` more or less often; for values above and below .8."""
    evidence = {True: 0.0, False: 0.0}
    for value, is_right in said(np.array(right), inf, count=20, scored=1):
        other = min(max(value + sign * OFF, 0.001), 0.999)
        if 0 < value < 1 and LEAST < evidence[value > 0.8] < MOST:
            evidence[value > 0.8] += log(other / value) if is_right else log((1 - other) / (1 - value))
        if not any(LEAST < one < MOST for one in evidence.values()):
            break
    assert max(evidence.values()) <= LEAST


def test_bands_that_overlap_are_calibrated_only_if_their_points_are_right_alike() -> None:
    """Right with .5, 1 and .5 at the distances 0, 1 and 2, and bands of radius 1: .75 is said at the ends."""
    right, count = np.array([0.5, 1.0, 0.5]), 3000
    rng = np.random.default_rng(2)
    (view, label), (others, true) = drawn(rng, count, right), drawn(rng, count, right)
    ends = others.distance != 1
    under = make_settings(2, 1, alpha=Decimal("0.7"), kappa=3, q_bins=(0,), undivided=True)
    divided = make_settings(2, 1, alpha=Decimal("0.7"), kappa=3, q_bins=(0,))
    points = calibration_points(view, label)
    index = UndividedIndex(points, view.logits, class_count=2, settings=under, omega=1.0)
    mc, vp = np.arange(count // 2), np.arange(count // 2, count)
    admit = AdmitIndex(calibration_points(view.take(mc), label[mc]), class_count=2, settings=divided, omega=1.0)
    of_vp = view.take(vp)
    sets = admit.sets(of_vp.logits, of_vp.predicted, of_vp.match_count, of_vp.distance)
    venn = VennIndex(calibration_points(of_vp, label[vp]), sets.singleton, class_count=2, settings=divided, omega=1.0)
    how: dict[str, Any] = {"neighbour_count": 1, "require_full_match": False}
    for found in (
        decide_undivided(index, others, under, **how),
        decide(admit, venn, others, divided, localizer=None, **how),
    ):
        single = found.sets.singleton & ends
        assert single.sum() > 500
        assert found.probabilities.lower[single].mean() == pytest.approx(0.75, abs=0.03)
        assert (others.predicted == true)[single].mean() == pytest.approx(0.5, abs=0.06)
