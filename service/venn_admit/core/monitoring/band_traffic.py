"""Recent traffic against a calibration by bands: q and d, usable bands, and what Venn-ADMIT would admit.

What would be admitted of vp is decided on each point without the point. What plain probabilities admit follows from q,
d and the ADMIT sets alone; weighted ones take the vectors, and a sample of the points.
"""

from dataclasses import dataclass

import numpy as np

from venn_admit.core.approximation.localizer import LocalizerSupport
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.calibrators.venn_admit.decide import Decisions, decide
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.calibrators.venn_admit.venn import VennIndex, venn_probabilities
from venn_admit.core.documents import Documents
from venn_admit.core.monitoring.drift import DecidedPoints
from venn_admit.core.monitoring.traffic import Comparison, Sides
from venn_admit.core.types import (
    BoolArray,
    CalibrationPoints,
    CalibratorSettings,
    Float32Array,
    FloatArray,
    IntArray,
    Split,
)


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotIndex:
    """A snapshot to compare recent traffic with.

    Attributes:
        settings: The settings of its calibrator.
        neighbour_count: K.
        vp: The points of vp.
        vp_usable: The number of points of vp that lie in usable bands.
        vp_admitted: (n_vp,) bool, see `admitted_of_vp`.
        vp_documents: None if no two points share one.
        admit: The index of mc.
        venn: The index of vp.
    """

    settings: CalibratorSettings
    neighbour_count: int
    vp: CalibrationPoints
    vp_usable: int
    vp_admitted: BoolArray
    vp_documents: Documents | None
    admit: AdmitIndex
    venn: VennIndex


def redecide(
    snapshot: SnapshotIndex, decided: DecidedPoints, *, memory_budget: int = DEFAULT_MEMORY_BUDGET
) -> Decisions | None:
    """Return what plain Venn-ADMIT decides on the comparable points under the snapshot; None if there are none.

    Args:
        snapshot: The snapshot.
        decided: Recent traffic.
        memory_budget: In bytes.
    """
    rows = decided.comparable
    if not rows.any():
        return None
    return decide(
        snapshot.admit,
        snapshot.venn,
        decided.approximation.take(np.flatnonzero(rows)),
        snapshot.settings,
        neighbour_count=snapshot.neighbour_count,
        require_full_match=False,
        localizer=None,
        memory_budget=memory_budget,
    )


def compare_bands(
    snapshot: SnapshotIndex, decided: DecidedPoints, documents: Documents | None, redecided: Decisions | None
) -> Comparison | None:
    """Compare the comparable points with vp; None if there are none.

    Args:
        snapshot: The snapshot to compare with.
        decided: Recent traffic.
        documents: The documents of its points; None if no two points share one.
        redecided: The result of `redecide`.
    """
    if redecided is None:
        return None
    rows, vp, view = np.flatnonzero(decided.comparable), snapshot.vp, decided.approximation
    return Sides(Split.VP, len(vp.label), snapshot.vp_documents, rows, documents).compare(
        {"q": (vp.match_count, view.match_count[rows]), "d": (vp.distance, view.distance[rows])},
        {
            "usable": (snapshot.vp_usable, int((~redecided.sets.starved).sum())),
            "admitted": (int(snapshot.vp_admitted.sum()), int((redecided.selection.reason < 0).sum())),
        },
    )


def lower_of_vp(venn: VennIndex, vp: CalibrationPoints, singleton: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the plain lower probability of the points of vp, without and with each in its own category.

    What would be admitted is told by those without. Those with rank the points: without itself, a right point of a
    category gets less than a wrong one, and so the wrong ones would come first.

    Args:
        venn: The index of these points.
        vp: The points.
        singleton: (n_vp,) bool, whether the ADMIT set of each point is a singleton.

    Returns:
        (n_vp,) float64 each; NaN without a singleton.
    """
    found = venn.categories(singleton, vp.predicted, vp.match_count, vp.distance)
    own = singleton.astype(np.int64)
    correct = found.correct - own * (vp.predicted == vp.label)
    without = venn_probabilities(singleton, found.size - own, correct, None)
    return without.lower, venn_probabilities(singleton, found.size, found.correct, None).lower


@dataclass(frozen=True, slots=True)
class WeightedShare:
    """What weighted Venn-ADMIT would admit of some points of vp, each decided on without itself.

    Attributes:
        points: The points that were looked at.
        plain: The number of these that plain probabilities would admit.
        admitted: The number of these that weighted ones would admit.
        right: The number of these whose prediction is the label.
    """

    points: int
    plain: int
    admitted: int
    right: int

    @property
    def share(self) -> float:
        """That weighted probabilities would admit; 0 without points."""
        return self.admitted / max(self.points, 1)


def weighted_of_vp(
    snapshot: SnapshotIndex,
    singleton: BoolArray,
    rows: IntArray,
    support: Float32Array,
    eta_loc: float,
    *,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> WeightedShare:
    """Return what weighted probabilities would admit of points of vp.

    Only what plain ones would admit is weighed: as w >= 1, weighted ones admit no more.

    Args:
        snapshot: The snapshot.
        singleton: (n_vp,) bool, whether the ADMIT set of each point is a singleton.
        rows: (m,) int64, the points to look at.
        support: (n_vp, D) float32, all of vp in the order of the snapshot's `VennIndex`; may be a memory map.
        eta_loc: > 0, the localizer's parameter.
        memory_budget: In bytes.
    """
    plain = rows[snapshot.vp_admitted[rows]]
    if not plain.size:
        return WeightedShare(len(rows), 0, 0, 0)
    vp, order = snapshot.vp, snapshot.venn.order
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    found = snapshot.venn.categories(singleton[plain], vp.predicted[plain], vp.match_count[plain], vp.distance[plain])
    right = vp.predicted[plain] == vp.label[plain]
    weight = LocalizerSupport(support, eta_loc, memory_budget=memory_budget).category_weight(
        support[place[plain]], found.low, found.high, left_out=place[plain]
    )
    lower = venn_probabilities(singleton[plain], found.size - 1, found.correct - right, weight).lower
    threshold = np.array([float(threshold) for threshold in snapshot.settings.thresholds])
    admitted = lower >= threshold[vp.predicted[plain]]
    return WeightedShare(len(rows), len(plain), int(admitted.sum()), int((admitted & right).sum()))


def admitted_of_vp(lower: FloatArray, vp: CalibrationPoints, settings: CalibratorSettings) -> BoolArray:
    """Return which points of vp plain Venn-ADMIT would admit.

    Args:
        lower: (n_vp,) float64, of each point without it in its own category, see `lower_of_vp`.
        vp: The points.
        settings: The settings of the calibrator.

    Returns:
        (n_vp,) bool.
    """
    threshold = np.array([float(threshold) for threshold in settings.thresholds])
    admitted: BoolArray = lower >= threshold[vp.predicted]
    return admitted
