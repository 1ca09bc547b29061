"""Venn-ADMIT: probabilities of singletons from the categories of `vp`, and the decisions that follow from them.

Source: docs/PROCEDURE.md, sections 5 and 6. A scored point whose ADMIT set is the singleton {yhat} has the category

    T = { x_j in vp : x_j in B(x_t), yhat_j = yhat_t, set_j = set_t }

Sets hold their prediction, so T is the singletons of the band with the same prediction.
"""

from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from venn_admit.core.calibrators.bands import WindowIndex, bin_of, check_calibration_points
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.calibrators.upweights import upweights
from venn_admit.core.checks import check_lengths
from venn_admit.core.reasons import ADMITTED, Reason
from venn_admit.core.types import (
    AdmitSets,
    BoolArray,
    CalibrationPoints,
    FloatArray,
    IntArray,
    Selection,
    VennProbabilities,
)


@dataclass(frozen=True, slots=True, eq=False)
class Categories:
    """The categories T of m points as windows [low, high) of `VennIndex.order`.

    All four are 0 for a point whose own set is not a singleton.

    Attributes:
        low: (m,) int64.
        high: (m,) int64.
    """

    low: IntArray
    high: IntArray
    size: IntArray
    correct: IntArray


class VennIndex:
    """The points of `vp`, sorted so that every category is one window; immutable.

    Attributes:
        order: (n,) int64, all rows of `vp` in that order. Points that are not singletons come last, so that vectors
            sorted by it serve the localizer for all of `vp` and for any category. Rows that agree in bin of q,
            prediction, d, score and label keep the order in which they are given.
    """

    def __init__(
        self,
        points: CalibrationPoints,
        singleton: BoolArray,
        *,
        class_count: int,
        settings: CalibratorSettings,
        omega: float,
    ) -> None:
        """Build the index.

        Args:
            points: The points of `vp`.
        """
        check_calibration_points(points, class_count)
        check_lengths(points=points.label, singleton=singleton)
        self._class_count = class_count
        self._q_bins = settings.q_bins
        self._omega = omega
        group = self._group(points.predicted, points.match_count)
        apart = len(settings.q_bins) * class_count  # a group that no scored point falls in
        group = np.where(singleton, group, apart)
        self._windows = WindowIndex(group, points.distance, points.score, points.label)
        self.order: IntArray = self._windows.order
        correct = (points.label == points.predicted)[self.order]
        self._correct_before = np.concatenate([[0], np.cumsum(correct, dtype=np.int64)])

    def categories(
        self, singleton: BoolArray, predicted: IntArray, match_count: IntArray, distance: FloatArray
    ) -> Categories:
        """Return the categories of m points."""
        check_lengths(singleton=singleton, predicted=predicted, match_count=match_count, distance=distance)
        low, high = self._windows.windows(self._group(predicted, match_count), distance, self._omega)
        low, high = np.where(singleton, low, 0), np.where(singleton, high, 0)
        return Categories(
            low=low, high=high, size=high - low, correct=self._correct_before[high] - self._correct_before[low]
        )

    def _group(self, predicted: IntArray, match_count: IntArray) -> IntArray:
        return bin_of(match_count, self._q_bins) * self._class_count + predicted


def venn_probabilities(
    singleton: BoolArray, size: IntArray, correct: IntArray, category_weight: FloatArray | None
) -> VennProbabilities:
    """Return the lower and the upper Venn probability of each prediction (section 5).

    With an assumed label c, p_c(yhat) = (correct + [c = yhat] w) / (|T| + w). The label c = yhat gives the greatest
    value. Every other label gives the same least value, and there is at least one other label because C >= 2:

        lower = correct / (|T| + w),  upper = (correct + w) / (|T| + w),  w = 1 plain, 1 / psi' weighted

    If psi' = 0, w is infinite, and the limits are lower 0 and upper 1.

    Args:
        category_weight: (m,) float64, psi' in [0, 1], or None for plain weights. It is ignored, as are the sizes, if
            the set is not a singleton.
    """
    check_lengths(singleton=singleton, size=size, correct=correct)
    upweight = np.ones(len(size))
    if category_weight is not None:
        check_lengths(singleton=singleton, category_weight=category_weight)
        upweight = upweights(np.where(singleton, category_weight, 1.0))
    infinite = np.isinf(upweight)
    finite_upweight = np.where(infinite, 1.0, upweight)
    total = size + finite_upweight
    lower = np.where(infinite, 0.0, correct / total)
    upper = np.where(infinite, 1.0, (correct + finite_upweight) / total)
    return VennProbabilities(
        category_size=np.where(singleton, size, 0),
        upweight=np.where(singleton, upweight, np.nan),
        lower=np.where(singleton, lower, np.nan),
        upper=np.where(singleton, upper, np.nan),
    )


def select(
    sets: AdmitSets,
    probabilities: VennProbabilities,
    predicted: IntArray,
    match_count: IntArray,
    *,
    neighbour_count: int,
    thresholds: tuple[Decimal, ...],
    require_full_match: bool,
) -> Selection:
    """Admit the prediction of a singleton whose lower probability reaches the threshold of its class (section 6)."""
    check_lengths(singleton=sets.singleton, lower=probabilities.lower, predicted=predicted, match_count=match_count)
    threshold = np.array([float(threshold) for threshold in thresholds])
    rejections = {
        Reason.BAND_BELOW_KAPPA: sets.starved,
        Reason.SET_NOT_SINGLETON: ~sets.singleton,
        Reason.PROBABILITY_BELOW_THRESHOLD: ~(probabilities.lower >= threshold[predicted]),
        Reason.MATCH_COUNT_BELOW_K: require_full_match & (match_count < neighbour_count),
    }
    codes = [reason.code for reason in rejections]
    reason = np.select(list(rejections.values()), codes, default=ADMITTED)
    return Selection(decision=np.where(reason == ADMITTED, predicted, -1), reason=reason)
