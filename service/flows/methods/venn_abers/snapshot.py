"""A snapshot of Venn-Abers that decides: the points of mc by cell, and their vectors once something is weighted."""

from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection, Engine

from venn_admit.service.core.approximation.localizer import category_weight
from venn_admit.service.core.calibrators.upweights import upweights
from venn_admit.service.core.calibrators.venn_abers.cells import Bounds, CellPoints, VennAbersIndex
from venn_admit.service.core.calibrators.venn_abers.decide import select
from venn_admit.service.core.calibrators.venn_abers.reliability import scored_points
from venn_admit.service.core.calibrators.venn_abers.settings import ScoreKind
from venn_admit.service.core.types import Approximation, Float32Array, FloatArray, IntArray, Selection, Split
from venn_admit.service.flows.methods.fields import decision_fields
from venn_admit.service.flows.methods.method import Explained, PointsToDecide
from venn_admit.service.store.calibrations import calibrations, score_choices
from venn_admit.service.store.calibrations.calibrations import Calibration
from venn_admit.service.store.database.engine import consistent_view
from venn_admit.service.store.decisions.abers_evidence import evidence_rows
from venn_admit.service.store.decisions.decisions import EvidenceRows, Verdicts
from venn_admit.service.store.exemplars import approximations
from venn_admit.service.store.exemplars.approximations import StoredParameters
from venn_admit.service.store.exemplars.classifiers import Classifier
from venn_admit.service.store.search.array_cache import ArrayCache


@dataclass(frozen=True, slots=True, eq=False)
class DecidedByAbers:
    """Decisions as they are stored.

    step_score: (m,) float64, the score at which the step of each point's cell starts; -inf for the first, and for an
    empty cell.
    """

    points: CellPoints
    upweight: FloatArray
    step_score: FloatArray
    bounds: Bounds
    selection: Selection

    @property
    def verdicts(self) -> Verdicts:
        """On the network's prediction."""
        return Verdicts(
            predicted=self.points.predicted,
            upweight=self.upweight,
            lower=self.bounds.lower,
            upper=self.bounds.upper,
            selection=self.selection,
        )

    @property
    def evidence(self) -> EvidenceRows:
        """The scores, and the steps that they lie in."""
        return evidence_rows(self.points.score, self.step_score)

    def explain(self, view: Approximation, class_count: int) -> Explained:
        """Return what is said of the one point; view: the KNN's."""
        evidence = {"score": float(self.points.score[0]), "step_score": float(self.step_score[0])}
        return Explained(decision_fields(view, self.verdicts, evidence), np.zeros(class_count, dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class AbersContext:
    """What decisions need of a snapshot besides its points. kind: its score."""

    calibration: Calibration
    parameters: StoredParameters
    kind: ScoreKind
    class_count: int
    neighbour_count: int

    def scored(self, points: PointsToDecide) -> CellPoints:
        """Return the points as cells see them."""
        return scored_points(
            self.kind,
            self.parameters.reliability,
            points.require_logits(),
            points.approximation,
            neighbour_count=self.neighbour_count,
        )

    def selected(self, points: CellPoints, bounds: Bounds, *, require_full_match: bool) -> Selection:
        """Return the verdicts by the pointwise promise."""
        return select(
            bounds,
            points.predicted,
            self.calibration.abers_settings.thresholds,
            full_match=points.match_count == self.neighbour_count if require_full_match else None,
        )


@dataclass(frozen=True, slots=True, eq=False)
class AbersSnapshot:
    """A calibration ready to decide with.

    mc_ids: (n,) int64, the points of mc in the order of the index.
    """

    context: AbersContext
    index: VennAbersIndex
    mc_ids: IntArray
    classifier: Classifier
    engine: Engine
    cache: ArrayCache

    @property
    def needs_logits(self) -> bool:
        return True

    @property
    def calibration(self) -> Calibration:
        return self.context.calibration

    @property
    def parameters(self) -> StoredParameters:
        return self.context.parameters

    def decide(self, points: PointsToDecide, *, require_full_match: bool, memory_budget: int) -> DecidedByAbers:
        """Decide on m points; see the protocol `Snapshot`."""
        cells = self.context.scored(points)
        upweight = None if points.vectors is None else self._upweights(cells, points.vectors, memory_budget)
        evidence = self.index.evidence(cells)
        bounds = evidence.bounds if upweight is None else self.index.bounds(cells, upweight)
        return DecidedByAbers(
            cells,
            np.ones(len(cells.score)) if upweight is None else upweight,
            evidence.step_score,
            bounds,
            self.context.selected(cells, bounds, require_full_match=require_full_match),
        )

    def explain(self, points: PointsToDecide, *, require_full_match: bool, memory_budget: int) -> Explained:
        """Decide on one point; see the protocol `Snapshot`."""
        decided = self.decide(points, require_full_match=require_full_match, memory_budget=memory_budget)
        return decided.explain(points.approximation, self.context.class_count)

    def _upweights(self, cells: CellPoints, vectors: Float32Array, memory_budget: int) -> FloatArray:
        low, high = self.index.windows(cells)
        # Mapped, so reading it again costs nothing.
        support = self.cache.localizer_vectors(
            self.engine, self.classifier, self.calibration, self.mc_ids[self.index.order]
        )
        weight = category_weight(vectors, support, low, high, self.parameters.eta_loc, memory_budget=memory_budget)
        return upweights(weight)


def read_context(connection: Connection, classifier: Classifier, calibration: Calibration) -> AbersContext:
    """Return what decisions need besides the points."""
    return AbersContext(
        calibration,
        approximations.parameters_by_id(connection, calibration.knn_parameters_id),
        score_choices.score_of(connection, calibration.id),
        classifier.class_count,
        classifier.neighbour_count,
    )


def load_snapshot(engine: Engine, cache: ArrayCache, classifier: Classifier, calibration_id: int) -> AbersSnapshot:
    """Read a calibration as it was when it was made, and index it."""
    with consistent_view(engine) as connection:
        calibration = calibrations.by_id(connection, classifier, calibration_id)
        context = read_context(connection, classifier, calibration)
        mc = calibrations.read_points(connection, calibration, Split.MC)
    points = CellPoints(mc.points.predicted, mc.points.match_count, mc.points.score)
    index = VennAbersIndex(
        points,
        mc.points.predicted == mc.points.label,
        class_count=classifier.class_count,
        bin_edges=calibration.abers_settings.bin_edges,
    )
    return AbersSnapshot(context, index, mc.exemplar_ids, classifier, engine, cache)
