"""The state of a calibration: what is stored, drift, discrepancies, and what its method adds."""

from datetime import UTC, datetime

from sqlalchemy import Connection, Engine

from venn_admit.core.documents import documents_of
from venn_admit.core.evaluation.curves import default_match_bins
from venn_admit.core.monitoring.drift import Discrepancies
from venn_admit.core.monitoring.traffic import traffic
from venn_admit.flows.reports.monitor import read_monitor
from venn_admit.methods.describing import CalibrationToDescribe
from venn_admit.methods.registry import METHODS
from venn_admit.report.calibration.report import Agreement, CalibrationReport, SnapshotFacts
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.decisions import reports
from venn_admit.store.decisions.reports import ReportStanding, SnapshotOrigin, offered_queries
from venn_admit.store.exemplars import classifiers, exemplars, forgotten
from venn_admit.store.workspace import Workspace


def report(workspace: Workspace, name: str, *, calibration_id: int | None) -> CalibrationReport:
    """Return everything that a report shows, from one view of the data; nothing is stored.

    calibration_id: the snapshot to report on; None: the current one. Raises NotFoundError for a name or number that is
    not stored, NotReadyError before the first calibration.
    """
    with consistent_view(workspace.engine) as connection:
        classifier = classifiers.by_name(connection, name)
        calibration = calibrations.latest_or_by_id(connection, classifier, calibration_id)
        origin = reports.snapshot_origin(connection, calibration)
        agreement = None if classifier.knn is None else _agreement(connection, calibration, origin)
        decided = reports.recent_points(connection, classifier, calibration)
        documents = documents_of(exemplars.keys(connection, decided.exemplar_ids).document_keys)
        quartiles = reports.quartiles(connection, calibration)
        given = CalibrationToDescribe(classifier, calibration, decided, documents, quartiles)
        described = METHODS[calibration.method].describe(
            connection, workspace.cache, given, memory_budget=workspace.memory_budget
        )
        inventory = reports.inventory(connection, classifier)
        changes = reports.snapshot_changes(connection, calibration)
        watch = read_monitor(connection, classifier, calibration)
        history = reports.history(connection, calibration)
        days = reports.days(connection, classifier, datetime.now(UTC))
        lost = forgotten.lost_points(connection, calibration.id)
    return CalibrationReport(
        classifier=classifier.name,
        class_names=classifier.class_names,
        snapshot=_facts(calibration, origin, lost.total),
        inventory=inventory,
        changes=changes,
        agreement=agreement,
        traffic=traffic(calibration.id, decided, documents, described.comparison)
        if len(decided.exemplar_ids)
        else None,
        seen_count=decided.seen_count,
        part=described.part,
        map=described.map,
        coverage=described.coverage,
        history=history,
        days=days,
        watch=watch,
        queries=offered_queries(
            classifier.name,
            calibration=calibration.id,
            setting=calibration.calibrator_id,
            split=described.part.reference,
            match_edges=given.map_rows,
            part_edges=() if classifier.knn is None else default_match_bins(classifier.neighbour_count),
        ),
    )


def report_standing(engine: Engine, name: str, calibration_id: int | None) -> ReportStanding:
    """Return what tells whether `report` would say something else now than it said before; errors are the same."""
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        return reports.standing(connection, calibrations.latest_or_by_id(connection, classifier, calibration_id))


def _facts(calibration: Calibration, origin: SnapshotOrigin, lost: int) -> SnapshotFacts:
    return SnapshotFacts(
        id=calibration.id,
        created_at=origin.created_at,
        reason=origin.reason,
        is_current=origin.is_current,
        parameters_are_current=origin.parameters_are_current,
        method=calibration.method,
        alpha=calibration.method_settings.alpha,
        mc_count=calibration.mc_count,
        vp_count=calibration.vp_count,
        forgotten=lost,
    )


def _agreement(connection: Connection, calibration: Calibration, origin: SnapshotOrigin) -> Agreement:
    held_out, scored = reports.discrepancies(connection, calibration)
    return Agreement(_at_fit(origin, held_out), held_out, scored)


def _at_fit(origin: SnapshotOrigin, held_out: Discrepancies) -> Discrepancies | None:
    """Return those of the dev half; its documents get the design effect of the other held-out documents."""
    if origin.dev_count is None or origin.dev_discrepancies is None:
        return None
    return Discrepancies(origin.dev_discrepancies, origin.dev_count, held_out.design_effect)
