"""How much the share that Venn-ADMIT admits owes to the division of the labelled points.

The same points, divided otherwise into those that calibrate sets and those that calibrate probabilities, admit another
share: a category whose share right lies near 1 - alpha is admitted as a whole, or not at all. No label of `vp` is read.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from venn_admit.core.approximation.knn import calibration_points
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.calibrators.venn_abers.decide import reaches_threshold
from venn_admit.core.calibrators.venn_admit.crossfit import AdmitParts, alike
from venn_admit.core.calibrators.venn_admit.undivided_crossfit import USUAL_GROWTH, undivided_lower
from venn_admit.core.comparison.held_out import HeldOutPoints
from venn_admit.core.splits import hash_keys
from venn_admit.core.types import IntArray
from venn_admit.errors import NotReadyError

DIVISIONS = 10
_PARTS = 5
"""A fifth of the points is decided on by each division; the others are divided into halves."""


def division_shares(
    mc: HeldOutPoints,
    settings: Sequence[CalibratorSettings],
    *,
    class_count: int,
    seed: int,
    growth: Fraction = USUAL_GROWTH,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> list[tuple[float, ...]]:
    """Return, for each of some settings, the share of the same fifth of `mc` that each of ten divisions admits.

    If a setting is undivided, all other points calibrate, and the share is the same in each.

    Probabilities are plain. One half of the other points serves as `mc`, the other as `vp`. kappa counts points out of
    all of `mc`, so that it is less for a half. Documents stay whole, and the order of the points does not matter.
    Settings that differ in kappa and thresholds alone share the sets of a division.

    Args:
        settings: Of Venn-ADMIT.
        growth: As in `undivided_lower`.

    Returns:
        Shares in [0, 1]; none if a division has too few points.
    """
    if not settings:
        return []
    shares: list[tuple[float, ...]] = [()] * len(settings)
    of_document = hash_keys(mc.keys, seed=seed, purpose="division")
    judged = np.flatnonzero(of_document % _PARTS == 0)
    others = np.flatnonzero(of_document % _PARTS != 0)
    keys = [mc.keys[row] for row in others.tolist()]
    first_of = [hash_keys(keys, seed=seed, purpose=f"half {number}") % 2 == 0 for number in range(DIVISIONS)]
    if not len(judged) or any(is_first.all() or not is_first.any() for is_first in first_of):
        return shares
    points = calibration_points(mc.seen.knn, mc.label)
    for numbers in alike(settings):
        of_group = [settings[number] for number in numbers]
        if of_group[0].undivided:
            try:
                once = _admitted_undivided(mc, of_group, others, judged, class_count, growth, memory_budget)
            except NotReadyError:
                continue
            for number, share in zip(numbers, once, strict=True):
                shares[number] = (share,) * DIVISIONS
            continue
        parts = AdmitParts(points, mc.seen.knn.logits, of_group[0], class_count, None, memory_budget)
        try:
            by_division = [
                _admitted(parts, of_group, others[is_first], others[~is_first], judged) for is_first in first_of
            ]
        except NotReadyError:
            continue
        for number, of_setting in zip(numbers, zip(*by_division, strict=True), strict=True):
            shares[number] = of_setting
    return shares


def _admitted(
    parts: AdmitParts, settings: Sequence[CalibratorSettings], first: IntArray, second: IntArray, judged: IntArray
) -> list[float]:
    """The share of the judged points that each of the settings admits, with one part as `mc` and the other as `vp`."""
    index, omega = parts.index(first)
    of_vp, of_judged = (parts.sets(index, rows) for rows in (second, judged))
    kappas = [one.kappa for one in settings]
    single_vp, single = (parts.singletons(sets, kappas, len(first)) for sets in (of_vp, of_judged))
    lower, predicted = parts.lower(judged, single, second, single_vp, omega), parts.points.predicted[judged]
    # No comparison with NaN, the lower probability without a singleton, holds.
    return [
        float(reaches_threshold(of_kappa, predicted, one.thresholds).mean())
        for one, of_kappa in zip(settings, lower, strict=True)
    ]


def _admitted_undivided(
    mc: HeldOutPoints,
    settings: Sequence[CalibratorSettings],
    others: IntArray,
    judged: IntArray,
    class_count: int,
    growth: Fraction,
    memory_budget: int,
) -> list[float]:
    """The same if all of the others calibrate."""
    lower = undivided_lower(
        calibration_points(mc.seen.knn, mc.label),
        mc.seen.knn.logits,
        others,
        judged,
        settings[0],
        [one.kappa for one in settings],
        class_count=class_count,
        growth=growth,
        memory_budget=memory_budget,
    )
    predicted = mc.seen.knn.predicted[judged]
    return [
        float(reaches_threshold(of_kappa, predicted, one.thresholds).mean())
        for of_kappa, one in zip(lower, settings, strict=True)
    ]


def mean_and_range(shares: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean, the least and the most of shares; NaN if there are none.

    Args:
        shares: Those of a setting by `division_shares`.

    Examples:
        >>> mean_and_range([0.25, 0.5])
        (0.375, 0.25, 0.5)
    """
    if not shares:
        return (float("nan"),) * 3
    return sum(shares) / len(shares), min(shares), max(shares)
