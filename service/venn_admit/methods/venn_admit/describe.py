"""What a snapshot by Venn-ADMIT is described by, how it judges held-out data, and how it differs from another."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection

from venn_admit.core.approximation.localizer import localizer_logits
from venn_admit.core.calibrators.bands import bin_of
from venn_admit.core.calibrators.usable_bands import NEARLY_NOTHING, UsableShares, usable_shares
from venn_admit.core.calibrators.venn_abers.decide import reaches_threshold
from venn_admit.core.calibrators.venn_admit.decide import Decisions, decide
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.calibrators.venn_admit.venn import VennIndex
from venn_admit.core.comparison.held_out import document_sample
from venn_admit.core.documents import documents_of
from venn_admit.core.monitoring.bands import (
    LabelBudget,
    SnapshotIndex,
    WeightedShare,
    compare_bands,
    label_budget,
    lower_of_vp,
    redecide,
    weighted_of_vp,
)
from venn_admit.core.monitoring.divisions import redivided_shares
from venn_admit.core.monitoring.partitions import CalibrationPartitions, PlacedPoints, calibration_partitions
from venn_admit.core.monitoring.what_if import SnapshotEffects
from venn_admit.core.split_names import Split
from venn_admit.core.types import AdmitOutcome, AdmitSets, Approximation
from venn_admit.methods.describing import CalibrationToDescribe, Described, Judged, PointsToJudge, points_of_split
from venn_admit.methods.venn_admit.describe_undivided import (
    compare_undivided,
    count_differences,
    count_sets,
    effects,
    judge_undivided,
)
from venn_admit.methods.venn_admit.make import MadeByAdmit
from venn_admit.methods.venn_admit.snapshot import AdmitSnapshot
from venn_admit.methods.venn_admit.undivided import UndividedSnapshot, index_of
from venn_admit.report.calibration.bands.part import BandsPart
from venn_admit.report.evaluation.evaluated import settings_of_bands
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import Calibration, SnapshotPoints
from venn_admit.store.exemplars import approximations, exemplars
from venn_admit.store.exemplars.approximations import Replacements, positions
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.workspace import Workspace

MOST_WEIGHED = 2_000
"""About how many points of vp are weighed if there are more: enough for a share, and a report takes seconds."""


def describe(workspace: Workspace, connection: Connection, given: CalibrationToDescribe) -> Described:
    """Return the part of a report; see the protocol `Method`."""
    calibration, classifier, decided = given.calibration, given.classifier, given.decided
    mc, vp = (calibrations.read_points(connection, calibration, split) for split in (Split.MC, Split.VP))
    keys = exemplars.keys(connection, vp.exemplar_ids).document_keys
    documents = documents_of(keys)
    settings, omega, class_count = calibration.settings, calibration.radius.omega, classifier.class_count
    partitions = calibration_partitions(
        mc.points, vp.points, vp.singleton, class_count=class_count, settings=settings, omega=omega
    )
    venn = VennIndex(vp.points, vp.singleton, class_count=class_count, settings=settings, omega=omega)
    lower, ranking = lower_of_vp(venn, vp.points, vp.singleton)
    undivided = None if vp.logits is None else index_of(vp, classifier, settings, omega, workspace.memory_budget)
    index = SnapshotIndex(
        settings=settings,
        neighbour_count=classifier.neighbour_count,
        vp=vp.points,
        vp_usable=int(partitions.usable.sum()),
        vp_admitted=reaches_threshold(lower, vp.points.predicted, settings.thresholds),
        vp_documents=documents,
        admit=AdmitIndex(mc.points, class_count=class_count, settings=settings, omega=omega),
        venn=venn,
        undivided=undivided,
    )
    redecided = redecide(index, decided, memory_budget=workspace.memory_budget)
    part = BandsPart(
        settings=settings,
        neighbour_count=classifier.neighbour_count,
        radius=calibration.radius,
        mc_share=classifier.mc_share,
        partitions=partitions,
        admitted_of_vp=int(index.vp_admitted.sum()),
        divisions=_divisions(workspace, connection, given, mc, vp, keys),
        weighted=None if settings.undivided else _weighted(workspace, connection, given, index, vp, keys),
        other_settings=_other_settings(given, vp if settings.undivided else mc, partitions),
        lacking=_lacking(given, redecided),
    )
    placed = PlacedPoints(
        vp.points.match_count, vp.points.distance, vp.points.predicted == vp.points.label, index.vp_admitted
    )
    comparison = compare_bands(index, decided, given.decided_documents, redecided)
    coverage = given.coverage_of(vp.points, ranking, index.vp_admitted, documents)
    return Described(part, comparison, given.map_of(placed), coverage)


def _weighted(
    workspace: Workspace,
    connection: Connection,
    given: CalibrationToDescribe,
    index: SnapshotIndex,
    vp: SnapshotPoints,
    keys: list[str],
) -> WeightedShare:
    """Return what weighted probabilities would admit of a sample of vp."""
    calibration, classifier = given.calibration, given.classifier
    return weighted_of_vp(
        index,
        vp.singleton,
        document_sample(keys, seed=classifier.seed, most=MOST_WEIGHED),
        workspace.cache.mapped_vectors(connection, classifier, vp.exemplar_ids[index.venn.order]),
        approximations.parameters_by_id(connection, calibration.parameters_id).eta_loc,
        memory_budget=workspace.memory_budget,
    )


def _divisions(
    workspace: Workspace,
    connection: Connection,
    given: CalibrationToDescribe,
    mc: SnapshotPoints,
    vp: SnapshotPoints,
    vp_keys: list[str],
) -> tuple[float, ...]:
    """Return what other divisions admit; none if it is unknown, since neighbours of some points have changed.

    Without a division, return what divisions would admit.
    """
    calibration, classifier = given.calibration, given.classifier
    if vp.logits is not None:
        points = vp.points
        return redivided_shares(
            Approximation(vp.logits, points.predicted, points.match_count, points.distance),
            points.label,
            vp_keys,
            replace(calibration.settings, undivided=False),
            mc_share=float(classifier.mc_share) / (1 - float(classifier.knn_share)),
            class_count=classifier.class_count,
            seed=classifier.seed,
            memory_budget=workspace.memory_budget,
        )
    joined = np.concatenate([mc.exemplar_ids, vp.exemplar_ids])
    ids, found = approximations.read_approximations(connection, classifier, joined, calibration.parameters_id)
    if len(ids) != len(joined):
        return ()
    view = found.take(positions(ids, joined))

    def of_snapshot(name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(part.points, name) for part in (mc, vp)])

    if not all(np.array_equal(getattr(view, name), of_snapshot(name)) for name in ("match_count", "distance")):
        return ()
    keys = [*exemplars.keys(connection, mc.exemplar_ids).document_keys, *vp_keys]
    return redivided_shares(
        view,
        of_snapshot("label"),
        keys,
        calibration.settings,
        mc_share=len(mc.exemplar_ids) / len(joined),
        class_count=classifier.class_count,
        seed=classifier.seed,
        memory_budget=workspace.memory_budget,
    )


def _other_settings(
    given: CalibrationToDescribe, mc: SnapshotPoints, partitions: CalibrationPartitions
) -> UsableShares | None:
    """Return what other settings would leave usable, if these leave nearly nothing of vp."""
    calibration, classifier = given.calibration, given.classifier
    if int(partitions.usable.sum()) >= NEARLY_NOTHING * calibration.vp_count:
        return None
    return usable_shares(
        mc.points,
        calibration.settings,
        class_count=classifier.class_count,
        neighbour_count=classifier.neighbour_count,
        omega=calibration.radius.omega,
    )


def _lacking(given: CalibrationToDescribe, redecided: Decisions | None) -> LabelBudget | None:
    """Return the budget of comparable points whose band is below kappa in the snapshot."""
    if redecided is None or not redecided.sets.starved.any():
        return None
    settings, decided, starved = given.calibration.settings, given.decided, redecided.sets.starved
    match_count = decided.approximation.match_count[decided.comparable]
    return label_budget(
        redecided.sets.band_size[starved],
        bin_of(match_count[starved], settings.q_bins),
        kappa=settings.kappa,
        label_count=given.label_count,
    )


def judge(snapshot: AdmitSnapshot | UndividedSnapshot, points: PointsToJudge) -> Judged:
    """Return what the snapshot makes of the points; see the protocol `Method`."""
    if isinstance(snapshot, UndividedSnapshot):
        return judge_undivided(snapshot, points)
    settings, rows = snapshot.calibration.settings, points.rows
    assert rows.approximation is not None, "the method decides by the KNN"
    plain = decide(
        snapshot.admit,
        snapshot.venn,
        rows.approximation,
        settings,
        neighbour_count=snapshot.neighbour_count,
        require_full_match=False,
        localizer=None,
        memory_budget=snapshot.workspace.memory_budget,
    )
    # The localizer's vectors are in the order of the Venn index.
    vp_logits = points.held_out.vp.seen.knn.logits[snapshot.venn.order]
    localized = localizer_logits(
        points.own_vectors,
        snapshot.localizer_vectors,
        vp_logits,
        snapshot.parameters.eta_loc,
        memory_budget=snapshot.workspace.memory_budget,
    )
    return Judged(
        own=None,
        settings=settings_of_bands(settings, snapshot.neighbour_count),
        admit=AdmitOutcome(
            included=plain.sets.included,
            lower_plain=plain.probabilities.lower,
            upper_plain=plain.probabilities.upper,
            lower_weighted=rows.lower,
            upper_weighted=rows.upper,
            admitted_plain=plain.selection.decision >= 0,
            admitted_weighted=rows.admitted,
        ),
        localizer_predicted=localized.argmax(axis=1),
    )


def compare(
    connection: Connection,
    classifier: Classifier,
    calibration: Calibration,
    made: MadeByAdmit,
    instead: Replacements,
    memory_budget: int,
) -> SnapshotEffects:
    """Return the differences; see the protocol `Method`."""
    settings, radius = calibration.settings, calibration.radius
    if calibration.settings.undivided:
        return compare_undivided(connection, classifier, calibration, made, memory_budget)
    mc_before = calibrations.read_points(connection, calibration, Split.MC).points
    mc_after = points_of_split(made.rows, Split.MC).points
    before = AdmitIndex(mc_before, class_count=classifier.class_count, settings=settings, omega=radius.omega)
    after = AdmitIndex(mc_after, class_count=classifier.class_count, settings=settings, omega=made.radius.omega)

    def sets(index: AdmitIndex, view: Approximation) -> AdmitSets:
        return index.sets(view.logits, view.predicted, view.match_count, view.distance, memory_budget=memory_budget)

    found: Counter[str] = Counter()
    blocks = approximations.split_blocks(connection, classifier, Split.VP, calibration.parameters_id, memory_budget)
    for block in blocks:
        was = sets(before, block.approximation)
        would_be = sets(after, instead.replaced(block.exemplar_ids, block.approximation))
        count_sets(found, was, settings.kappa)
        count_differences(found, was, would_be)
    return effects(radius, made, found)
