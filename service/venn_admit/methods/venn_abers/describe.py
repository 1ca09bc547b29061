"""What a snapshot by Venn-Abers is described by, how it judges held-out data, and how it differs from another."""

import numpy as np
from sqlalchemy import Connection

from venn_admit.core.calibrators.certified.policies import Policy, each_threshold
from venn_admit.core.calibrators.promises import AskedPromise
from venn_admit.core.calibrators.settings import make_settings
from venn_admit.core.calibrators.venn_abers.cells import CellPoints, VennAbersIndex
from venn_admit.core.calibrators.venn_abers.crossfit import crossfitted_lower, fold_of
from venn_admit.core.comparison.band_rival import admit_rival
from venn_admit.core.comparison.selective import ON_AVERAGE, VENN_ABERS, by_bins, by_loss, certified_for, in_shares
from venn_admit.core.documents import documents_of
from venn_admit.core.evaluation.curves import default_match_bins
from venn_admit.core.evaluation.points import NETWORK, OwnMethod
from venn_admit.core.monitoring.cells import CellView, cell_states, compare_cells, traffic_parts
from venn_admit.core.monitoring.partitions import PlacedPoints
from venn_admit.core.monitoring.what_if import SnapshotCount, SnapshotEffects, SnapshotFact
from venn_admit.core.split_names import Split
from venn_admit.core.types import AdmitOutcome, SelectiveMethod
from venn_admit.methods.describing import CalibrationToDescribe, Described, Judged, PointsToJudge, points_of_split
from venn_admit.methods.method import PointsToDecide
from venn_admit.methods.venn_abers.make import MadeByAbers
from venn_admit.methods.venn_abers.shares import departure_of_traffic
from venn_admit.methods.venn_abers.snapshot import AbersContext, AbersSnapshot, read_context
from venn_admit.report.calibration.cells.part import CellsPart
from venn_admit.report.evaluation.evaluated import settings_of_cells
from venn_admit.store.calibrations import calibrations, venn_abers
from venn_admit.store.calibrations.calibrations import Calibration
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
    groups = exemplars.groups(connection, held.exemplar_ids, calibration.group_attributes)
    mc = CellView(
        points, None if neighbour_count is None else held.points.distance, context.admitted(points, lower, groups)
    )
    index = VennAbersIndex(points, right, class_count=class_count, q_bins=settings.q_bins)
    recent = _recent(connection, given, context, index)
    certificate = venn_abers.certificate_of(connection, calibration.id)
    part = CellsPart(
        settings=settings,
        neighbour_count=neighbour_count,
        score=choice.score,
        network_share=choice.network_share,
        reliability_share=choice.reliability_share,
        steps=index.steps,
        mc=points,
        states=cell_states(
            points, right, mc.admitted, policy=context.deciding, q_bins=settings.q_bins, label_count=given.label_count
        ),
        parts=traffic_parts(
            mc,
            right,
            recent,
            class_count=class_count,
            match_edges=None if neighbour_count is None else default_match_bins(neighbour_count),
        ),
        certificate=certificate,
        average=venn_abers.average_of(connection, calibration.id),
        departure=departure_of_traffic(connection, classifier, calibration, certificate),
    )
    # Where the calibration admits is shown by its own bounds, as anybody can ask of the stored points.
    by_own = context.admitted(points, index.bounds(points).lower, groups)
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
    ids = given.decided.exemplar_ids[rows]
    logits = exemplars.network_logits(connection, given.classifier, ids)
    groups = exemplars.groups(connection, ids, given.calibration.group_attributes)
    points = context.scored(PointsToDecide(view, None, logits))
    admitted = context.admitted(points, index.bounds(points).lower, groups)
    return CellView(points, None if view is None else view.distance, admitted)


def judge(snapshot: AbersSnapshot, points: PointsToJudge) -> Judged:
    """Return what the snapshot makes of the points; see the protocol `Method`."""
    settings, rows, kind = snapshot.calibration.abers_settings, points.rows, snapshot.context.kind
    knn = points.classifier.knn
    name = VENN_ABERS[kind] if len(settings.q_bins) == 1 else by_bins(VENN_ABERS[kind])
    if snapshot.context.certified is not None:
        name = certified_for(snapshot.context.certified)
    elif settings.promise is not AskedPromise.POINTWISE and settings.loss is None:
        name = ON_AVERAGE
    elif settings.certification is not None:
        name = certified_for(settings.certification.kinds)
    if settings.loss is not None:
        name = by_loss(name)
    if settings.is_for_other_shares:
        name = in_shares(name)
    outcome, words = (None, ()) if knn is None else _rival(snapshot, points, knn.neighbour_count)
    return Judged(
        own=OwnMethod(
            name=name,
            baseline=NETWORK,
            predicted=rows.predicted,
            confidence=rows.lower,
            bounds={"plain": (rows.lower, rows.upper)},
            has_bands=False,
        ),
        settings=settings_of_cells(settings, kind, points.classifier.neighbours),
        admit=outcome,
        selective=(SelectiveMethod(name, rows.predicted, rows.admitted, rows.lower),),
        parameters=words,
    )


def _rival(
    snapshot: AbersSnapshot, points: PointsToJudge, neighbour_count: int
) -> tuple[AdmitOutcome | None, tuple[tuple[str, str], ...]]:
    """What Venn-ADMIT makes of the points, None if it is left out, and its name and words."""
    settings, view = snapshot.calibration.abers_settings, points.rows.approximation
    assert view is not None, "there are neighbours"
    outcome, words = admit_rival(
        points.held_out,
        points.vp_vectors,
        view,
        points.own_vectors,
        make_settings(
            points.classifier.class_count, neighbour_count, alpha=settings.alpha, thresholds=settings.thresholds
        ),
        neighbour_count=neighbour_count,
        eta_loc=snapshot.parameters.eta_loc,
        memory_budget=snapshot.workspace.memory_budget,
    )
    return outcome, (("Venn-ADMIT", words),)


def compare(connection: Connection, calibration: Calibration, made: MadeByAbers) -> SnapshotEffects:
    """Return the differences; see the protocol `Method`."""
    before = calibrations.read_points(connection, calibration, Split.MC)
    after = points_of_split(made.rows, Split.MC)
    stored = venn_abers.steps_of(connection, calibration.calibrator_id)
    _, opened = venn_abers.changed_steps(stored, made.steps)
    # Both hold the same exemplars, whose order in the cells may differ.
    score_before = before.points.score[np.argsort(before.exemplar_ids)]
    score_after = after.points.score[np.argsort(after.exemplar_ids)]
    policy = _policy(connection, calibration, made)
    return SnapshotEffects(
        facts=(
            SnapshotFact("score", str(venn_abers.score_of(connection, calibration.id)), str(made.choice.score)),
            SnapshotFact("steps", len(stored.cell), len(made.steps.cell)),
            *policy.facts,
        ),
        counts=(
            SnapshotCount("scores", int((score_before != score_after).sum()), len(score_after)),
            SnapshotCount("steps", len(opened.cell), len(made.steps.cell)),
            *policy.counts,
        ),
    )


def _policy(connection: Connection, calibration: Calibration, made: MadeByAbers) -> SnapshotEffects:
    """What becomes of the policy; nothing if none was asked for."""
    if not calibration.has_policy:
        return SnapshotEffects((), ())
    class_count = len(calibration.abers_settings.thresholds)
    policies = venn_abers.policy_of(connection, calibration.id), made.policy
    was, would_be = (each_threshold(policy or Policy((None,) * class_count)) for policy in policies)
    places = was.keys() | would_be.keys()
    changed = sum(was.get(place) != would_be.get(place) for place in places)
    kinds = venn_abers.certified_kinds(connection, calibration.id), made.certified
    certified = ("no" if of is None else " and ".join(of) for of in kinds)
    facts = (SnapshotFact("certified", *certified),) if calibration.is_asked_for_certificate else ()
    return SnapshotEffects(facts, (SnapshotCount("policy", changed, len(places)),))
