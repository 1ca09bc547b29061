"""A snapshot of Venn-ADMIT without a division, ready to decide."""

from dataclasses import dataclass

import numpy as np

from venn_admit.core.calibrators.settings import CalibratorSettings
from venn_admit.core.calibrators.venn_admit.decide import Decisions, decide_undivided
from venn_admit.core.calibrators.venn_admit.undivided import UndividedIndex, class_bounds
from venn_admit.core.types import Approximation, Float32Array
from venn_admit.errors import InvalidInputError
from venn_admit.methods.method import Explained, PointsToDecide
from venn_admit.methods.venn_admit.decided import decided_by_admit
from venn_admit.store.calibrations.calibrations import Calibration, SnapshotPoints
from venn_admit.store.decisions.decisions import Decided
from venn_admit.store.exemplars.approximations import StoredParameters
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace


@dataclass(frozen=True, slots=True, eq=False)
class UndividedSnapshot:
    """An undivided calibration with its points, ordered by band, and their index."""

    workspace: Workspace
    calibration: Calibration
    parameters: StoredParameters
    neighbour_count: int
    points: SnapshotPoints
    index: UndividedIndex

    @property
    def needs_logits(self) -> bool:
        return False

    def decide(self, points: PointsToDecide, *, require_full_match: bool) -> Decided:
        """Decide on m points; see the protocol `Snapshot`."""
        found = self.decisions(points.view, points.vectors, require_full_match=require_full_match)
        return decided_by_admit(points.view, found)

    def decisions(
        self, view: Approximation, vectors: Float32Array | None, *, require_full_match: bool = False
    ) -> Decisions:
        """Decide on m points; InvalidInputError if there are vectors, which are for weights."""
        if vectors is not None:
            raise no_weights(self.calibration.id)
        return decide_undivided(
            self.index,
            view,
            self.calibration.settings,
            neighbour_count=self.neighbour_count,
            require_full_match=require_full_match,
            memory_budget=self.workspace.memory_budget,
        )

    def explain(self, points: PointsToDecide, *, require_full_match: bool) -> Explained:
        """Decide on one point; see the protocol `Snapshot`."""
        (explained,) = self.explain_each(points, require_full_match=require_full_match)
        return explained

    def explain_each(self, points: PointsToDecide, *, require_full_match: bool) -> list[Explained]:
        """Decide on m points, and say what each decision rests on."""
        decided, view = self.decide(points, require_full_match=require_full_match), points.view
        found = []
        for row, fields in enumerate(decided.fields_of_each()):
            predicted = int(view.predicted[row])
            counts = np.zeros((view.logits.shape[1],) * 2, dtype=np.int64)
            if fields["category_size"]:
                counts = self.index.label_counts(
                    view.logits[row], predicted, int(view.match_count[row]), float(view.distance[row])
                )
            bounds = class_bounds(counts)
            shares = bounds.lower.tolist(), bounds.upper.tolist()
            found.append(Explained(fields, counts[bounds.least[predicted]], bounds=shares))
        return found


def make_ready(
    workspace: Workspace,
    classifier: Classifier,
    calibration: Calibration,
    parameters: StoredParameters,
    points: SnapshotPoints,
) -> UndividedSnapshot:
    """Index the points of an undivided calibration, stored or not."""
    omega = calibration.radius.omega
    index = index_of(points, classifier, calibration.settings, omega, workspace.memory_budget)
    return UndividedSnapshot(workspace, calibration, parameters, classifier.neighbour_count, points, index)


def index_of(
    points: SnapshotPoints, classifier: Classifier, settings: CalibratorSettings, omega: float, memory_budget: int
) -> UndividedIndex:
    """Return the index of the points of an undivided snapshot."""
    assert points.logits is not None, "an undivided calibration keeps the logits of its points"
    return UndividedIndex(
        points.points,
        points.logits,
        class_count=classifier.class_count,
        settings=settings,
        omega=omega,
        memory_budget=memory_budget,
    )


def no_weights(calibration_id: int) -> InvalidInputError:
    """Return the refusal of weighted decisions."""
    return InvalidInputError(
        f"calibration {calibration_id} is undivided, which is about plain probabilities alone: a weight is that of one "
        "category, and a point has a category for each label here; decide by it without weights, or calibrate without "
        "undivided"
    )
