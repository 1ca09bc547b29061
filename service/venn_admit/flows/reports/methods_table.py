"""A calibration's method beside its rivals, on its own `mc` by cross-fitting; nothing is stored."""

from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

from venn_admit.core.calibrators.promises import AskedPromise
from venn_admit.core.calibrators.settings import CalibratorSettings, MethodSettings
from venn_admit.core.calibrators.venn_admit.crossfit import PointsLocalizer
from venn_admit.core.comparison.candidates import cross_fitted_settings
from venn_admit.core.comparison.held_out import HeldOut, HeldOutPoints, ViewedPoints
from venn_admit.core.comparison.on_mc import ComparisonData, rivals_on_mc
from venn_admit.core.comparison.selective import ON_AVERAGE, VENN_ABERS, Promise, by_bins
from venn_admit.core.documents import documents_of
from venn_admit.core.evaluation.measures import Admission, measure_admission
from venn_admit.core.evaluation.points import UNDIVIDED_ADMIT, WEIGHTED_ADMIT
from venn_admit.core.types import Float32Array, IntArray
from venn_admit.errors import NotReadyError
from venn_admit.flows.calibration.compare import cross_fitting
from venn_admit.flows.reports.held_out import ReadHeldOut, comparison_calibration, read_held_out
from venn_admit.methods.registry import load_snapshot, settled_weights
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace

MOST_JUDGED = 2_000
"""At about this many points, a share has an interval of two hundredths either way, and the table takes seconds."""


@dataclass(frozen=True, slots=True)
class TabledMethod:
    """A method: its name, and what it admits of the points that are judged.

    is_own: whether it is the calibration's, without its certificate if it has one.
    """

    name: str
    admission: Admission
    is_own: bool


@dataclass(frozen=True, slots=True)
class MethodsTable:
    """The calibration's method, then its rivals.

    is_certified: whether the calibration decides by a policy, which is tested on all of `mc` and `vp` and so
    is not shown. judged: points of `mc` that the methods decide on. mc_count: all of them.
    """

    calibration: int
    is_certified: bool
    class_names: tuple[str, ...]
    alpha: Decimal
    judged: int
    mc_count: int
    methods: tuple[TabledMethod, ...]


def methods_table(workspace: Workspace, name: str, calibration_id: int | None) -> MethodsTable:
    """Return what the calibration's method and its rivals admit, each calibrated on other points than it decides on.

    Raises:
        NotReadyError: There is no snapshot yet, its points have other neighbours by now, or they take too much memory.
    """
    with consistent_view(workspace.engine) as connection:
        classifier = classifiers.by_name(connection, name)
        calibration = calibrations.latest_or_by_id(connection, classifier, calibration_id)
        calibrations.require_whole(connection, classifier, calibration)
    _check_size(classifier, calibration, workspace.memory_budget)
    snapshot = load_snapshot(workspace, classifier, calibration.id)
    none = np.empty(0, dtype=np.int64)
    with consistent_view(workspace.engine) as connection:
        calibrations.require_whole(connection, classifier, calibration)  # points may be forgotten while it is loaded
        found = read_held_out(workspace, connection, classifier, snapshot, besides=none)
        of_mc = _without_vp(found)
        calibration_data, rows_of = comparison_calibration(workspace, connection, classifier, of_mc)
        data = ComparisonData(of_mc.splits, calibration_data, rows_of[of_mc.vp])
    mc, settings = of_mc.splits.mc, calibration.method_settings
    localizer = None
    if (vectors := data.calibration.vectors) is not None and settled_weights(calibration, None):

        def vectors_of(rows: IntArray) -> Float32Array:
            return workspace.cache.mapped_rows(vectors, data.mc_rows[rows])

        localizer = PointsLocalizer(vectors_of, snapshot.parameters.eta_loc)
    parameters = None if classifier.knn is None else snapshot.parameters
    given = cross_fitting(workspace, classifier, mc, parameters, localizer, most_judged=MOST_JUDGED)
    rows, (own,) = given.judged, cross_fitted_settings(given, [settings])
    rivals = rivals_on_mc(
        data,
        rows,
        Promise(alpha=settings.alpha, thresholds=settings.thresholds),
        eta_loc=None if parameters is None else parameters.eta_loc,
        neighbour_count=given.neighbour_count,
        seed=classifier.seed,
        memory_budget=workspace.memory_budget,
    )
    label, own_name = mc.label[rows], _own_name(own.settings)
    documents = documents_of([mc.keys[row] for row in rows])

    def tabled(name: str, predicted: IntArray, admitted: np.ndarray, *, is_own: bool = False) -> TabledMethod:
        measured = measure_admission(label, predicted, admitted, classifier.class_count, documents)
        return TabledMethod(name, measured, is_own)

    return MethodsTable(
        calibration=calibration.id,
        is_certified=calibration.is_asked_for_certificate,
        class_names=classifier.class_names,
        alpha=settings.alpha,
        judged=len(rows),
        mc_count=len(mc.keys),
        methods=(
            tabled(own_name, own.predicted, own.admitted, is_own=True),
            *(tabled(one.name, one.predicted, one.admitted) for one in rivals if one.name != own_name),
        ),
    )


def _own_name(settings: MethodSettings) -> str:
    """Return the name that the calibration's method has in an evaluation, which a rival may have too."""
    if isinstance(settings, CalibratorSettings):
        return UNDIVIDED_ADMIT if settings.undivided else WEIGHTED_ADMIT
    if settings.promise is AskedPromise.AVERAGE:
        return ON_AVERAGE
    assert settings.score is not None, "the score was chosen"
    name = VENN_ABERS[settings.score]
    return name if len(settings.q_bins) == 1 else by_bins(name)


def _check_size(classifier: Classifier, calibration: Calibration, memory_budget: int) -> None:
    """Their vectors are read at once."""
    if classifier.knn is not None:
        # Without a division, all points count as vp, and mc is a part of them.
        needed = 4 * (calibration.mc_count or calibration.vp_count) * classifier.knn.dimension
        if needed > memory_budget // 2:
            raise NotReadyError(
                f"the vectors of mc take {needed >> 20:,} MiB, which is more than half of the memory that one "
                "computation may take; raise VENN_ADMIT_MEMORY_BUDGET_MB to compare the methods on them"
            )


def _without_vp(found: ReadHeldOut) -> ReadHeldOut:
    """Return knn and mc; `vp` names the rows of mc among them, which `comparison_calibration` finds again."""
    splits, none = found.splits, np.empty(0, dtype=np.int64)
    count = len(splits.knn.keys) + len(splits.mc.keys)
    seen = splits.vp.seen
    empty = HeldOutPoints(
        [],
        splits.vp.label[:0],
        ViewedPoints(seen.network_logits[:0], None if seen.view is None else seen.view.take(none)),
    )
    return replace(
        found,
        ids=found.ids[:count],
        nonconformity=None if found.nonconformity is None else found.nonconformity[:count],
        vp=np.arange(len(splits.knn.keys), count),
        splits=HeldOut(splits.knn, splits.mc, empty),
    )
