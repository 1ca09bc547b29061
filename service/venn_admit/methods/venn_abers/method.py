"""Venn-Abers as a method of calibration."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.approximation.localizer import LocalizerSupport
from venn_admit.core.calibrators.settings import MethodSettings, VennAbersSettings
from venn_admit.core.calibrators.venn_abers.cells import StepPlaces, cell_numbers
from venn_admit.core.monitoring.what_if import SnapshotEffects
from venn_admit.core.split_names import Split
from venn_admit.methods.describing import CalibrationToDescribe, Described, Judged, PointsToJudge, points_of_split
from venn_admit.methods.method import DecideEach, Explained, Made, NotKeptError, PointsToDecide, Snapshot
from venn_admit.methods.recent import Recent
from venn_admit.methods.shared_passes import MOST_SUPPORTS, SharedWeights
from venn_admit.methods.venn_abers.describe import compare, describe, judge
from venn_admit.methods.venn_abers.make import MadeByAbers, make
from venn_admit.methods.venn_abers.snapshot import AbersContext, AbersSnapshot, indexed, load_snapshot, read_context
from venn_admit.store.calibrations import venn_abers
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.exemplars.approximations import Replacements, StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace

_Key = tuple[int, UUID]


@dataclass(frozen=True, slots=True, eq=False)
class _Plain:
    """What plain decisions by a snapshot need of it."""

    context: AbersContext
    steps: StepPlaces

    def decide(self, points: PointsToDecide, *, require_full_match: bool) -> Sequence[Explained]:
        context = self.context
        cells = context.scored(points)
        edges = context.calibration.abers_settings.q_bins
        numbers = cell_numbers(cells, class_count=context.class_count, q_bins=edges)
        bounds, step_score = self.steps.bounds(numbers, cells.score)
        plain = np.ones(len(numbers))
        decided = context.decided(points, cells, step_score, plain, bounds, require_full_match=require_full_match)
        return context.explained(decided, points.groups)


class AbersPointDecider:
    """Decides on some points at a time, as a job does to the bit: the step of each score, among those of the snapshot.

    What was read of the snapshots used last is kept. Weights need all of mc, which is read when the first point is
    weighted under a snapshot.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._plain: Recent[_Key, _Plain] = Recent()
        self._snapshots: Recent[_Key, AbersSnapshot] = Recent()
        self._weights: Recent[_Key, SharedWeights] = Recent(most=MOST_SUPPORTS)

    def look_up(
        self, connection: Connection | None, classifier: Classifier, calibration: Calibration, points: PointsToDecide
    ) -> DecideEach:
        """Read the steps of the snapshot, unless they are known; see the protocol `PointDecider`."""
        if points.vectors is not None:
            return partial(self._decide_weighted, classifier, calibration, points)
        key = (calibration.id, calibration.revision)

        def read() -> _Plain:
            if connection is None:
                raise NotKeptError
            context = read_context(connection, classifier, calibration)
            steps = venn_abers.steps_of(connection, calibration.calibrator_id, number=calibration.number)
            return _Plain(context, StepPlaces(steps))

        return partial(self._plain.get(key, read).decide, points)

    def _decide_weighted(
        self, classifier: Classifier, calibration: Calibration, points: PointsToDecide, *, require_full_match: bool
    ) -> Sequence[Explained]:
        key = (calibration.id, calibration.revision)
        snapshot = self._snapshots.get(key, lambda: load_snapshot(self._workspace, classifier, calibration.id))
        shared = self._weights.get(key, lambda: SharedWeights(self._support(snapshot)))
        decided = snapshot.decide_with(shared.category_weight, points, require_full_match=require_full_match)
        return snapshot.context.explained(decided, points.groups)

    def _support(self, snapshot: AbersSnapshot) -> LocalizerSupport:
        return LocalizerSupport(
            snapshot.localizer_vectors(),
            snapshot.parameters.eta_loc,
            keep_tiles=True,
            memory_budget=self._workspace.memory_budget,
        )


class VennAbers:
    """The method `venn-abers`; see the protocol `Method` for what it does."""

    weighted_by_default = False
    load = staticmethod(load_snapshot)
    point_decider = AbersPointDecider

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
            made.choice.score,
            made.policy,
            made.certified,
            classifier.class_count,
            classifier.neighbour_count,
        )
        return indexed(workspace, classifier, context, points_of_split(made.rows, Split.MC))

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
