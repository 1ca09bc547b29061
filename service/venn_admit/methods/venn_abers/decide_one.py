"""The decision of Venn-Abers on some points: the step of each score, by one look-up in an index.

A job decides the same, in every bit. Weights need all of mc, which is read when the first point is weighted under a
snapshot, and kept.
"""

from collections.abc import Sequence
from functools import partial
from uuid import UUID

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.approximation.localizer import LocalizerSupport
from venn_admit.core.calibrators.venn_abers.cells import Bounds, CellPoints, bounds_at_step, cell_numbers
from venn_admit.core.calibrators.venn_abers.steps import Steps
from venn_admit.methods.method import DecideEach, Explained, PointsToDecide
from venn_admit.methods.recent import Recent
from venn_admit.methods.shared_passes import MOST_SUPPORTS, SharedWeights
from venn_admit.methods.venn_abers.snapshot import (
    AbersContext,
    AbersSnapshot,
    load_snapshot,
    read_context,
)
from venn_admit.store.calibrations import venn_abers
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace

_Key = tuple[int, UUID]


class AbersPointDecider:
    """Decides on some points at a time; keeps what it read of the snapshots used last, and for weights all of them."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._contexts: Recent[_Key, AbersContext] = Recent()
        self._snapshots: Recent[_Key, AbersSnapshot] = Recent()
        self._weights: Recent[_Key, SharedWeights] = Recent(most=MOST_SUPPORTS)

    def look_up(
        self, connection: Connection, classifier: Classifier, calibration: Calibration, points: PointsToDecide
    ) -> DecideEach:
        """Read the step of each score; see the protocol `PointDecider`."""
        if points.vectors is not None:
            return partial(self._decide_weighted, classifier, calibration, points)
        key = (calibration.id, calibration.revision)
        context = self._contexts.get(key, lambda: read_context(connection, classifier, calibration))
        cells = context.scored(points)
        edges = calibration.abers_settings.q_bins
        numbers = cell_numbers(cells, class_count=classifier.class_count, q_bins=edges).tolist()
        found = [
            venn_abers.step_at(connection, calibration.calibrator_id, cell, score)
            for cell, score in zip(numbers, cells.score.tolist(), strict=True)
        ]
        return partial(_decide_plain, context, points, cells, found)

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


def _decide_plain(
    context: AbersContext,
    points: PointsToDecide,
    cells: CellPoints,
    found: Sequence[Steps],
    *,
    require_full_match: bool,
) -> Sequence[Explained]:
    lower, upper, step_score = np.zeros(len(found)), np.ones(len(found)), np.full(len(found), -np.inf)
    for row, step in enumerate(found):
        if len(step.cell):
            bounds = bounds_at_step(cells.score[row : row + 1], step)
            (lower[row],), (upper[row],), (step_score[row],) = bounds.lower, bounds.upper, step.score
    bounds = Bounds(lower=lower, upper=upper)
    decided = context.decided(
        points, cells, step_score, np.ones(len(found)), bounds, require_full_match=require_full_match
    )
    return context.explained(decided, points.groups)
