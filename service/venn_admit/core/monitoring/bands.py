"""Recent traffic against a calibration by bands: q and d, usable bands, what Venn-ADMIT would admit, labels it lacks.

What would be admitted of vp is decided on each point without the point. What plain probabilities admit follows from q,
d and the ADMIT sets alone; weighted ones take the vectors, and a sample of the points (docs/PROCEDURE.md, section 4).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from venn_admit.core.approximation.localizer import LocalizerSupport
from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.calibrators.venn_abers.decide import reaches_threshold
from venn_admit.core.calibrators.venn_admit.decide import Decisions, decide, decide_undivided
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.calibrators.venn_admit.undivided import UndividedIndex
from venn_admit.core.calibrators.venn_admit.venn import VennIndex, venn_probabilities
from venn_admit.core.checks import check_lengths
from venn_admit.core.documents import Documents
from venn_admit.core.monitoring.drift import DecidedPoints
from venn_admit.core.monitoring.traffic import Comparison, Sides
from venn_admit.core.reasons import ADMITTED
from venn_admit.core.split_names import Split
from venn_admit.core.types import BoolArray, CalibrationPoints, Float32Array, FloatArray, IntArray
from venn_admit.errors import InvalidInputError


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotIndex:
    """A snapshot to compare recent traffic with.

    Attributes:
        vp_usable: The number of points of vp that lie in usable bands.
        vp_admitted: (n_vp,) bool, the points that plain probabilities admit, each without itself in its category.
        undivided: What decides without a division; None with one.
    """

    settings: CalibratorSettings
    neighbour_count: int
    vp: CalibrationPoints
    vp_usable: int
    vp_admitted: BoolArray
    vp_documents: Documents | None
    admit: AdmitIndex
    venn: VennIndex
    undivided: UndividedIndex | None = None


def redecide(
    snapshot: SnapshotIndex, decided: DecidedPoints, *, memory_budget: int = DEFAULT_MEMORY_BUDGET
) -> Decisions | None:
    """Return what plain Venn-ADMIT decides on the comparable points under the snapshot; None if there are none."""
    rows = decided.comparable
    if not rows.any():
        return None
    view = decided.approximation.take(np.flatnonzero(rows))
    if snapshot.undivided is not None:
        return decide_undivided(
            snapshot.undivided,
            view,
            snapshot.settings,
            neighbour_count=snapshot.neighbour_count,
            require_full_match=False,
            memory_budget=memory_budget,
        )
    return decide(
        snapshot.admit,
        snapshot.venn,
        view,
        snapshot.settings,
        neighbour_count=snapshot.neighbour_count,
        require_full_match=False,
        localizer=None,
        memory_budget=memory_budget,
    )


def compare_bands(
    snapshot: SnapshotIndex, decided: DecidedPoints, documents: Documents | None, redecided: Decisions | None
) -> Comparison | None:
    """Compare the comparable points with vp; None if there are none."""
    if redecided is None:
        return None
    rows, vp, view = np.flatnonzero(decided.comparable), snapshot.vp, decided.approximation
    return Sides(Split.VP, len(vp.label), snapshot.vp_documents, rows, documents).compare(
        {"q": (vp.match_count, view.match_count[rows]), "d": (vp.distance, view.distance[rows])},
        {
            "usable": (snapshot.vp_usable, int((~redecided.sets.starved).sum())),
            "admitted": (int(snapshot.vp_admitted.sum()), int((redecided.selection.reason == ADMITTED).sum())),
        },
    )


def lower_of_vp(venn: VennIndex, vp: CalibrationPoints, singleton: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return the plain lower probability of the points of vp, without and with each in its own category.

    What would be admitted is told by those without. Those with rank the points: without itself, a right point of a
    category gets less than a wrong one, and so the wrong ones would come first.

    Returns:
        (n_vp,) float64 each; NaN without a singleton.
    """
    found = venn.categories(singleton, vp.predicted, vp.match_count, vp.distance)
    own = singleton.astype(np.int64)
    correct = found.correct - own * (vp.predicted == vp.label)
    without = venn_probabilities(singleton, found.size - own, correct, None)
    return without.lower, venn_probabilities(singleton, found.size, found.correct, None).lower


def admitted_of_vp(
    vp: CalibrationPoints, singleton: BoolArray, *, class_count: int, settings: CalibratorSettings, omega: float
) -> BoolArray:
    """Return which points of vp plain probabilities admit, each without itself in its own category; (n_vp,) bool."""
    venn = VennIndex(vp, singleton, class_count=class_count, settings=settings, omega=omega)
    ordered, admitted = vp.take(venn.order), np.empty(len(singleton), dtype=np.bool_)
    lower, _ = lower_of_vp(venn, ordered, singleton[venn.order])  # neighbours share most of their windows
    admitted[venn.order] = reaches_threshold(lower, ordered.predicted, settings.thresholds)
    return admitted


@dataclass(frozen=True, slots=True)
class WeightedShare:
    """What weighted Venn-ADMIT would admit of some points of vp, each decided on without itself."""

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
        support: (n_vp, D) float32, all of vp in the order of the snapshot's `VennIndex`; may be a memory map.
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
    admitted = reaches_threshold(lower, vp.predicted[plain], snapshot.settings.thresholds)
    return WeightedShare(len(rows), len(plain), int(admitted.sum()), int((admitted & right).sum()))


@dataclass(frozen=True, slots=True, eq=False)
class Shortfall:
    """The shortfall of rejected points of one bin of q, or of all bins.

    The labels are inf if there is nothing to estimate them from.

    Attributes:
        lacking: (C,) int64, the median over the points of how many more points of mc of each class their band needs to
            hold kappa.
        labels_per_class: (C,) float64, the median of the number of random labels that this takes.
        labels: The median of the number of random labels after which every class holds kappa.
    """

    points: int
    lacking: IntArray
    labels_per_class: FloatArray
    labels: float


@dataclass(frozen=True, slots=True, eq=False)
class LabelBudget:
    """The shortfall of all rejected points, and of those in each bin of q."""

    kappa: int
    per_bin: dict[int, Shortfall]
    overall: Shortfall


def label_budget(band_size: IntArray, q_bin: IntArray, *, kappa: int, label_count: float) -> LabelBudget:
    """Estimate what rejected points lack, in mc points of each class and in labels of a random sample.

    A point lacks max(0, kappa - n_c) points of class c. So far, one random label in label_count / n_c became a point of
    class c in its band. At that rate it takes lacking * label_count / n_c more labels in expectation, and as many as
    the slowest class takes until all classes are complete. If a band holds no point of a class, the rate is unknown and
    the number is inf. Medians are upper ones: for an even number of points, the larger middle value.

    Args:
        band_size: (n, C) int64, n_c of the points rejected as `band below kappa`, n >= 1.
    """
    check_lengths(band_size=band_size, q_bin=q_bin)
    if not len(band_size):
        raise InvalidInputError(
            "a label budget needs at least one rejected point, got none; pass points rejected for their band"
        )
    lacking = np.maximum(0, kappa - band_size)  # (n, C)
    per_label = band_size / label_count  # (n, C)
    labels = np.divide(lacking, per_label, out=np.full(lacking.shape, np.inf), where=per_label > 0)

    def shortfall(rows: IntArray) -> Shortfall:
        return Shortfall(
            points=len(rows),
            lacking=_upper_median(lacking[rows]),
            labels_per_class=_upper_median(labels[rows]),
            labels=float(_upper_median(labels[rows].max(axis=1))),
        )

    bins = np.unique(q_bin).tolist()
    return LabelBudget(
        kappa, {number: shortfall(np.flatnonzero(q_bin == number)) for number in bins}, shortfall(np.arange(len(q_bin)))
    )


def _upper_median(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The upper median of each column. It is a value that occurs, and so a number even if the one below is infinite."""
    median: npt.NDArray[Any] = np.partition(values, len(values) // 2, axis=0)[len(values) // 2]
    return median
