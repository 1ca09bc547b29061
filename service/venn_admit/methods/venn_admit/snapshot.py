"""A snapshot of Venn-ADMIT that decides: its indexes, and the localizer's vectors."""

from dataclasses import dataclass

import numpy as np

from venn_admit.core.calibrators.venn_admit.decide import Decisions, Localizer, decide
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.calibrators.venn_admit.venn import VennIndex
from venn_admit.core.method_names import VENN_ADMIT
from venn_admit.core.split_names import Split
from venn_admit.core.types import Approximation, Float32Array
from venn_admit.errors import InvalidInputError
from venn_admit.methods.method import Explained, PointsToDecide
from venn_admit.methods.venn_admit.decided import decided_by_admit
from venn_admit.methods.venn_admit.undivided import UndividedSnapshot, make_ready
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.decisions.decisions import Decided
from venn_admit.store.exemplars import approximations
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace


@dataclass(frozen=True, slots=True, eq=False)
class AdmitSnapshot:
    """A calibration ready to decide with: its indexes, and the vectors of vp in the order of the Venn index.

    mc, vp: its points, ordered by band.
    """

    workspace: Workspace
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

    def decide(self, points: PointsToDecide, *, require_full_match: bool) -> Decided:
        """Decide on m points; see the protocol `Snapshot`."""
        return self.decide_with(self._localizer(points.vectors), points, require_full_match=require_full_match)

    def decide_with(self, localizer: Localizer | None, points: PointsToDecide, *, require_full_match: bool) -> Decided:
        """Decide on m points, by weights of this localizer, or plainly if there is none."""
        found = self._decisions(points.view, localizer, require_full_match)
        return decided_by_admit(points.view, found)

    def decisions(self, view: Approximation, vectors: Float32Array | None) -> Decisions:
        """Decide on m points, weighted if there are vectors, (m, D)."""
        return self._decisions(view, self._localizer(vectors), False)

    def _decisions(self, view: Approximation, localizer: Localizer | None, require_full_match: bool) -> Decisions:
        return decide(
            self.admit,
            self.venn,
            view,
            self.calibration.settings,
            neighbour_count=self.neighbour_count,
            require_full_match=require_full_match,
            localizer=localizer,
            memory_budget=self.workspace.memory_budget,
        )

    def _localizer(self, queries: Float32Array | None) -> Localizer | None:
        if queries is None:
            return None
        eta_loc, vectors = self.parameters.eta_loc, self.localizer_vectors
        return Localizer.over(vectors, eta_loc, queries, memory_budget=self.workspace.memory_budget)

    def explain(self, points: PointsToDecide, *, require_full_match: bool) -> Explained:
        """Decide on one point; see the protocol `Snapshot`."""
        decided = self.decide(points, require_full_match=require_full_match)
        (explained,) = self.explained(decided)
        return explained

    def explained(self, decided: Decided) -> list[Explained]:
        """Return each of some decisions with what it rests on."""
        values = decided.values
        singleton = values["admit_set"].sum(axis=1) == 1
        category = self.venn.categories(singleton, values["predicted"], values["match_count"], values["distance"])
        windows = zip(category.low.tolist(), category.high.tolist(), strict=True)
        rows = [self.venn.order[low:high] for low, high in windows]
        return [
            Explained(fields, np.bincount(self.vp.points.label[of_point], minlength=self.class_count))
            for fields, of_point in zip(decided.fields_of_each(), rows, strict=True)
        ]


def require_own(calibration: Calibration) -> None:
    """Raise InvalidInputError unless a calibration is by this method."""
    if calibration.method != VENN_ADMIT:
        raise InvalidInputError(
            f"calibration {calibration.id} is by the method {calibration.method}, expected the method {VENN_ADMIT}: "
            "put one of its calibrations in use, or calibrate by it"
        )


def load_snapshot(
    workspace: Workspace, classifier: Classifier, calibration_id: int, *, weighted: bool = True
) -> AdmitSnapshot | UndividedSnapshot:
    """Read a calibration as it was when it was made, and index it; weighted: whether the localizer's vectors, too."""
    with consistent_view(workspace.engine) as connection:
        calibration = calibrations.by_id(connection, classifier, calibration_id)
        require_own(calibration)
        parameters = approximations.parameters_by_id(connection, calibration.parameters_id)
        mc = calibrations.read_points(connection, calibration, Split.MC)
        vp = calibrations.read_points(connection, calibration, Split.VP)
    return indexed(workspace, classifier, calibration, parameters, mc, vp, weighted=weighted)


def indexed(
    workspace: Workspace,
    classifier: Classifier,
    calibration: Calibration,
    parameters: approximations.StoredParameters,
    mc: calibrations.SnapshotPoints,
    vp: calibrations.SnapshotPoints,
    *,
    weighted: bool,
) -> AdmitSnapshot | UndividedSnapshot:
    """Index the points of a calibration, stored or not; weighted: whether the localizer's vectors are needed."""
    if calibration.settings.undivided:
        return make_ready(workspace, classifier, calibration, parameters, vp)
    setting, omega, class_count = calibration.settings, calibration.radius.omega, classifier.class_count
    admit = AdmitIndex(mc.points, class_count=class_count, settings=setting, omega=omega)
    venn = VennIndex(vp.points, vp.singleton, class_count=class_count, settings=setting, omega=omega)
    vectors = np.empty((0, classifier.dimension), dtype=np.float32)
    if weighted:
        vectors = workspace.cache.localizer_vectors(
            workspace.engine, classifier, calibration, vp.exemplar_ids[venn.order]
        )
    return AdmitSnapshot(
        workspace, calibration, parameters, class_count, classifier.neighbour_count, mc, vp, admit, venn, vectors
    )
