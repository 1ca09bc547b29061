"""The state of a calibration: what is stored, its partitions, drift, discrepancies, and the labels it lacks."""

from dataclasses import dataclass

from sqlalchemy import Connection, Engine

from venn_admit.service.core.calibrators.bands import bin_of
from venn_admit.service.core.calibrators.usable_bands import NEARLY_NOTHING, UsableShares, usable_shares
from venn_admit.service.core.calibrators.venn_admit.decide import Decisions
from venn_admit.service.core.calibrators.venn_admit.sets import AdmitIndex
from venn_admit.service.core.calibrators.venn_admit.venn import VennIndex
from venn_admit.service.core.documents import Documents, documents_of
from venn_admit.service.core.memory import DEFAULT_MEMORY_BUDGET
from venn_admit.service.core.monitoring.discrepancies import Discrepancies
from venn_admit.service.core.monitoring.drift import DecidedPoints
from venn_admit.service.core.monitoring.inventory import Inventory, SnapshotChanges
from venn_admit.service.core.monitoring.label_budget import LabelBudget, label_budget
from venn_admit.service.core.monitoring.partitions import CalibrationPartitions, calibration_partitions
from venn_admit.service.core.monitoring.traffic import SnapshotIndex, admitted_of_vp, redecide, traffic
from venn_admit.service.core.types import IntArray, Split
from venn_admit.service.errors import InvalidInputError
from venn_admit.service.report.calibration.contents import Agreement, CalibrationReport, SnapshotFacts
from venn_admit.service.store.calibrations import calibrations
from venn_admit.service.store.calibrations.calibrations import Calibration, SnapshotPoints
from venn_admit.service.store.database.engine import consistent_view
from venn_admit.service.store.decisions import reports
from venn_admit.service.store.decisions.reports import SnapshotOrigin
from venn_admit.service.store.exemplars import classifiers, exemplars
from venn_admit.service.store.exemplars.classifiers import Classifier


def report(
    engine: Engine, name: str, *, calibration_id: int | None, memory_budget: int = DEFAULT_MEMORY_BUDGET
) -> CalibrationReport:
    """Return everything that a report shows, from one view of the data; nothing is written.

    calibration_id: the snapshot to report on; None: the current one. Raises NotFoundError for a name or number that
    is not stored, NotReadyError before the first calibration. memory_budget: bytes that temporary arrays may take.
    """
    with consistent_view(engine) as connection:
        gathered = _gather(connection, name, calibration_id)
    return _measure(gathered, memory_budget)


@dataclass(frozen=True, slots=True, eq=False)
class _Gathered:
    """What a report is computed from; the documents are those of vp and of recent traffic."""

    classifier: Classifier
    calibration: Calibration
    origin: SnapshotOrigin
    mc: SnapshotPoints
    vp: SnapshotPoints
    held_out: Discrepancies
    scored: Discrepancies
    decided: DecidedPoints
    vp_documents: Documents | None
    decided_documents: Documents | None
    inventory: Inventory
    changes: SnapshotChanges


def _gather(connection: Connection, name: str, calibration_id: int | None) -> _Gathered:
    classifier = classifiers.by_name(connection, name)
    calibration = calibrations.latest_or_by_id(connection, classifier, calibration_id)
    if calibration.band_radius is None:
        raise InvalidInputError(
            f"calibration {calibration.id} is by the method {calibration.method}, of which this report says nothing"
        )
    vp = calibrations.read_points(connection, calibration, Split.VP)
    held_out, scored = reports.discrepancies(connection, calibration)
    decided = reports.recent_points(connection, classifier, calibration)
    return _Gathered(
        classifier=classifier,
        calibration=calibration,
        origin=reports.snapshot_origin(connection, calibration),
        mc=calibrations.read_points(connection, calibration, Split.MC),
        vp=vp,
        held_out=held_out,
        scored=scored,
        decided=decided,
        vp_documents=_documents(connection, vp.exemplar_ids),
        decided_documents=_documents(connection, decided.exemplar_ids),
        inventory=reports.inventory(connection, classifier),
        changes=reports.snapshot_changes(connection, calibration),
    )


def _documents(connection: Connection, exemplar_ids: IntArray) -> Documents | None:
    return documents_of(exemplars.keys(connection, exemplar_ids).document_keys)


def _measure(gathered: _Gathered, memory_budget: int) -> CalibrationReport:
    classifier, calibration, decided = gathered.classifier, gathered.calibration, gathered.decided
    partitions = calibration_partitions(
        gathered.mc.points,
        gathered.vp.points,
        gathered.vp.singleton,
        class_count=classifier.class_count,
        settings=calibration.settings,
        omega=calibration.radius.omega,
    )
    index = _index(gathered, partitions)
    redecided = redecide(index, decided, memory_budget=memory_budget)
    return CalibrationReport(
        classifier=classifier.name,
        class_names=classifier.class_names,
        neighbour_count=classifier.neighbour_count,
        mc_share=classifier.mc_share,
        snapshot=_facts(calibration, gathered.origin),
        inventory=gathered.inventory,
        changes=gathered.changes,
        partitions=partitions,
        admitted_of_vp=int(index.vp_admitted.sum()),
        other_settings=_other_settings(gathered, partitions),
        agreement=Agreement(_at_fit(gathered.origin, gathered.held_out), gathered.held_out, gathered.scored),
        traffic=traffic(index, decided, gathered.decided_documents, redecided) if len(decided.exemplar_ids) else None,
        seen_count=decided.seen_count,
        budget=_budget(classifier, calibration, decided, redecided),
    )


def _index(gathered: _Gathered, partitions: CalibrationPartitions) -> SnapshotIndex:
    calibration, vp, class_count = gathered.calibration, gathered.vp, gathered.classifier.class_count
    settings, omega = calibration.settings, calibration.radius.omega
    venn = VennIndex(vp.points, vp.singleton, class_count=class_count, settings=settings, omega=omega)
    return SnapshotIndex(
        calibration_id=calibration.id,
        settings=settings,
        neighbour_count=gathered.classifier.neighbour_count,
        vp=vp.points,
        vp_usable=int(partitions.usable.sum()),
        vp_admitted=admitted_of_vp(venn, vp.points, vp.singleton, settings),
        vp_documents=gathered.vp_documents,
        admit=AdmitIndex(gathered.mc.points, class_count=class_count, settings=settings, omega=omega),
        venn=venn,
    )


def _other_settings(gathered: _Gathered, partitions: CalibrationPartitions) -> UsableShares | None:
    """Return what other settings would leave usable, if these leave nearly nothing of vp."""
    calibration, classifier = gathered.calibration, gathered.classifier
    if int(partitions.usable.sum()) >= NEARLY_NOTHING * calibration.vp_count:
        return None
    return usable_shares(
        gathered.mc.points,
        calibration.settings,
        class_count=classifier.class_count,
        neighbour_count=classifier.neighbour_count,
        omega=calibration.radius.omega,
    )


def _facts(calibration: Calibration, origin: SnapshotOrigin) -> SnapshotFacts:
    return SnapshotFacts(
        id=calibration.id,
        created_at=origin.created_at,
        reason=origin.reason,
        is_current=origin.is_current,
        parameters_are_current=origin.parameters_are_current,
        settings=calibration.settings,
        radius=calibration.radius,
        mc_count=calibration.mc_count,
        vp_count=calibration.vp_count,
    )


def _at_fit(origin: SnapshotOrigin, held_out: Discrepancies) -> Discrepancies | None:
    """Return those of the dev half; its documents get the design effect of the other held-out documents."""
    if origin.dev_count is None or origin.dev_discrepancies is None:
        return None
    return Discrepancies(origin.dev_discrepancies, origin.dev_count, held_out.design_effect)


def _budget(
    classifier: Classifier, calibration: Calibration, decided: DecidedPoints, redecided: Decisions | None
) -> LabelBudget | None:
    """Return the budget of comparable points whose band is below kappa in the snapshot."""
    if redecided is None or not redecided.sets.starved.any():
        return None
    starved = redecided.sets.starved
    match_count = decided.approximation.match_count[decided.comparable]
    return label_budget(
        redecided.sets.band_size[starved],
        bin_of(match_count[starved], calibration.settings.bin_edges),
        kappa=calibration.settings.kappa,
        label_count=calibration.mc_count / float(classifier.mc_share),
    )
