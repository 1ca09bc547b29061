"""What plain Venn-ADMIT admits under other divisions of the calibration data into `mc` and `vp`.

Venn-ADMIT admits a category as a whole, so a category whose share right lies near 1 - alpha is admitted under one
division and rejected under the next (docs/PROCEDURE.md, section 5).
"""

from collections.abc import Sequence

import numpy as np

from venn_admit.core.approximation.knn import calibration_points
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.calibrators.venn_abers.decide import reaches_threshold
from venn_admit.core.calibrators.venn_admit.crossfit import AdmitParts
from venn_admit.core.calibrators.venn_admit.venn import VennIndex
from venn_admit.core.checks import check_lengths
from venn_admit.core.comparison.divisions import DIVISIONS
from venn_admit.core.monitoring.bands import lower_of_vp
from venn_admit.core.splits import hash_keys
from venn_admit.core.types import Approximation, IntArray
from venn_admit.errors import NotReadyError


def redivided_shares(
    view: Approximation,
    label: IntArray,
    keys: Sequence[str],
    settings: CalibratorSettings,
    *,
    mc_share: float,
    class_count: int,
    seed: int,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> tuple[float, ...]:
    """Return the share of `vp` that each of ten other divisions admits, each point decided on without itself.

    Probabilities are plain. Documents stay whole, and the order of the points does not matter. kappa is as it is, since
    each `mc` is about as large as that of the calibration.

    Args:
        view: n points of `mc` and `vp`.
        keys: n, of documents.
        mc_share: The expected share of `mc`, in (0, 1).

    Returns:
        Shares in [0, 1]; none if a division leaves too few points in `mc` or `vp`.
    """
    check_lengths(view=view.predicted, label=label)
    parts = AdmitParts(calibration_points(view, label), view.logits, settings, class_count, None, memory_budget)
    hashes, document = np.unique(hash_keys(keys, seed=seed, purpose="divisions"), return_inverse=True)
    shares = []
    for number in range(DIVISIONS):
        # Documents are drawn in the order of their hashes.
        is_mc = (np.random.default_rng([seed % 2**64, number]).random(len(hashes)) < mc_share)[document]
        mc, vp = np.flatnonzero(is_mc), np.flatnonzero(~is_mc)
        if not len(mc) or not len(vp):
            return ()
        try:
            index, omega = parts.index(mc)
        except NotReadyError:
            return ()
        sets = parts.sets(index, vp)
        singleton = sets.singleton & (sets.smallest >= settings.kappa)
        points = calibration_points(view.take(vp), label[vp])
        venn = VennIndex(points, singleton, class_count=class_count, settings=settings, omega=omega)
        lower, _ = lower_of_vp(venn, points, singleton)
        shares.append(float(reaches_threshold(lower, points.predicted, settings.thresholds).mean()))
    return tuple(shares)
