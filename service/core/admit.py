"""ADMIT prediction sets: label-conditional conformal prediction within a band (docs/PROCEDURE.md, section 4).

For each class c, over the n_c points of the band in `mc` with true label c:

    score_j = 1 - pi_j^{y_j};  rank = ceil((n_c + 1)(1 - alpha));  tau_c = 1 - (rank-th smallest score)
    set = {yhat} + { c : 1 - pi^c <= rank-th smallest score };  any n_c < kappa: set = all classes
"""

from decimal import Decimal
from fractions import Fraction

import numpy as np

from service.core.approximation import softmax
from service.core.bands import WindowIndex, bin_of, check_calibration_points, check_lengths
from service.core.order_statistics import OrderStatistics
from service.core.types import AdmitSets, CalibrationPoints, CalibratorSettings, FloatArray, IntArray
from service.errors import InvalidInputError

BLOCK_BYTES = 64 * 2**20
TEMPORARY_BYTES_PER_CLASS = 20 * 8


def conformal_rank(counts: IntArray, alpha: Decimal) -> IntArray:
    """ceil((n + 1)(1 - alpha)) in exact arithmetic, of counts' shape, int64; exceeds n where n is too few.

    counts: int64, n >= 0. alpha: exact decimal in (0, 1).

    >>> conformal_rank(np.array([8, 9, 10, 19]), Decimal("0.1"))
    array([ 9,  9, 10, 18])
    """
    confidence = 1 - Fraction(alpha)
    largest = int(counts.max(initial=0)) + 1
    if largest * confidence.numerator > np.iinfo(np.int64).max:
        counts = counts.astype(object)  # Python integers, for an alpha of so many digits that int64 overflows
    return (-(-(counts + 1) * confidence.numerator // confidence.denominator)).astype(np.int64)


class AdmitIndex:
    """The points of `mc`, ready to give the ADMIT set of any point; immutable.

    Built in O(n log n); `sets` takes O((n + m C) log n) for m points, and gives the same bits however the
    points are split into calls.
    """

    def __init__(
        self, points: CalibrationPoints, *, class_count: int, settings: CalibratorSettings, omega: float
    ) -> None:
        """points: of `mc`. class_count: C >= 2. omega: band radius, >= 0, may be inf."""
        check_calibration_points(points, class_count)
        self._class_count = class_count
        self._settings = settings
        self._omega = omega
        group = bin_of(points.match_count, settings.bin_edges) * class_count + points.label
        self._windows = WindowIndex(group, points.distance, points.score)
        self._scores = OrderStatistics(points.score[self._windows.order])

    def sets(self, logits: FloatArray, predicted: IntArray, match_count: IntArray, distance: FloatArray) -> AdmitSets:
        """ADMIT sets of m points, with the band sizes and thresholds they rest on.

        logits: (m, C) float64, finite, KNN(x). predicted: (m,) int64 in [0, C), yhat. match_count: (m,)
        int64, q. distance: (m,) float64, d. InvalidInputError for other shapes or values. Works in blocks of
        points, within 64 MiB beside its result.
        """
        self._check_scored(logits, predicted, match_count, distance)
        shape = (len(predicted), self._class_count)
        included = np.empty(shape, dtype=np.bool_)
        band_size = np.empty(shape, dtype=np.int64)
        quantile = np.empty(shape, dtype=np.float64)
        rows_per_block = max(1, BLOCK_BYTES // (TEMPORARY_BYTES_PER_CLASS * self._class_count))
        for start in range(0, len(predicted), rows_per_block):
            rows = slice(start, start + rows_per_block)
            band_size[rows], quantile[rows] = self._quantiles(match_count[rows], distance[rows])
            included[rows] = 1.0 - softmax(np.ascontiguousarray(logits[rows])) <= quantile[rows]
        included[np.arange(len(predicted)), predicted] = True
        starved = smallest_class_count(band_size) < self._settings.kappa
        included[starved] = True
        return AdmitSets(
            included=included,
            band_size=band_size,
            threshold=np.subtract(1.0, quantile, out=quantile),
            singleton=included.sum(axis=1) == 1,
            starved=starved,
        )

    def _quantiles(self, match_count: IntArray, distance: FloatArray) -> tuple[IntArray, FloatArray]:
        """n_c and the rank-th smallest score, both (m, C), in each point's band; inf where rank > n_c."""
        bins = bin_of(match_count, self._settings.bin_edges)
        group = bins[:, None] * self._class_count + np.arange(self._class_count)  # (m, C)
        low, high = self._windows.windows(group, distance, self._omega)
        band_size = high - low
        rank = conformal_rank(band_size, self._settings.alpha)
        enough = rank <= band_size
        quantile = np.full(band_size.shape, np.inf)
        quantile[enough] = self._scores.rank_smallest(low[enough], high[enough], rank[enough])
        return band_size, quantile

    def _check_scored(
        self, logits: FloatArray, predicted: IntArray, match_count: IntArray, distance: FloatArray
    ) -> None:
        check_lengths(logits=logits, predicted=predicted, match_count=match_count, distance=distance)
        if logits.ndim != 2 or logits.shape[1] != self._class_count:
            raise InvalidInputError(f"logits of shape (m, {self._class_count}) were expected; got {logits.shape}")
        if not (np.isfinite(logits).all() and np.isfinite(distance).all()):
            raise InvalidInputError("logits and distances must be finite")
        if np.any((predicted < 0) | (predicted >= self._class_count)):
            raise InvalidInputError(f"predictions must be in [0, {self._class_count})")


def smallest_class_count(band_size: IntArray) -> IntArray:
    """(m,) int64: the fewest points any class has in each point's band, min_c n_c.

    A kappa above this number turns the point's set into all classes; its maximum over points is thus the
    largest kappa that leaves any band in use. band_size: (m, C) int64.
    """
    fewest: IntArray = band_size.min(axis=1)
    return fewest
