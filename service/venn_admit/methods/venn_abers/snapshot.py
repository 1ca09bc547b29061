"""A snapshot of Venn-Abers that decides: the points of mc by cell, and their vectors once something is weighted."""

import math
from dataclasses import dataclass, replace

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.approximation.localizer import Weigh, category_weight
from venn_admit.core.calibrators.certification import Kind
from venn_admit.core.calibrators.certified.policies import Attributes, Bounded, Policy, admit, least_values
from venn_admit.core.calibrators.promises import AskedPromise, Promised
from venn_admit.core.calibrators.settings import ScoreKind
from venn_admit.core.calibrators.upweights import upweights
from venn_admit.core.calibrators.venn_abers.cells import Bounds, CellEvidence, CellPoints, VennAbersIndex
from venn_admit.core.calibrators.venn_abers.decide import select, select_by_policy
from venn_admit.core.calibrators.venn_abers.reliability import ReliabilityModel, scored_points
from venn_admit.core.evidence import VIEW
from venn_admit.core.method_names import VENN_ABERS
from venn_admit.core.split_names import Split
from venn_admit.core.types import BoolArray, Float32Array, FloatArray, IntArray, Selection
from venn_admit.methods.method import AppliedPolicy, Explained, PointsToDecide
from venn_admit.methods.venn_abers.basis import cell_basis, score_features
from venn_admit.store.calibrations import calibrations, venn_abers
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.decisions.decisions import Decided
from venn_admit.store.exemplars import approximations
from venn_admit.store.exemplars.approximations import StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace


@dataclass(frozen=True, slots=True, eq=False)
class AbersContext:
    """What decisions need of a snapshot besides its points.

    parameters, neighbour_count: None if the classifier has logits only. kind: its score. policy: the
    certified one, or that of the average promise; None if none is certified, or if the pointwise promise was asked for.
    certified: the kinds of classes that the policy is certified for; None if it is not.
    """

    calibration: Calibration
    parameters: StoredParameters | None
    kind: ScoreKind
    policy: Policy | None
    certified: tuple[Kind, ...] | None
    class_count: int
    neighbour_count: int | None

    @property
    def model(self) -> ReliabilityModel | None:
        """That of the reliability score; None if it was not fitted."""
        return None if self.parameters is None else self.parameters.reliability

    def scored(self, points: PointsToDecide) -> CellPoints:
        """Return the points as cells see them."""
        return scored_points(
            self.kind, self.model, points.require_logits(), points.approximation, neighbour_count=self.neighbour_count
        )

    def selected(
        self, points: CellPoints, bounds: Bounds, groups: Attributes, *, require_full_match: bool
    ) -> Selection:
        """Return the verdicts by the promise that the calibration was asked for."""
        full_match = points.match_count == self.neighbour_count if require_full_match else None
        if self.calibration.has_policy:
            return select_by_policy(
                bounds, points.score, points.predicted, self.policy, attributes=groups, full_match=full_match
            )
        thresholds = self.calibration.abers_settings.thresholds
        return select(bounds, points.predicted, thresholds, full_match=full_match)

    @property
    def deciding(self) -> Policy:
        """The thresholds that decide, whether a policy has them or they were asked for; without a policy, all never."""
        if not self.calibration.has_policy:
            return Policy(tuple(map(float, self.calibration.abers_settings.thresholds)), Bounded.LOWER)
        return self.policy or Policy((None,) * self.class_count)

    def admitted(self, points: CellPoints, lower: FloatArray, groups: Attributes) -> BoolArray:
        """Return which of n points are admitted; lower: (n,) float64, their p0."""
        policy = self.deciding
        return admit(points.score if policy.bounded is Bounded.SCORE else lower, points.predicted, policy, groups)

    def decided(
        self,
        points: PointsToDecide,
        cells: CellPoints,
        step_score: FloatArray,
        upweight: FloatArray,
        bounds: Bounds,
        *,
        require_full_match: bool,
    ) -> Decided:
        """Return the decisions on the network's predictions of m points with all that is kept of them.

        step_score: (m,) the score at which the step of each point's cell starts; -inf for the first, and for an empty
        cell.
        """
        view = points.approximation
        selection = self.selected(cells, bounds, points.groups, require_full_match=require_full_match)
        of_view = {} if view is None else {field.name: getattr(view, field.name) for field in VIEW}
        return Decided(
            VENN_ABERS,
            {
                "predicted": cells.predicted,
                **of_view,
                "score": cells.score,
                "step_score": step_score,
                "upweight": upweight,
                "lower": bounds.lower,
                "upper": bounds.upper,
                "decision": selection.decision,
                "reason": selection.reason,
            },
            self.never_admitted,
        )

    @property
    def never_admitted(self) -> BoolArray:
        """(C,) bool, the predicted classes of which no point is admitted, whatever it is."""
        return np.array([least is None for least in self.deciding.thresholds])

    def explained(self, decided: Decided, groups: Attributes) -> list[Explained]:
        """Return what is said of each point."""
        nothing = np.zeros(self.class_count, dtype=np.int64)
        predicted = decided.values["predicted"]
        applied = self.applied(predicted, groups)
        return [
            Explained(fields, nothing, policy) for fields, policy in zip(decided.fields_of_each(), applied, strict=True)
        ]

    def applied(self, predicted: IntArray, groups: Attributes) -> list[AppliedPolicy | None]:
        """Return what the policy says of predictions, (n,) int64; None for each under the pointwise promise."""
        if not self.calibration.has_policy:
            return [None] * len(predicted)
        settings, policy = self.calibration.abers_settings, self.deciding
        promise = Promised.NONE
        if self.policy is not None:
            promise = settings.promised(self.certified, AskedPromise.AVERAGE)
        sentence = promise.stated(settings.alpha, settings.confidence, settings.test, settings.certify)
        return [
            AppliedPolicy(
                is_certified=self.certified is not None,
                promise=promise,
                threshold=None if math.isinf(least) else least,
                bounded=None if self.policy is None else policy.bounded,
                promise_sentence=sentence,
                has_groups=bool(policy.groups),
            )
            for least in least_values(predicted, policy, groups).tolist()
        ]


@dataclass(frozen=True, slots=True, eq=False)
class AbersSnapshot:
    """A calibration ready to decide with.

    mc_ids: (n,) int64, the points of mc in the order of the index.
    """

    workspace: Workspace
    context: AbersContext
    index: VennAbersIndex
    mc_ids: IntArray
    classifier: Classifier

    @property
    def needs_logits(self) -> bool:
        return True

    @property
    def calibration(self) -> Calibration:
        return self.context.calibration

    @property
    def parameters(self) -> StoredParameters:
        assert self.context.parameters is not None, "a classifier with logits only has no parameters"
        return self.context.parameters

    def decide(self, points: PointsToDecide, *, require_full_match: bool) -> Decided:
        """Decide on m points; see the protocol `Snapshot`."""
        return self.decide_with(self._category_weight, points, require_full_match=require_full_match)

    def decide_with(self, weigh: Weigh, points: PointsToDecide, *, require_full_match: bool) -> Decided:
        """Decide on m points; weigh: returns the weights of cells, which are windows of the index."""
        cells = self.context.scored(points)
        return self._decide(points, cells, self.index.evidence(cells), require_full_match, weigh)

    def explain(self, points: PointsToDecide, *, require_full_match: bool) -> Explained:
        """Decide on one point; see the protocol `Snapshot`."""
        context = self.context
        cells = context.scored(points)
        evidence = self.index.evidence(cells)
        decided = self._decide(points, cells, evidence, require_full_match, self._category_weight)
        (explained,) = context.explained(decided, points.groups)
        (least,) = least_values(cells.predicted, context.deciding, points.groups).tolist()
        basis = cell_basis(
            evidence,
            kind=context.kind,
            features=score_features(context.kind, context.model, points, context.neighbour_count),
            class_count=context.class_count,
            threshold=None if math.isinf(least) else least,
        )
        return replace(explained, basis=basis)

    def _decide(
        self, points: PointsToDecide, cells: CellPoints, evidence: CellEvidence, require_full_match: bool, weigh: Weigh
    ) -> Decided:
        upweight, bounds = np.ones(len(cells.score)), evidence.bounds
        if points.vectors is not None:
            upweight = upweights(weigh(points.vectors, *self.index.windows(cells)))
            bounds = self.index.bounds(cells, upweight)
        return self.context.decided(
            points, cells, evidence.step_score, upweight, bounds, require_full_match=require_full_match
        )

    def _category_weight(self, queries: Float32Array, low: IntArray, high: IntArray) -> FloatArray:
        # Mapped, so reading it again costs nothing.
        support, eta_loc = self.localizer_vectors(), self.parameters.eta_loc
        return category_weight(queries, support, low, high, eta_loc, memory_budget=self.workspace.memory_budget)

    def localizer_vectors(self) -> Float32Array:
        """Return the vectors of mc in the order of the index, (n, D) float32, mapped read-only."""
        ids = self.mc_ids[self.index.order]
        return self.workspace.cache.localizer_vectors(self.workspace.engine, self.classifier, self.calibration, ids)


def read_context(connection: Connection, classifier: Classifier, calibration: Calibration) -> AbersContext:
    """Return what decisions need besides the points."""
    return AbersContext(
        calibration,
        approximations.parameters_of(connection, calibration.knn_parameters_id),
        venn_abers.score_of(connection, calibration.id),
        venn_abers.policy_of(connection, calibration.id) if calibration.has_policy else None,
        venn_abers.certified_kinds(connection, calibration.id) if calibration.has_policy else None,
        classifier.class_count,
        classifier.neighbours,
    )


def load_snapshot(workspace: Workspace, classifier: Classifier, calibration_id: int) -> AbersSnapshot:
    """Read a calibration as it was when it was made, and index it."""
    with consistent_view(workspace.engine) as connection:
        calibration = calibrations.by_id(connection, classifier, calibration_id)
        context = read_context(connection, classifier, calibration)
        mc = calibrations.read_points(connection, calibration, Split.MC)
    return indexed(workspace, classifier, context, mc)


def indexed(
    workspace: Workspace, classifier: Classifier, context: AbersContext, mc: calibrations.SnapshotPoints
) -> AbersSnapshot:
    """Index the points of a calibration, stored or not."""
    points = CellPoints(mc.points.predicted, mc.points.match_count, mc.points.score)
    index = VennAbersIndex(
        points,
        mc.points.predicted == mc.points.label,
        class_count=classifier.class_count,
        q_bins=context.calibration.abers_settings.q_bins,
    )
    return AbersSnapshot(workspace, context, index, mc.exemplar_ids, classifier)
