"""The points of a calibration by partition of (q, d), and what they lead to (docs/PROCEDURE.md, sections 2 to 4)."""

from dataclasses import dataclass

import numpy as np

from venn_admit.core.calibrators.bands import bin_of, check_calibration_points
from venn_admit.core.calibrators.usable_bands import smallest_in_band
from venn_admit.core.checks import check_lengths
from venn_admit.core.types import BoolArray, CalibrationPoints, CalibratorSettings, FloatArray, IntArray

DISTANCE_GROUPS = 4
"""The number of groups of d, which is cut at its quartiles."""


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

    Args:
        mc: As the snapshot has them, not empty.
        vp: As the snapshot has them, not empty.
        vp_singleton: (n_vp,) bool, whether the ADMIT set of each point of vp is a singleton.
        class_count: C.
        settings: The settings of the calibrator.
        omega: Band radius; may be inf.

    Raises:
        InvalidInputError: The arrays differ in length, or values are out of range.
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

    smallest, _ = smallest_in_band(mc, vp, class_count, settings.q_bins, omega)
    usable = smallest >= settings.kappa
    return CalibrationPartitions(
        distance_edges=edges,
        mc_count=per_class(mc),
        vp_count=per_class(vp),
        usable=of_vp(usable),
        singleton=of_vp(vp_singleton),
        right=of_vp(vp_singleton & (vp.predicted == vp.label)),
    )
