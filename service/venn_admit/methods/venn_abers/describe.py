"""What a report says of a calibration by Venn-Abers: its score, what its cells can admit, and traffic by parts."""

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex
from venn_admit.core.calibrators.venn_abers.crossfit import crossfitted_lower, fold_of
from venn_admit.core.calibrators.venn_abers.decide import reaches_threshold
from venn_admit.core.documents import documents_of
from venn_admit.core.evaluation.curves import default_match_bins
from venn_admit.core.monitoring.cells import CellView, cell_states, compare_cells, traffic_parts
from venn_admit.core.monitoring.partitions import PlacedPoints
from venn_admit.core.types import Split
from venn_admit.methods.describing import CalibrationToDescribe, Described
from venn_admit.methods.method import PointsToDecide
from venn_admit.methods.venn_abers.snapshot import AbersContext, read_context
from venn_admit.report.calibration.cells.part import CellsPart
from venn_admit.store.calibrations import calibrations, venn_abers
from venn_admit.store.exemplars import exemplars


def describe(connection: Connection, given: CalibrationToDescribe) -> Described:
    """Return the part of a report; see the protocol `Method`."""
    calibration, classifier, class_count = given.calibration, given.classifier, given.classifier.class_count
    settings = calibration.abers_settings
    context = read_context(connection, classifier, calibration)
    choice = venn_abers.choice_of(connection, calibration.id)
    held = calibrations.read_points(connection, calibration, Split.MC)
    keys = exemplars.keys(connection, held.exemplar_ids).document_keys
    documents = documents_of(keys)
    points = CellPoints(held.points.predicted, held.points.match_count, held.points.score)
    right = held.points.predicted == held.points.label
    lower = crossfitted_lower(
        points, right, fold_of(keys, seed=classifier.seed), class_count=class_count, q_bins=settings.q_bins
    )
    neighbour_count = context.neighbour_count
    mc = CellView(
        points,
        None if neighbour_count is None else held.points.distance,
        reaches_threshold(lower, held.points.predicted, context.thresholds),
    )
    index = VennAbersIndex(points, right, class_count=class_count, q_bins=settings.q_bins)
    recent = _recent(connection, given, context, index)
    part = CellsPart(
        settings=settings,
        neighbour_count=neighbour_count,
        score=choice.kind,
        network_share=choice.network_share,
        reliability_share=choice.reliability_share,
        steps=index.steps,
        mc=points,
        states=cell_states(
            points,
            right,
            mc.admitted,
            thresholds=context.thresholds,
            q_bins=settings.q_bins,
            label_count=given.label_count,
        ),
        parts=traffic_parts(
            mc,
            right,
            recent,
            class_count=class_count,
            match_edges=None if neighbour_count is None else default_match_bins(neighbour_count),
        ),
        certificate=venn_abers.certificate_of(connection, calibration.id),
    )
    # Where the calibration admits is shown by its own bounds, as anybody can ask of the stored points.
    by_own = reaches_threshold(index.bounds(points).lower, points.predicted, context.thresholds)
    return Described(
        part,
        compare_cells(mc, documents, recent, given.decided, given.decided_documents),
        given.map_of(PlacedPoints(held.points.match_count, held.points.distance, right, by_own)),
        given.coverage_of(held.points, lower, mc.admitted, documents),
    )


def _recent(
    connection: Connection, given: CalibrationToDescribe, context: AbersContext, index: VennAbersIndex
) -> CellView | None:
    """The comparable points of recent traffic under the snapshot, whichever decided on them; None if there are none."""
    rows = np.flatnonzero(given.decided.comparable)
    if not rows.size:
        return None
    has_vectors = context.neighbour_count is not None
    view = given.decided.approximation.take(rows) if has_vectors else None
    logits = exemplars.network_logits(connection, given.classifier, given.decided.exemplar_ids[rows])
    points = context.scored(PointsToDecide(view, None, logits))
    admitted = reaches_threshold(index.bounds(points).lower, points.predicted, context.thresholds)
    return CellView(points, None if view is None else view.distance, admitted)
