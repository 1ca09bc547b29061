"""How a calibration stands: what is stored, its partitions, drift, discrepancies, and the labels it lacks."""

from sqlalchemy import Connection, Engine

from service.core.bands import bin_of
from service.core.calibration_partitions import calibration_partitions
from service.core.discrepancies import Discrepancies
from service.core.documents import Documents, documents_of
from service.core.drift import DecidedPoints, Drift, drift
from service.core.label_budget import LabelBudget, label_budget
from service.core.types import IntArray, Split
from service.report.calibration import Agreement, CalibrationReport, SnapshotFacts
from service.store import calibrations, classifiers, exemplars, reports
from service.store.calibrations import Calibration, SnapshotPoints
from service.store.classifiers import Classifier
from service.store.engine import connect
from service.store.reports import SnapshotOrigin


def report(engine: Engine, name: str, *, calibration_id: int | None) -> CalibrationReport:
    """Everything a report shows, from one view of the data; nothing is written.

    calibration_id: the snapshot to report on; None: the current one. Raises NotFoundError for a name or number that
    is not stored, NotReadyError before the first calibration.
    """
    with connect(engine) as connection:
        connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            return _report(connection, name, calibration_id)


def _report(connection: Connection, name: str, calibration_id: int | None) -> CalibrationReport:
    classifier = classifiers.by_name(connection, name)
    calibration = calibrations.latest_or_by_id(connection, classifier, calibration_id)
    origin = reports.snapshot_origin(connection, calibration)
    mc = calibrations.read_points(connection, calibration, Split.MC)
    vp = calibrations.read_points(connection, calibration, Split.VP)
    held_out, scored = reports.discrepancies(connection, calibration)
    decided = reports.decided_points(connection, classifier, calibration)
    return CalibrationReport(
        classifier=classifier.name,
        class_names=classifier.class_names,
        neighbour_count=classifier.neighbour_count,
        mc_share=classifier.mc_share,
        snapshot=_facts(calibration, origin),
        inventory=reports.inventory(connection, classifier),
        changes=reports.snapshot_changes(connection, calibration),
        partitions=calibration_partitions(
            mc.points,
            vp.points,
            vp.singleton,
            class_count=classifier.class_count,
            settings=calibration.settings,
            omega=calibration.radius.omega,
        ),
        agreement=Agreement(_at_fit(origin, held_out), held_out, scored),
        drift=_drift(connection, vp, decided),
        seen_count=decided.seen_count,
        budget=_budget(classifier, calibration, decided),
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
    """Those of the dev half; the design effect of its documents is that of those held out beside it."""
    if origin.dev_count is None or origin.dev_discrepancies is None:
        return None
    return Discrepancies(origin.dev_discrepancies, origin.dev_count, held_out.design_effect)


def _drift(connection: Connection, vp: SnapshotPoints, decided: DecidedPoints) -> Drift | None:
    if not len(decided.exemplar_ids):
        return None
    decided_ids = decided.exemplar_ids[decided.first_rows]
    return drift(vp.points, decided, _documents(connection, vp.exemplar_ids), _documents(connection, decided_ids))


def _documents(connection: Connection, exemplar_ids: IntArray) -> Documents | None:
    return documents_of(exemplars.keys(connection, exemplar_ids).document_keys)


def _budget(classifier: Classifier, calibration: Calibration, decided: DecidedPoints) -> LabelBudget | None:
    starved = decided.starved_rows
    if not len(starved):
        return None
    return label_budget(
        decided.band_size[starved],
        bin_of(decided.match_count[starved], calibration.settings.bin_edges),
        kappa=calibration.settings.kappa,
        label_count=calibration.mc_count / float(classifier.mc_share),
    )
