"""Bands: the calibration points that resemble a point in q and d (docs/PROCEDURE.md, section 3; eq. 5).

    B(x_t) = { x_j : q_j and q_t in one bin, d_j in [d_t - omega, d_t + omega] }

The interval is closed and evaluated in float64, by the very expression that SQL uses: `d_j >= d_t - omega and d_j <=
d_t + omega`.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from venn_admit.core.checks import check_lengths
from venn_admit.core.split_names import Split
from venn_admit.core.types import CalibrationPoints, FloatArray, IntArray, narrowed
from venn_admit.errors import InvalidInputError, NotReadyError


@dataclass(frozen=True, slots=True)
class BandRadius:
    """How far a band reaches to either side, in the units of d.

    Attributes:
        s_hat: Sample standard deviation of d over correct predictions with q > 0; >= 0.
        omega: The radius, delta * s_hat; may be inf.
    """

    s_hat: float
    omega: float


def bin_of(match_count: IntArray, q_bins: tuple[int, ...]) -> IntArray:
    """Return the bin that each q falls in, (n,) int64 in [0, len(q_bins)).

    Examples:
        >>> bin_of(np.array([0, 1, 5, 6, 25]), (0, 1, 6))
        array([0, 1, 1, 2, 2])
    """
    if len(match_count) and match_count.min() < q_bins[0]:
        raise InvalidInputError(
            f"q must be at least {q_bins[0]}, the lower edge of the first bin; got {match_count.min()}"
        )
    return np.searchsorted(np.asarray(q_bins), match_count, side="right").astype(np.int64) - 1


def band_radius(points: CalibrationPoints, delta: float, split: Split = Split.MC) -> BandRadius:
    """Return s_hat and omega from the points of a split (section 3), the same whatever the order of the rows.

    If all correct points with q > 0 have the same distance, omega is 0, so that a band holds exactly equal d; or inf,
    if delta is.

    Args:
        points: The points of `mc`; of `knn`, if `mc` is not divided from `vp`.
        delta: > 0; may be inf.
        split: What a message calls them.

    Raises:
        NotReadyError: Fewer than two points have q > 0 and yhat = y.
    """
    usable = (points.match_count > 0) & (points.predicted == points.label)
    if usable.sum() < 2:
        raise NotReadyError(
            f"the band radius needs at least 2 calibration points in {split} with q > 0 and a correct prediction, "
            f"got {usable.sum()} of {len(usable)}; ingest and label more held-out data"
        )
    s_hat = standard_deviation(points.distance[usable])
    return BandRadius(s_hat=s_hat, omega=math.inf if math.isinf(delta) else delta * s_hat)


def standard_deviation(values: FloatArray) -> float:
    """Return the sample standard deviation, computed exactly and rounded once, so that the order of rows does not show.

    It is that of `statistics.stdev`, in a tenth of the time: mantissas are whole numbers of 53 bits, and sums of 256
    squares of their halves fit in 64.

    Args:
        values: (n,) float64, finite, n >= 2.

    Examples:
        >>> standard_deviation(np.array([0.1, 0.2, 0.4]))
        0.15275252316519466
    """
    mantissa, exponent = np.frexp(values)
    whole, lowest = np.ldexp(mantissa, 53).astype(np.int64), int(exponent.min())
    total = squares = 0
    for power in np.unique(exponent).tolist():
        part = whole[exponent == power]
        high, low = part >> 27, part & (2**27 - 1)
        sums = (_sum(high * high) << 54) + (_sum(high * low) << 28) + _sum(low * low)
        total += _sum(part) << (power - lowest)
        squares += sums << (2 * (power - lowest))
    n = len(values)
    over, under = n * squares - total * total, n * (n - 1)
    # A whole number of 56 bits, odd unless it is exact, so that it is rounded as the root that it stands for.
    places = (112 - over.bit_length() + under.bit_length()) // 2
    over, under = over << max(0, 2 * places), under << max(0, -2 * places)
    root = math.isqrt(over // under)
    root |= root * root * under != over
    return math.ldexp(root, lowest - 53 - places)


def _sum(values: IntArray) -> int:
    return sum(np.add.reduceat(values, np.arange(0, len(values), 256)).tolist())


def distance_quartiles(distance: FloatArray) -> list[float] | None:
    """Return the quartiles of d as SQL's `percentile_cont` interpolates them; None without vectors.

    Args:
        distance: (n,) float64, NaN without vectors.

    Examples:
        >>> distance_quartiles(np.array([4.0, 1.0, 2.0]))
        [1.5, 2.0, 3.0]
    """
    if not len(distance) or np.isnan(distance[0]):
        return None
    places = [quarter * (len(distance) - 1) for quarter in (0.25, 0.5, 0.75)]
    ends = [end for place in places for end in (int(place), math.ceil(place))]
    found = np.partition(distance, ends)[ends].tolist()
    return [
        below + (place - int(place)) * (above - below)
        for place, below, above in zip(places, found[::2], found[1::2], strict=True)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class WindowRuns:
    """Windows [low, high) of m points in each of G groups, group by group, with runs of equal windows stored once.

    Attributes:
        low: (r,) int64, of each run.
        high: (r,) int64, of each run.
        length: (r,) int64, >= 1, the number of consecutive points that share the window. The lengths of a group add up
            to m + 1: one place follows its last point, so that no run is empty.
        point_count: m.
    """

    low: IntArray
    high: IntArray
    length: IntArray
    point_count: int

    def spread(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Repeat a value of each run at every point of the run, (m, G).

        Args:
            values: (r,).
        """
        return np.repeat(values, self.length).reshape(-1, self.point_count + 1)[:, :-1].T


class WindowIndex:
    """Points sorted by (group, d), so that the points of a group in a band are a window [low, high) of that order.

    Distances are replaced by integer ranks, so that one binary search over group * (n + 1) + rank covers group and
    distance together.

    Attributes:
        order: (n,) int64, the rows in sorted order; ties in (group, d) go by `tie_breaks`, then by row.
    """

    def __init__(self, group: IntArray, distance: FloatArray, *tie_breaks: npt.NDArray[Any]) -> None:
        """Sort the points.

        Args:
            *tie_breaks: (n,) each; the first counts most.
        """
        check_lengths(group=group, distance=distance)
        # lexsort takes the last key as the primary one.
        self.order: IntArray = np.lexsort((*reversed(tie_breaks), distance, narrowed(group))).astype(np.int64)
        self._sorted_distance = np.sort(distance)
        self._stride = len(distance) + 1
        rank = np.searchsorted(self._sorted_distance, distance[self.order], side="left")
        self._keys = group[self.order] * self._stride + rank

    def windows(self, group: IntArray, distance: FloatArray, omega: float) -> tuple[IntArray, IntArray]:
        """Return the windows [low, high) of the points of `group` with d in [distance - omega, distance + omega].

        Args:
            group: (m,) or (m, G) int64, >= 0.

        Returns:
            Two int64 arrays of the shape of `group`.
        """
        first, after = self._rank_bounds(distance, omega)
        if group.ndim == 2:
            first, after = first[:, None], after[:, None]  # (m, 1)
        start = group * self._stride
        low = np.searchsorted(self._keys, start + first, side="left").astype(np.int64, copy=False)
        high = np.searchsorted(self._keys, start + after, side="left").astype(np.int64, copy=False)
        return low, high

    def window_runs(self, groups: range, distance: FloatArray, omega: float) -> WindowRuns:
        """Return the windows that `windows` gives for ascending distances in each of some consecutive groups.

        As d rises, the window of a group changes only at a point that leaves or enters. There are therefore at
        most 2 n + G runs for n points in the groups, found in O((n + m) log n) however many windows there are.

        Args:
            groups: The groups of step 1, not empty.
            distance: (m,) float64, ascending.
        """
        first, after = self._rank_bounds(distance, omega)
        places = len(distance) + 1
        start, stop = np.searchsorted(self._keys, [groups.start * self._stride, groups.stop * self._stride])
        group, rank = np.divmod(self._keys[start:stop], self._stride)
        group_place = (group - groups.start) * places
        left = group_place + np.searchsorted(first, rank, side="right")  # ascending, as the keys are
        entered = group_place + np.searchsorted(after, rank, side="right")
        changes = np.unique(np.concatenate([np.arange(len(groups)) * places, left, entered]))
        return WindowRuns(
            low=start + np.searchsorted(left, changes, side="right"),
            high=start + np.searchsorted(entered, changes, side="right"),
            length=np.diff(changes, append=len(groups) * places),
            point_count=len(distance),
        )

    def _rank_bounds(self, distance: FloatArray, omega: float) -> tuple[IntArray, IntArray]:
        """Ranks [first, after) of the distances within omega of each of `distance`; (m,) int64 each."""
        if not omega >= 0:
            raise InvalidInputError(f"the band radius omega must be at least 0; got {omega}")
        first = np.searchsorted(self._sorted_distance, distance - omega, side="left")
        after = np.searchsorted(self._sorted_distance, distance + omega, side="right")
        return first.astype(np.int64, copy=False), after.astype(np.int64, copy=False)


def check_calibration_points(points: CalibrationPoints, class_count: int) -> None:
    """Check that labels and predictions are in [0, C), q >= 0, d >= 0, and d and scores are finite.

    Raises:
        InvalidInputError: They are not, or the columns differ in length.
    """
    check_lengths(
        label=points.label,
        predicted=points.predicted,
        match_count=points.match_count,
        distance=points.distance,
        score=points.score,
    )
    for name, values in (("label", points.label), ("predicted", points.predicted)):
        wrong = np.flatnonzero((values < 0) | (values >= class_count))
        if wrong.size:
            raise InvalidInputError(
                f"calibration point {wrong[0]}: {name} must be in [0, {class_count}); got {values[wrong[0]]}"
            )
    if not (np.all(points.match_count >= 0) and np.all(points.distance >= 0)):
        raise InvalidInputError("calibration points must have q >= 0 and d >= 0")
    if not (np.isfinite(points.distance).all() and np.isfinite(points.score).all()):
        raise InvalidInputError("calibration points must have finite d and scores")
