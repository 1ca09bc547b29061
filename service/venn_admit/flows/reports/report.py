"""The state of a calibration: what is stored, drift, discrepancies, and what its method adds."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine, Row

from venn_admit.core.calibrators.certified.certificate import LaterChain
from venn_admit.core.documents import documents_of
from venn_admit.core.evaluation.curves import default_match_bins
from venn_admit.core.monitoring.drift import Discrepancies
from venn_admit.core.monitoring.partitions import map_rows
from venn_admit.core.monitoring.traffic import traffic
from venn_admit.errors import NotFoundError
from venn_admit.flows.reports.monitor import read_monitor
from venn_admit.methods.describing import CalibrationToDescribe
from venn_admit.methods.registry import METHODS
from venn_admit.report.calibration.report import Agreement, CalibrationReport, SnapshotFacts
from venn_admit.store.calibrations import calibrations, calibrators, chains, listing
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.decisions import cells, reports
from venn_admit.store.decisions.reports import ReportStanding, SnapshotOrigin, table_queries
from venn_admit.store.exemplars import classifiers, exemplars, forgotten
from venn_admit.store.workspace import Workspace
from venn_admit_client.records.calibrations import Withheld
from venn_admit_client.records.certificates import CertificateLook

SHOWN_POINTS = 100
QUARTILES = 4


def report(workspace: Workspace, name: str, *, calibration_id: int | None) -> CalibrationReport:
    """Return everything that a report shows, from one view of the data; nothing is stored.

    calibration_id: the snapshot to report on; None: the one in use. Raises NotFoundError for a name or number that is
    not stored, NotReadyError before the first calibration.
    """
    with consistent_view(workspace.engine) as connection:
        classifier = classifiers.by_name(connection, name)
        calibration = calibrations.latest_or_by_id(connection, classifier, calibration_id)
        origin = reports.snapshot_origin(connection, calibration)
        agreement = None if classifier.knn is None else _agreement(connection, calibration, origin)
        decided = reports.recent_points(connection, classifier, calibration.knn_parameters_id, calibration)
        documents = documents_of(exemplars.keys(connection, decided.exemplar_ids).document_keys)
        quartiles = reports.quartiles(connection, calibration)
        given = CalibrationToDescribe(classifier, calibration, decided, documents, quartiles)
        described = METHODS[calibration.method].describe(workspace, connection, given)
        inventory = reports.inventory(connection, classifier)
        chain = chains.of_calibration(connection, calibration) if calibration.method_settings.standing else None
        has_ended = None if chain is None else chains.has_ended(connection, classifier, chain)
        later = None if chain is None else chains.later(connection, classifier, chain)
        changes = (
            reports.snapshot_changes(connection, calibration)
            if chain is None or has_ended is None
            else chains.pending(connection, classifier, chain, has_ended=has_ended)
        )
        watch = read_monitor(connection, classifier, calibration)
        history = reports.history(connection, calibration)
        days = reports.days(connection, classifier, datetime.now(UTC))
        lost = forgotten.lost_points(connection, calibration.id)
        withheld = {
            row.calibration: Withheld(row.in_use, row.points, row.share, row.share_in_use)
            for row in listing.withheld(connection, classifier)
        }
        looks = listing.looks(connection, classifier)
        settings = calibrators.of_classifier(connection, classifier)
        of_chains = None if chain is None else chains.history(connection, calibration)
    return CalibrationReport(
        classifier=classifier.name,
        class_names=classifier.class_names,
        snapshot=_facts(calibration, origin, lost.total, has_ended, later),
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
        queries=table_queries(
            classifier.name,
            calibration=calibration.id,
            setting=calibration.calibrator_id,
            split=described.part.reference,
            match_edges=given.map_rows,
            part_edges=() if classifier.knn is None else default_match_bins(classifier.neighbour_count),
        ),
        withheld=withheld,
        looks=tuple(CertificateLook(**row._mapping) for row in looks),
        current={setting.calibration_id: setting.state for setting in settings if setting.has_current},
        chains=of_chains,
    )


def report_standing(engine: Engine, name: str, calibration_id: int | None) -> ReportStanding:
    """Return what tells whether `report` would say something else now than it said before; errors are the same."""
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        return reports.standing(connection, calibrations.latest_or_by_id(connection, classifier, calibration_id))


def _facts(
    calibration: Calibration, origin: SnapshotOrigin, lost: int, has_ended: bool | None, later: LaterChain | None
) -> SnapshotFacts:
    return SnapshotFacts(
        id=calibration.id,
        created_at=origin.created_at,
        reason=origin.reason,
        state=origin.state,
        parameters_are_current=origin.parameters_are_current,
        method=calibration.method,
        alpha=calibration.method_settings.alpha,
        mc_count=calibration.mc_count,
        vp_count=calibration.vp_count,
        forgotten=lost,
        chain_has_ended=has_ended,
        later=later,
    )


def _agreement(connection: Connection, calibration: Calibration, origin: SnapshotOrigin) -> Agreement:
    held_out, scored = reports.discrepancies(connection, calibration)
    return Agreement(_at_fit(origin, held_out), held_out, scored)


def _at_fit(origin: SnapshotOrigin, held_out: Discrepancies) -> Discrepancies | None:
    """Return those of the dev half; its documents get the design effect of the other held-out documents."""
    if origin.dev_count is None or origin.dev_discrepancies is None:
        return None
    return Discrepancies(origin.dev_discrepancies, origin.dev_count, held_out.design_effect)


@dataclass(frozen=True, slots=True)
class OpenedCell:
    """A cell of the map of a calibration.

    match_counts: its values of q. distances: from which d, up to which, not included. classes: its points by split and
    true class; none on later pages of its points. points: at most `SHOWN_POINTS` of them, those that are wrong first.
    has_more: whether more follow.
    """

    calibration: int
    class_names: tuple[str, ...]
    match_counts: range
    distances: tuple[float, float]
    classes: Sequence[Row[Any]]
    points: Sequence[Row[Any]]
    has_more: bool


def open_cell(
    engine: Engine, name: str, calibration_id: int, row: int, column: int, *, after: tuple[bool, int] | None
) -> OpenedCell:
    """Return a cell.

    Args:
        row: Its group of q, from 0, as in the map.
        column: Its group of d, from 0, as in the map.
        after: Whether the last point of the page before is right, and its exemplar; None for the first page.
    """
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        calibration = calibrations.by_id(connection, classifier, calibration_id)
        quartiles = reports.quartiles(connection, calibration)
        if quartiles is None:
            raise NotFoundError(f"calibration {calibration_id} has no partition map, because there are no vectors")
        edges = (
            *map_rows(calibration.method_settings.q_bins, classifier.neighbour_count),
            classifier.neighbour_count + 1,
        )
        if not (0 <= row < len(edges) - 1 and 0 <= column < QUARTILES):
            raise NotFoundError(f"the map has {len(edges) - 1} by {QUARTILES} cells, and none at {row}, {column}")
        match_counts = range(edges[row], edges[row + 1])
        bounds = (0.0, *quartiles.tolist(), float("inf"))
        points = cells.points(connection, calibration, match_counts, column, after=after, limit=SHOWN_POINTS + 1)
        return OpenedCell(
            calibration=calibration.id,
            class_names=classifier.class_names,
            match_counts=match_counts,
            distances=(bounds[column], bounds[column + 1]),
            classes=cells.classes(connection, calibration, match_counts, column) if after is None else (),
            points=points[:SHOWN_POINTS],
            has_more=len(points) > SHOWN_POINTS,
        )
