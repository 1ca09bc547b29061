"""How much the share that Venn-ADMIT admits owes to the division of the labelled points.

The same points, divided otherwise into those that calibrate sets and those that calibrate probabilities, admit another
share: a category whose share right lies near 1 - alpha is admitted as a whole, or not at all. No label of `vp` is read.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from venn_admit.core.approximation.knn import calibration_points
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.calibrators.bands import band_radius
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.calibrators.venn_abers.decide import reaches_threshold
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.calibrators.venn_admit.venn import VennIndex, venn_probabilities
from venn_admit.core.comparison.held_out import HeldOutPoints
from venn_admit.core.splits import hash_keys
from venn_admit.core.types import IntArray
from venn_admit.errors import NotReadyError

DIVISIONS = 10
_PARTS = 5
"""A fifth of the points is decided on by each division; the others are divided into halves."""


def division_shares(
    mc: HeldOutPoints,
    settings: CalibratorSettings,
    *,
    class_count: int,
    seed: int,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> tuple[float, ...]:
    """Return the share of the same fifth of `mc` that each of ten divisions of the others admits.

    Probabilities are plain. One half of the others serves as `mc`, the other as `vp`. kappa counts points out of all of
    `mc`, so that it is less for a half. Documents stay whole, and the order of the points does not matter.

    Args:
        settings: Of Venn-ADMIT.

    Returns:
        Shares in [0, 1]; none if a division has too few points.
    """
    of_document = hash_keys(mc.keys, seed=seed, purpose="division")
    judged = np.flatnonzero(of_document % _PARTS == 0)
    others = np.flatnonzero(of_document % _PARTS != 0)
    keys = [mc.keys[row] for row in others.tolist()]
    shares = []
    for number in range(DIVISIONS):
        is_first = hash_keys(keys, seed=seed, purpose=f"half {number}") % 2 == 0
        if not len(judged) or is_first.all() or not is_first.any():
            return ()
        try:
            halves = others[is_first], others[~is_first]
            shares.append(_admitted(mc, settings, *halves, judged, class_count, memory_budget))
        except NotReadyError:
            return ()
    return tuple(shares)


def _admitted(
    points: HeldOutPoints,
    settings: CalibratorSettings,
    first: IntArray,
    second: IntArray,
    judged: IntArray,
    class_count: int,
    memory_budget: int,
) -> float:
    """The share of the judged points that is admitted, with one part as `mc` and the other as `vp`."""
    used = replace(settings, kappa=ceil(settings.kappa * len(first) / len(points.keys)))
    view = points.seen.knn
    of_mc, of_vp = (calibration_points(view.take(rows), points.label[rows]) for rows in (first, second))
    omega = band_radius(of_mc, used.delta).omega
    admit = AdmitIndex(of_mc, class_count=class_count, settings=used, omega=omega)
    sets_vp, sets = (
        admit.sets(part.logits, part.predicted, part.match_count, part.distance, memory_budget=memory_budget)
        for part in (view.take(second), view.take(judged))
    )
    venn = VennIndex(of_vp, sets_vp.singleton, class_count=class_count, settings=used, omega=omega)
    part = view.take(judged)
    categories = venn.categories(sets.singleton, part.predicted, part.match_count, part.distance)
    found = venn_probabilities(sets.singleton, categories.size, categories.correct, None)
    # No comparison with NaN, the lower probability without a singleton, holds.
    return float(reaches_threshold(found.lower, part.predicted, used.thresholds).mean())


def mean_and_range(shares: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean, the least and the most of shares; NaN if there are none.

    Args:
        shares: Those of `division_shares`.

    Examples:
        >>> mean_and_range([0.25, 0.5])
        (0.375, 0.25, 0.5)
    """
    if not shares:
        return (float("nan"),) * 3
    return sum(shares) / len(shares), min(shares), max(shares)
