"""Bands: the calibration points that resemble a point in q and d (docs/PROCEDURE.md, section 3; eq. 5).

    B(x_t) = { x_j : q_j and q_t in one bin, d_j in [d_t - omega, d_t + omega] }

The interval is closed and taken in float64, by the very expression that SQL uses:
`d_j >= d_t - omega and d_j <= d_t + omega`.
"""

import math
import statistics
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from service.core.checks import check_lengths
from service.core.types import CalibrationPoints, FloatArray, IntArray
from service.errors import InvalidInputError, NotReadyError


@dataclass(frozen=True, slots=True)
class BandRadius:
    """How far a band reaches to either side, in the units of d.

    s_hat: >= 0, sample standard deviation of d over right predictions with q > 0. omega: delta * s_hat,
    may be inf.
    """

    s_hat: float
    omega: float


def bin_of(match_count: IntArray, bin_edges: tuple[int, ...]) -> IntArray:
    """Which bin each q falls in: (n,) int64 in [0, len(bin_edges)).

    match_count: (n,) int64, q >= 0. bin_edges: ascending lower edges, the first 0; the last bin is open
    above. InvalidInputError for a q below the first edge.

    >>> bin_of(np.array([0, 1, 5, 6, 25]), (0, 1, 6))
    array([0, 1, 1, 2, 2])
    """
    if len(match_count) and match_count.min() < bin_edges[0]:
        raise InvalidInputError(f"q must be at least {bin_edges[0]}, the first bin's edge; got {match_count.min()}")
    return np.searchsorted(np.asarray(bin_edges), match_count, side="right").astype(np.int64) - 1


def band_radius(points: CalibrationPoints, delta: float) -> BandRadius:
    """s_hat and omega from the points of `mc` (section 3), the same whatever the order of the rows.

    delta: > 0, may be inf. Fewer than two points with q > 0 and yhat = y: NotReadyError. All of them at one
    distance: omega is 0, a band then holds exactly equal d; or inf where delta is.
    """
    usable = (points.match_count > 0) & (points.predicted == points.label)
    if usable.sum() < 2:
        raise NotReadyError(
            f"the band radius needs at least 2 calibration points in mc with q > 0 and a right prediction; "
            f"there are {usable.sum()} of {len(usable)}: ingest and label more held-out data"
        )
    # Computed in exact rational arithmetic and rounded once: no order of rows can show in the last bit.
    s_hat = statistics.stdev(points.distance[usable].tolist())
    return BandRadius(s_hat=s_hat, omega=math.inf if math.isinf(delta) else delta * s_hat)


@dataclass(frozen=True, slots=True, eq=False)
class WindowRuns:
    """Windows [low, high) of m points in each of G groups, group by group, runs of equal ones told once.

    low, high: (r,) int64, of each run. length: (r,) int64, >= 1, how many points in a row have that window. A group's
    lengths add up to m + 1: one place follows its last point, so that no run is empty. point_count: m.
    """

    low: IntArray
    high: IntArray
    length: IntArray
    point_count: int

    def spread(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """(m, G): a value of each run, (r,), at every point of the run."""
        return np.repeat(values, self.length).reshape(-1, self.point_count + 1)[:, :-1].T


class WindowIndex:
    """Points sorted by (group, d), so that a group's points of a band are a window [low, high) of that order.

    order: (n,) int64, the rows in sorted order; ties in (group, d) by `tie_breaks`, then by row.

    Distances are replaced by integer ranks, which lets one binary search over group * (n + 1) + rank answer
    for group and distance together.
    """

    def __init__(self, group: IntArray, distance: FloatArray, *tie_breaks: npt.NDArray[Any]) -> None:
        """group: (n,) int64, >= 0. distance: (n,) float64, finite. tie_breaks: (n,), first counts most."""
        check_lengths(group=group, distance=distance)
        # lexsort takes the last key as the primary one.
        self.order: IntArray = np.lexsort((*reversed(tie_breaks), distance, group)).astype(np.int64)
        self._sorted_distance = np.sort(distance)
        self._stride = len(distance) + 1
        rank = np.searchsorted(self._sorted_distance, distance[self.order], side="left")
        self._keys = group[self.order] * self._stride + rank

    def windows(self, group: IntArray, distance: FloatArray, omega: float) -> tuple[IntArray, IntArray]:
        """Windows [low, high) of the points of `group` with d in [distance - omega, distance + omega].

        group: (m,) or (m, G) int64, >= 0. distance: (m,) float64, finite. omega: >= 0, may be inf. Returns
        two int64 arrays of group's shape. InvalidInputError for another omega.
        """
        first, after = self._rank_bounds(distance, omega)
        if group.ndim == 2:
            first, after = first[:, None], after[:, None]  # (m, 1)
        start = group * self._stride
        low = np.searchsorted(self._keys, start + first, side="left").astype(np.int64, copy=False)
        high = np.searchsorted(self._keys, start + after, side="left").astype(np.int64, copy=False)
        return low, high

    def window_runs(self, groups: range, distance: FloatArray, omega: float) -> WindowRuns:
        """The windows that `windows` gives for ascending distances in each of some consecutive groups.

        groups: of step 1, not empty. distance: (m,) float64, ascending. omega: >= 0, may be inf.

        As d rises, a group's window changes only where one of its points leaves or enters: so there are at most
        2 n + G runs for n points in the groups, found in O((n + m) log n) however many windows there are.
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
            raise InvalidInputError(f"a band's radius omega must be at least 0; got {omega}")
        first = np.searchsorted(self._sorted_distance, distance - omega, side="left")
        after = np.searchsorted(self._sorted_distance, distance + omega, side="right")
        return first.astype(np.int64, copy=False), after.astype(np.int64, copy=False)


def check_calibration_points(points: CalibrationPoints, class_count: int) -> None:
    """InvalidInputError unless labels and predictions are in [0, C), q >= 0, d >= 0 and scores finite."""
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
