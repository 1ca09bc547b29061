"""A calibration's points and recent traffic by partition of (q, d): what is admitted in each, and why not.

Source: docs/PROCEDURE.md, sections 2 to 4.
"""

from dataclasses import dataclass

import numpy as np

from venn_admit.core.calibrators.bands import bin_of, check_calibration_points
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.calibrators.usable_bands import smallest_in_band
from venn_admit.core.checks import check_lengths
from venn_admit.core.evaluation.curves import default_match_bins
from venn_admit.core.types import BoolArray, CalibrationPoints, FloatArray, IntArray

DISTANCE_GROUPS = 4
"""The number of groups of d, which is cut at its quartiles."""
MOST_ROWS = 8
"""A map has at most this many groups of q."""


@dataclass(frozen=True, slots=True, eq=False)
class CalibrationPartitions:
    """Points in each of B bins of q and G = 4 groups of d; sums over an axis give the margins.

    Attributes:
        distance_edges: (G - 1,) float64, the quartiles of d over mc and vp together; a d on an edge is above it.
        mc_count: (B, G, C) int64, points of mc by label.
        vp_count: (B, G, C) int64, points of vp by label.
        usable: (B, G) int64, points of vp whose band holds at least kappa points of each class in mc.
        singleton: (B, G) int64, points of vp whose ADMIT set is a singleton.
        right: (B, G) int64, those of them whose label is in it.
    """

    distance_edges: FloatArray
    mc_count: IntArray
    vp_count: IntArray
    usable: IntArray
    singleton: IntArray
    right: IntArray


def calibration_partitions(
    mc: CalibrationPoints,
    vp: CalibrationPoints,
    vp_singleton: BoolArray,
    *,
    class_count: int,
    settings: CalibratorSettings,
    omega: float,
) -> CalibrationPartitions:
    """Count the points of a snapshot by partition.

    If they are undivided, all are in vp, and each of them counts as usable by the others.
    """
    check_calibration_points(mc, class_count)
    check_calibration_points(vp, class_count)
    check_lengths(vp=vp.label, vp_singleton=vp_singleton)

    quartiles = np.linspace(0, 1, DISTANCE_GROUPS + 1)[1:-1]
    edges = np.quantile(np.concatenate([mc.distance, vp.distance]), quartiles)
    shape = (len(settings.q_bins), DISTANCE_GROUPS)

    def cell(points: CalibrationPoints) -> IntArray:
        group = np.searchsorted(edges, points.distance, side="right")
        return bin_of(points.match_count, settings.q_bins) * DISTANCE_GROUPS + group

    def per_class(points: CalibrationPoints) -> IntArray:
        code = cell(points) * class_count + points.label
        return np.bincount(code, minlength=shape[0] * shape[1] * class_count).reshape(*shape, class_count)

    vp_cell = cell(vp)

    def of_vp(members: BoolArray) -> IntArray:
        return np.bincount(vp_cell[members], minlength=shape[0] * shape[1]).reshape(shape)

    of_bands = vp if settings.undivided else mc
    smallest, _ = smallest_in_band(of_bands, vp, class_count, settings.q_bins, omega, apart=settings.undivided)
    usable = smallest >= settings.kappa
    return CalibrationPartitions(
        distance_edges=edges,
        mc_count=per_class(mc),
        vp_count=per_class(vp),
        usable=of_vp(usable),
        singleton=of_vp(vp_singleton),
        right=of_vp(vp_singleton & (vp.predicted == vp.label)),
    )


@dataclass(frozen=True, slots=True, eq=False)
class PlacedPoints:
    """n points with their place, and what the calibration makes of them."""

    match_count: IntArray
    distance: FloatArray
    right: BoolArray
    admitted: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class PartitionMap:
    """Counts of points in each of Q groups of q and G groups of d.

    Attributes:
        match_edges: (Q + 1) lower edges of the groups of q and, last, K + 1.
        distance_edges: (G - 1,) float64, where d is cut; a d on an edge is above it.
        points: (Q, G) int64, calibration points.
        right: (Q, G) int64, those of them that are predicted right.
        admitted: (Q, G) int64, those of them that would be admitted.
        traffic: (Q, G) int64, comparable points of recent traffic.
    """

    match_edges: tuple[int, ...]
    distance_edges: FloatArray
    points: IntArray
    right: IntArray
    admitted: IntArray
    traffic: IntArray


def map_rows(q_bins: tuple[int, ...], neighbour_count: int) -> tuple[int, ...]:
    """Return the lower edges of the groups of q of a map: the bins of the setting, unless they are one or too many."""
    return q_bins if 1 < len(q_bins) <= MOST_ROWS else default_match_bins(neighbour_count)


def partition_map(
    calibrated: PlacedPoints,
    traffic: tuple[IntArray, FloatArray],
    *,
    match_edges: tuple[int, ...],
    neighbour_count: int,
    distance_edges: FloatArray,
) -> PartitionMap:
    """Count calibration points and recent traffic by partition.

    Args:
        calibrated: The points of the split that the calibration is described by.
        traffic: q and d of recent traffic, (m,) each.
    """
    check_lengths(
        match_count=calibrated.match_count,
        distance=calibrated.distance,
        right=calibrated.right,
        admitted=calibrated.admitted,
    )
    check_lengths(match_count=traffic[0], distance=traffic[1])
    shape = (len(match_edges), len(distance_edges) + 1)

    def cell(match_count: IntArray, distance: FloatArray) -> IntArray:
        return bin_of(match_count, match_edges) * shape[1] + np.searchsorted(distance_edges, distance, side="right")

    def counted(cells: IntArray) -> IntArray:
        return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)

    own = cell(calibrated.match_count, calibrated.distance)
    return PartitionMap(
        match_edges=(*match_edges, neighbour_count + 1),
        distance_edges=distance_edges,
        points=counted(own),
        right=counted(own[calibrated.right]),
        admitted=counted(own[calibrated.admitted]),
        traffic=counted(cell(*traffic)),
    )
