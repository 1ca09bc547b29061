"""Lower probabilities of points of `mc` by cross-fitting without a division: all points of the other folds calibrate.

The radius comes from them as well, since `knn` is not there; it takes a calibration to keep the two apart.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil

import numpy as np

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET, block_rows
from venn_admit.core.calibrators.bands import band_radius
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.calibrators.venn_admit.sets import smallest_class_count
from venn_admit.core.calibrators.venn_admit.undivided import UndividedIndex, joined_probabilities
from venn_admit.core.checks import check_lengths
from venn_admit.core.types import CalibrationPoints, FloatArray, IntArray

USUAL_GROWTH = Fraction(2)
"""How many times as many points as `mc` those of `mc` and `vp` are, by the default shares of splits."""


def undivided_lower(
    points: CalibrationPoints,
    logits: FloatArray,
    others: IntArray,
    judged: IntArray,
    settings: CalibratorSettings,
    kappas: Sequence[int],
    *,
    class_count: int,
    growth: Fraction,
    memory_budget: int,
) -> FloatArray:
    """Return the lower probability of some points of `mc` from other ones, for some kappas.

    A kappa is a number of points out of all that an undivided calibration has; of those that calibrate here, bands must
    hold the same part, rounded up.

    Args:
        points: n points of `mc`.
        logits: (n, C) float64, finite, KNN(x).
        others: (k,) int64, the rows that calibrate.
        judged: (m,) int64, the rows to return, none of them among the others.
        settings: Undivided; their kappa and thresholds are ignored.
        kappas: Numbers of points, each at least 1.
        growth: How many times as many points as `mc` an undivided calibration has.

    Returns:
        (kappas, m) float64 in [0, 1]; NaN for a point whose set is not a singleton.

    Raises:
        NotReadyError: The others are too few for the radius.
    """
    check_lengths(points=points.label, logits=logits)
    reference = points.take(others)
    omega = band_radius(reference, settings.delta).omega
    predicted = points.predicted[judged]
    evidence = logits[judged], predicted, points.match_count[judged], points.distance[judged]
    parts = [ceil(kappa * Fraction(len(others), len(points.label)) / growth) for kappa in kappas]
    lower = np.empty((len(kappas), len(judged)))
    step = block_rows(memory_budget, 8 * class_count * len(others))
    for start in range(0, len(parts), step):
        index = UndividedIndex(
            reference,
            logits[others],
            class_count=class_count,
            settings=replace(settings, kappa=1),
            omega=omega,
            kappas=parts[start : start + step],
            memory_budget=memory_budget,
        )
        sets = index.admit.sets(*evidence, memory_budget=memory_budget)
        smallest = smallest_class_count(sets.band_size)
        for place, part in enumerate(parts[start : start + step], start):
            singleton = sets.singleton & (smallest >= part)
            found = index.categories(singleton, *evidence, kappa=part)
            lower[place] = joined_probabilities(singleton, predicted, found).lower
    return lower


def undivided_folds(
    points: CalibrationPoints,
    logits: FloatArray,
    fold: IntArray,
    settings: CalibratorSettings,
    kappas: Sequence[int],
    *,
    class_count: int,
    growth: Fraction,
    judged: IntArray,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> FloatArray:
    """Return the same for points of all folds, each from the points of the other folds.

    Args:
        fold: (n,) int64, the fold of each point; points of one document share a fold.
        kappas: Numbers of points, each at least 1.
        growth: As in `undivided_lower`.
        judged: (m,) int64, the rows to return.
    """
    lower = np.empty((len(kappas), len(judged)))
    for number in np.unique(fold[judged]).tolist():
        places = np.flatnonzero(fold[judged] == number)
        lower[:, places] = undivided_lower(
            points,
            logits,
            np.flatnonzero(fold != number),
            judged[places],
            settings,
            kappas,
            class_count=class_count,
            growth=growth,
            memory_budget=memory_budget,
        )
    return lower
