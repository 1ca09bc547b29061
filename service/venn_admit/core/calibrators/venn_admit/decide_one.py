"""The decision on one point from the evidence of its band, which SQL counts: sections 4 to 6 of docs/PROCEDURE.md."""

import numpy as np

from venn_admit.core.calibrators.venn_admit.decide import Decisions
from venn_admit.core.calibrators.venn_admit.sets import admit_sets
from venn_admit.core.calibrators.venn_admit.venn import select, venn_probabilities
from venn_admit.core.types import Approximation, CalibratorSettings, FloatArray, IntArray


def decide_one(
    approximation: Approximation,
    settings: CalibratorSettings,
    *,
    band_size: IntArray,
    threshold_score: FloatArray,
    category_count: IntArray,
    neighbour_count: int,
    require_full_match: bool,
) -> Decisions:
    """Return what `venn_admit.decide.decide` gives for the one point of `approximation` without weights, bit for bit.

    Args:
        approximation: The approximation of one point.
        settings: The settings of the snapshot.
        band_size: (C,) int64, n_c.
        threshold_score: (C,) float64, the rank-th smallest score; inf if the rank exceeds n_c.
        category_count: (C,) int64, points of each label in the category that the prediction has as a singleton.
        neighbour_count: K.
        require_full_match: Whether a point with q < K is rejected.
    """
    predicted = approximation.predicted
    sets = admit_sets(
        approximation.logits,
        predicted,
        band_size[np.newaxis],  # (1, C)
        threshold_score[np.newaxis],  # (1, C)
        kappa=settings.kappa,
    )
    size, correct = category_count.sum(keepdims=True), category_count[predicted]
    probabilities = venn_probabilities(sets.singleton, size, correct, None)
    selection = select(
        sets,
        probabilities,
        predicted,
        approximation.match_count,
        neighbour_count=neighbour_count,
        thresholds=settings.thresholds,
        require_full_match=require_full_match,
    )
    return Decisions(sets, probabilities, selection)
