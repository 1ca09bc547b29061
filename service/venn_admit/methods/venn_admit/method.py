"""Venn-ADMIT as a method of calibration."""

from dataclasses import replace

from sqlalchemy import Connection

from venn_admit.core.calibrators.settings import CalibratorSettings, MethodSettings
from venn_admit.core.monitoring.what_if import SnapshotEffects
from venn_admit.core.types import Split
from venn_admit.methods.describing import CalibrationToDescribe, Described, Judged, PointsToJudge, points_of_split
from venn_admit.methods.method import Made, Snapshot
from venn_admit.methods.venn_admit.decide_one import AdmitPointDecider
from venn_admit.methods.venn_admit.describe import compare, describe, judge
from venn_admit.methods.venn_admit.make import MadeByAdmit, make
from venn_admit.methods.venn_admit.snapshot import AdmitSnapshot, indexed, load_snapshot
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.exemplars.approximations import Replacements, StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier, require_vectors
from venn_admit.store.workspace import Workspace


class VennAdmit:
    """The method `venn-admit`; see the protocol `Method` for what it does."""

    weighted_by_default = True

    def make(
        self,
        connection: Connection,
        classifier: Classifier,
        parameters: StoredParameters | None,
        settings: MethodSettings,
        *,
        memory_budget: int,
        instead: Replacements | None = None,
    ) -> MadeByAdmit:
        require_vectors(classifier, "the method venn-admit")
        assert isinstance(settings, CalibratorSettings)
        assert parameters is not None, "a classifier with vectors is calibrated with its parameters"
        return make(connection, classifier, parameters, settings, memory_budget=memory_budget, instead=instead)

    def compare(
        self,
        connection: Connection,
        classifier: Classifier,
        calibration: Calibration,
        made: Made,
        instead: Replacements,
        *,
        memory_budget: int,
    ) -> SnapshotEffects:
        assert isinstance(made, MadeByAdmit)
        return compare(connection, classifier, calibration, made, instead, memory_budget)

    def ready(
        self,
        workspace: Workspace,
        classifier: Classifier,
        calibration: Calibration,
        parameters: StoredParameters,
        made: Made,
        *,
        weighted: bool,
    ) -> AdmitSnapshot:
        assert isinstance(made, MadeByAdmit)
        mc, vp = (points_of_split(made.rows, split) for split in (Split.MC, Split.VP))
        followed = replace(calibration, band_radius=made.radius)
        return indexed(workspace, classifier, followed, parameters, mc, vp, weighted=weighted)

    def load(self, workspace: Workspace, classifier: Classifier, calibration_id: int) -> AdmitSnapshot:
        return load_snapshot(workspace, classifier, calibration_id)

    def point_decider(self, workspace: Workspace) -> AdmitPointDecider:
        return AdmitPointDecider(workspace)

    def judge(self, snapshot: Snapshot, points: PointsToJudge) -> Judged:
        assert isinstance(snapshot, AdmitSnapshot)
        return judge(snapshot, points)

    def describe(self, workspace: Workspace, connection: Connection, given: CalibrationToDescribe) -> Described:
        return describe(workspace, connection, given)
