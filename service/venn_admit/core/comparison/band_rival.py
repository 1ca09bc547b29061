"""Venn-ADMIT by its usual settings, beside a calibration by another method (docs/PROCEDURE.md, sections 3 to 6)."""

from collections.abc import Callable

import numpy as np

from venn_admit.core.approximation.knn import calibration_points
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.calibrators.bands import band_radius
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.calibrators.venn_admit.decide import Localizer, decide
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.calibrators.venn_admit.venn import VennIndex
from venn_admit.core.comparison.held_out import HeldOut
from venn_admit.core.types import AdmitOutcome, Approximation, Float32Array, IntArray
from venn_admit.errors import NotReadyError


def admit_rival(
    held_out: HeldOut,
    vp_vectors: Callable[[IntArray], Float32Array],
    points: Approximation,
    vectors: Float32Array,
    settings: CalibratorSettings,
    *,
    neighbour_count: int,
    eta_loc: float,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> tuple[AdmitOutcome | None, str]:
    """Return what Venn-ADMIT makes of n points, and in words how it was calibrated or why it is left out.

    It is left out if `mc` or `vp` hold too little for bands, or if no point has a band with kappa points of each class.

    Args:
        vp_vectors: Returns the vectors of all rows of `vp`, (n_vp, D) float32, in the order in which they are given,
            (n_vp,) int64; may be a memory map.
    """
    mc, vp = (calibration_points(part.seen.knn, part.label) for part in (held_out.mc, held_out.vp))
    try:
        omega = band_radius(mc, settings.delta).omega
    except NotReadyError as error:
        return None, f"left out: {error}"
    if omega == 0 or not len(vp.label):
        lacking = "all distances of mc are equal" if omega == 0 else "vp holds no labelled points"
        return None, f"left out: {lacking}"
    class_count = len(settings.thresholds)
    admit = AdmitIndex(mc, class_count=class_count, settings=settings, omega=omega)
    view = held_out.vp.seen.knn
    sets = admit.sets(view.logits, view.predicted, view.match_count, view.distance, memory_budget=memory_budget)
    venn = VennIndex(vp, sets.singleton, class_count=class_count, settings=settings, omega=omega)
    localizer = Localizer.over(vp_vectors(venn.order), eta_loc, vectors, memory_budget=memory_budget)
    plain, weighted = (
        decide(
            admit,
            venn,
            points,
            settings,
            neighbour_count=neighbour_count,
            require_full_match=False,
            localizer=used,
            memory_budget=memory_budget,
        )
        for used in (None, localizer)
    )
    if plain.sets.starved.all():
        fewest = int(plain.sets.band_size.min(axis=1).max())
        return None, (
            f"left out: no band holds kappa = {settings.kappa:,} points of each class in mc, the fullest {fewest:,}"
        )
    usable = 1 - float(np.mean(plain.sets.starved))
    words = f"kappa {settings.kappa:,}, delta {settings.delta:g}, {usable:.1%} of the points in usable bands"
    return AdmitOutcome(
        included=plain.sets.included,
        lower_plain=plain.probabilities.lower,
        upper_plain=plain.probabilities.upper,
        lower_weighted=weighted.probabilities.lower,
        upper_weighted=weighted.probabilities.upper,
        admitted_plain=plain.selection.decision >= 0,
        admitted_weighted=weighted.selection.decision >= 0,
    ), words
