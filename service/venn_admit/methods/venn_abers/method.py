"""Venn-Abers as a method of calibration."""

from sqlalchemy import Connection

from venn_admit.core.calibrators.settings import MethodSettings, VennAbersSettings
from venn_admit.core.monitoring.what_if import SnapshotEffects
from venn_admit.core.types import Split
from venn_admit.methods.describing import CalibrationToDescribe, Described, Judged, PointsToJudge, points_of_split
from venn_admit.methods.method import Made, Snapshot
from venn_admit.methods.venn_abers.decide_one import AbersPointDecider
from venn_admit.methods.venn_abers.describe import compare, describe, judge
from venn_admit.methods.venn_abers.make import MadeByAbers, make
from venn_admit.methods.venn_abers.snapshot import AbersContext, AbersSnapshot, indexed, load_snapshot
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.exemplars.approximations import Replacements, StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace


class VennAbers:
    """The method `venn-abers`; see the protocol `Method` for what it does."""

    weighted_by_default = False

    def make(
        self,
        connection: Connection,
        classifier: Classifier,
        parameters: StoredParameters | None,
        settings: MethodSettings,
        *,
        memory_budget: int,
        instead: Replacements | None = None,
    ) -> MadeByAbers:
        assert isinstance(settings, VennAbersSettings)
        return make(connection, classifier, parameters, settings, memory_budget=memory_budget, instead=instead)

    def compare(
        self,
        connection: Connection,
        classifier: Classifier,  # noqa: ARG002 - as every method has it
        calibration: Calibration,
        made: Made,
        instead: Replacements,  # noqa: ARG002
        *,
        memory_budget: int,  # noqa: ARG002
    ) -> SnapshotEffects:
        assert isinstance(made, MadeByAbers)
        return compare(connection, calibration, made)

    def ready(
        self,
        workspace: Workspace,
        classifier: Classifier,
        calibration: Calibration,
        parameters: StoredParameters,
        made: Made,
        *,
        weighted: bool,  # noqa: ARG002 - vectors are read when they are first needed
    ) -> AbersSnapshot:
        assert isinstance(made, MadeByAbers)
        context = AbersContext(
            calibration,
            parameters,
            made.choice.kind,
            made.policy,
            made.certified,
            classifier.class_count,
            classifier.neighbour_count,
        )
        return indexed(workspace, classifier, context, points_of_split(made.rows, Split.MC))

    def load(self, workspace: Workspace, classifier: Classifier, calibration_id: int) -> AbersSnapshot:
        return load_snapshot(workspace, classifier, calibration_id)

    def point_decider(self, workspace: Workspace) -> AbersPointDecider:
        return AbersPointDecider(workspace)

    def judge(self, snapshot: Snapshot, points: PointsToJudge) -> Judged:
        assert isinstance(snapshot, AbersSnapshot)
        return judge(snapshot, points)

    def describe(
        self,
        workspace: Workspace,  # noqa: ARG002 - plain bounds need no vectors, and cells are small
        connection: Connection,
        given: CalibrationToDescribe,
    ) -> Described:
        return describe(connection, given)
