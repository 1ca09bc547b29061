"""A snapshot of Venn-ADMIT that decides: its indexes, and the localizer's vectors."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Engine

from venn_admit.service.core.calibrators.venn_admit.decide import Decisions, Localizer, decide
from venn_admit.service.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.service.core.calibrators.venn_admit.venn import VennIndex
from venn_admit.service.core.types import AdmitSets, Approximation, Float32Array, IntArray, Split
from venn_admit.service.errors import InvalidInputError
from venn_admit.service.flows.methods.fields import decision_fields
from venn_admit.service.flows.methods.method import Explained, PointsToDecide
from venn_admit.service.store.calibrations import calibrations
from venn_admit.service.store.calibrations.calibrations import Calibration
from venn_admit.service.store.calibrations.setting_forms import VENN_ADMIT
from venn_admit.service.store.database.engine import consistent_view
from venn_admit.service.store.decisions.admit_evidence import evidence_rows
from venn_admit.service.store.decisions.decisions import EvidenceRows, Verdicts
from venn_admit.service.store.exemplars import approximations
from venn_admit.service.store.exemplars.classifiers import Classifier
from venn_admit.service.store.search.array_cache import ArrayCache


@dataclass(frozen=True, slots=True, eq=False)
class DecidedByAdmit:
    """Decisions as they are stored."""

    approximation: Approximation
    decisions: Decisions

    @property
    def verdicts(self) -> Verdicts:
        """On the KNN's prediction."""
        probabilities = self.decisions.probabilities
        return Verdicts(
            predicted=self.approximation.predicted,
            upweight=probabilities.upweight,
            lower=probabilities.lower,
            upper=probabilities.upper,
            selection=self.decisions.selection,
        )

    @property
    def evidence(self) -> EvidenceRows:
        """The sets, their bands, and the categories."""
        return evidence_rows(self.decisions.sets, self.decisions.probabilities)

    @property
    def fields(self) -> dict[str, Any]:
        """What is stored of the decision on one point, by the names of the columns."""
        sets, probabilities = self.decisions.sets, self.decisions.probabilities
        evidence = {
            "admit_set": "".join("1" if included else "0" for included in sets.included[0].tolist()),
            "band_size": sets.band_size[0].tolist(),
            "threshold": sets.threshold[0].tolist(),
            "category_size": int(probabilities.category_size[0]),
        }
        return decision_fields(self.approximation, self.verdicts, evidence)


@dataclass(frozen=True, slots=True, eq=False)
class AdmitSnapshot:
    """A calibration ready to decide with: its indexes, and the vectors of vp in the order of the Venn index.

    mc, vp: its points, ordered by band.
    """

    calibration: Calibration
    parameters: approximations.StoredParameters
    class_count: int
    neighbour_count: int
    mc: calibrations.SnapshotPoints
    vp: calibrations.SnapshotPoints
    admit: AdmitIndex
    venn: VennIndex
    localizer_vectors: Float32Array

    @property
    def needs_logits(self) -> bool:
        return False

    def decide(self, points: PointsToDecide, *, require_full_match: bool, memory_budget: int) -> DecidedByAdmit:
        """Decide on m points; see the protocol `Snapshot`."""
        decided = decide(
            self.admit,
            self.venn,
            points.view,
            self.calibration.settings,
            neighbour_count=self.neighbour_count,
            require_full_match=require_full_match,
            localizer=None
            if points.vectors is None
            else Localizer(self.parameters.eta_loc, points.vectors, self.localizer_vectors),
            memory_budget=memory_budget,
        )
        return DecidedByAdmit(points.view, decided)

    def explain(self, points: PointsToDecide, *, require_full_match: bool, memory_budget: int) -> Explained:
        """Decide on one point; see the protocol `Snapshot`."""
        decided = self.decide(points, require_full_match=require_full_match, memory_budget=memory_budget)
        return Explained(
            decided.fields,
            self._category_counts(decided.decisions.sets, points.view),
        )

    def _category_counts(self, sets: AdmitSets, approximation: Approximation) -> IntArray:
        """Points of each label in the category of the one point, (C,) int64."""
        category = self.venn.categories(
            sets.singleton, approximation.predicted, approximation.match_count, approximation.distance
        )
        rows = self.venn.order[category.low[0] : category.high[0]]
        return np.bincount(self.vp.points.label[rows], minlength=self.class_count)


def require_own(calibration: Calibration) -> None:
    """Raise InvalidInputError unless a calibration is by this method."""
    if calibration.method != VENN_ADMIT:
        raise InvalidInputError(
            f"calibration {calibration.id} is by the method {calibration.method}, expected one by {VENN_ADMIT}, on "
            "whose data all methods can be compared: name one of its calibrations, or calibrate by it"
        )


def load_snapshot(engine: Engine, cache: ArrayCache, classifier: Classifier, calibration_id: int) -> AdmitSnapshot:
    """Read a calibration as it was when it was made, and index it."""
    with consistent_view(engine) as connection:
        calibration = calibrations.by_id(connection, classifier, calibration_id)
        require_own(calibration)
        parameters = approximations.parameters_by_id(connection, calibration.parameters_id)
        mc = calibrations.read_points(connection, calibration, Split.MC)
        vp = calibrations.read_points(connection, calibration, Split.VP)
    return indexed(engine, cache, classifier, calibration, parameters, mc, vp, weighted=True)


def indexed(
    engine: Engine,
    cache: ArrayCache,
    classifier: Classifier,
    calibration: Calibration,
    parameters: approximations.StoredParameters,
    mc: calibrations.SnapshotPoints,
    vp: calibrations.SnapshotPoints,
    *,
    weighted: bool,
) -> AdmitSnapshot:
    """Index the points of a calibration, stored or not; weighted: whether the localizer's vectors are needed."""
    setting, omega, class_count = calibration.settings, calibration.radius.omega, classifier.class_count
    admit = AdmitIndex(mc.points, class_count=class_count, settings=setting, omega=omega)
    venn = VennIndex(vp.points, vp.singleton, class_count=class_count, settings=setting, omega=omega)
    vectors = np.empty((0, classifier.dimension), dtype=np.float32)
    if weighted:
        vectors = cache.localizer_vectors(engine, classifier, calibration, vp.exemplar_ids[venn.order])
    return AdmitSnapshot(calibration, parameters, class_count, classifier.neighbour_count, mc, vp, admit, venn, vectors)
