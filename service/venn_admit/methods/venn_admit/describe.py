"""What a report says of a calibration by Venn-ADMIT: partitions, usable bands, and the labels that bands lack."""

from sqlalchemy import Connection

from venn_admit.core.calibrators.bands import bin_of
from venn_admit.core.calibrators.usable_bands import NEARLY_NOTHING, UsableShares, usable_shares
from venn_admit.core.calibrators.venn_admit.decide import Decisions
from venn_admit.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.core.calibrators.venn_admit.venn import VennIndex
from venn_admit.core.comparison.on_mc import judged_rows
from venn_admit.core.documents import documents_of
from venn_admit.core.monitoring.bands import (
    LabelBudget,
    SnapshotIndex,
    admitted_of_vp,
    compare_bands,
    label_budget,
    lower_of_vp,
    redecide,
    weighted_of_vp,
)
from venn_admit.core.monitoring.partitions import CalibrationPartitions, PlacedPoints, calibration_partitions
from venn_admit.core.types import Split
from venn_admit.methods.describing import CalibrationToDescribe, Described
from venn_admit.report.calibration.bands.part import BandsPart
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import SnapshotPoints
from venn_admit.store.exemplars import approximations, exemplars
from venn_admit.store.search.array_cache import ArrayCache

MOST_WEIGHED = 2_000
"""About how many points of vp are weighed if there are more: enough for a share, and a report takes seconds."""


def describe(
    connection: Connection, cache: ArrayCache, given: CalibrationToDescribe, *, memory_budget: int
) -> Described:
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
    index = SnapshotIndex(
        settings=settings,
        neighbour_count=classifier.neighbour_count,
        vp=vp.points,
        vp_usable=int(partitions.usable.sum()),
        vp_admitted=admitted_of_vp(lower, vp.points, settings),
        vp_documents=documents,
        admit=AdmitIndex(mc.points, class_count=class_count, settings=settings, omega=omega),
        venn=venn,
    )
    parameters = approximations.parameters_by_id(connection, calibration.parameters_id)
    weighted = weighted_of_vp(
        index,
        vp.singleton,
        judged_rows(keys, seed=classifier.seed, most=MOST_WEIGHED),
        cache.mapped_vectors(connection, classifier, vp.exemplar_ids[venn.order]),
        parameters.eta_loc,
        memory_budget=memory_budget,
    )
    redecided = redecide(index, decided, memory_budget=memory_budget)
    part = BandsPart(
        settings=settings,
        neighbour_count=classifier.neighbour_count,
        radius=calibration.radius,
        mc_share=classifier.mc_share,
        partitions=partitions,
        admitted_of_vp=int(index.vp_admitted.sum()),
        weighted=weighted,
        other_settings=_other_settings(given, mc, partitions),
        lacking=_lacking(given, redecided),
    )
    placed = PlacedPoints(
        vp.points.match_count, vp.points.distance, vp.points.predicted == vp.points.label, index.vp_admitted
    )
    comparison = compare_bands(index, decided, given.decided_documents, redecided)
    coverage = given.coverage_of(vp.points, ranking, index.vp_admitted, documents)
    return Described(part, comparison, given.map_of(placed), coverage)


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
