"""The decision of Venn-Abers on one point: the step of its score, by one look-up in an index.

A job decides the same, in every bit. Weights need all of mc, which is read when the first point is weighted under a
snapshot, and kept.
"""

from functools import lru_cache, partial
from uuid import UUID

import numpy as np
from sqlalchemy import Connection, Engine

from venn_admit.service.core.calibrators.venn_abers.cells import Bounds, CellPoints, bounds_at_step, cell_numbers
from venn_admit.service.core.calibrators.venn_abers.steps import Steps
from venn_admit.service.core.memory import DEFAULT_MEMORY_BUDGET
from venn_admit.service.flows.methods.method import DecideOne, Explained, PointsToDecide
from venn_admit.service.flows.methods.recent import Recent
from venn_admit.service.flows.methods.venn_abers.snapshot import (
    AbersContext,
    AbersSnapshot,
    DecidedByAbers,
    load_snapshot,
    read_context,
)
from venn_admit.service.store.calibrations import steps
from venn_admit.service.store.calibrations.calibrations import Calibration
from venn_admit.service.store.database.engine import connect
from venn_admit.service.store.exemplars import classifiers
from venn_admit.service.store.exemplars.classifiers import Classifier
from venn_admit.service.store.search.array_cache import ArrayCache


class AbersPointDecider:
    """Decides on one point at a time; keeps what it read of the snapshots used last, and for weights all of them."""

    def __init__(self, engine: Engine, cache: ArrayCache) -> None:
        self._engine = engine
        self._cache = cache
        self._contexts: Recent[tuple[int, UUID], AbersContext] = Recent()
        self._snapshot = lru_cache(maxsize=4)(self._load_snapshot)

    def look_up(
        self, connection: Connection, classifier: Classifier, calibration: Calibration, points: PointsToDecide
    ) -> DecideOne:
        """Read the step of the score; see the protocol `PointDecider`."""
        if points.vectors is not None:
            return partial(self._decide_weighted, classifier, calibration, points)
        key = (calibration.id, calibration.revision)
        context = self._contexts.get(key, lambda: read_context(connection, classifier, calibration))
        cells = context.scored(points)
        edges = calibration.abers_settings.bin_edges
        (cell,) = cell_numbers(cells, class_count=classifier.class_count, bin_edges=edges).tolist()
        step = steps.step_at(connection, calibration.calibrator_id, cell, float(cells.score[0]))
        return partial(_decide_plain, context, points, cells, step)

    def _decide_weighted(
        self, classifier: Classifier, calibration: Calibration, points: PointsToDecide, *, require_full_match: bool
    ) -> Explained:
        return self._snapshot(classifier.id, calibration.id).explain(
            points, require_full_match=require_full_match, memory_budget=DEFAULT_MEMORY_BUDGET
        )

    def _load_snapshot(self, classifier_id: int, calibration_id: int) -> AbersSnapshot:
        with connect(self._engine) as connection:
            classifier = classifiers.by_id(connection, classifier_id)
        return load_snapshot(self._engine, self._cache, classifier, calibration_id)


def _decide_plain(
    context: AbersContext, points: PointsToDecide, cells: CellPoints, step: Steps, *, require_full_match: bool
) -> Explained:
    if len(step.cell):
        bounds, step_score = bounds_at_step(cells.score, step), step.score
    else:
        bounds, step_score = Bounds(lower=np.zeros(1), upper=np.ones(1)), np.array([-np.inf])
    decided = DecidedByAbers(
        cells,
        np.ones(1),
        step_score,
        bounds,
        context.selected(cells, bounds, require_full_match=require_full_match),
    )
    return decided.explain(points.approximation, context)
