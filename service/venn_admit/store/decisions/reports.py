"""The data that a report on a calibration reads besides its points: counts, origins, and decisions made with it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
from sqlalchemy import Connection, Row

from venn_admit.core.monitoring.drift import DecidedPoints, Discrepancies, discrepancies_of_documents
from venn_admit.core.monitoring.history import (
    COUNTED_LABELS,
    Day,
    Inventory,
    LabelSelection,
    PointChanges,
    SnapshotChange,
)
from venn_admit.core.monitoring.traffic import RECENT
from venn_admit.core.probabilities import sum_tolerance
from venn_admit.core.reasons import Reason
from venn_admit.core.split_names import Split
from venn_admit.core.types import FloatArray, IntArray
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.binary_copy import BOOL, INT4, INT8, FixedColumn, read_columns
from venn_admit.store.database.statements import execute, filled, statement_names, stream
from venn_admit.store.exemplars import labels, support
from venn_admit.store.exemplars.approximations import view_columns, view_of_decisions
from venn_admit.store.exemplars.classifiers import Classifier

HISTORY = 6
"""The number of calibrations that a report looks back on."""
COUNTABLE = 50_000
"""With more calibration points than these, what an older snapshot would admit of them is left out: it takes seconds."""
DAYS = 30
"""The number of days that a report looks back on."""
SAMPLED = 400
"""About this many decisions of each day are looked up: their share is accurate to a twentieth."""


@dataclass(frozen=True, slots=True)
class SnapshotOrigin:
    """When and why a snapshot was made, and its KNN parameters.

    state: current, retired, or withheld if it was never put in use. dev_count, dev_discrepancies: of the fit; None if
    the parameters were given. parameters_are_current: whether new work uses the same parameters; None if the classifier
    has logits only, and so none.
    """

    created_at: datetime
    reason: str
    state: str
    dev_count: int | None
    dev_discrepancies: int | None
    parameters_are_current: bool | None


@dataclass(frozen=True, slots=True)
class ReportStanding:
    """What tells whether a report on a snapshot would be another one now: equal if only traffic may have come since.

    calibration, revision, state: of the snapshot, which has another revision once points of it are forgotten. in_use:
    the snapshot that new decisions are made by. newest_calibration: of the classifier. newest_retirement: of its
    settings. knn_parameters: those in use. support_version: of the training exemplars. label_event: the newest.
    monitor, seen_event, alarm: the newest monitor of the setting, the label it has come to, and the newest alarm of
    all. newest_request: the newest job that scores, which comes with traffic and makes no difference here. Each is None
    if there is none.
    """

    calibration: int
    revision: UUID
    state: str
    in_use: int | None
    newest_calibration: int
    newest_retirement: datetime | None
    knn_parameters: int | None
    support_version: int
    label_event: int | None
    monitor: int | None
    seen_event: int | None
    alarm: int | None
    newest_request: int | None = field(compare=False)


def standing(connection: Connection, calibration: Calibration) -> ReportStanding:
    """Return what tells whether a report on a snapshot would be another one now."""
    row = execute(connection, "reports.standing", calibration_id=calibration.id).one()
    return ReportStanding(**row._mapping)


def inventory(connection: Connection, classifier: Classifier) -> Inventory:
    """Return the number of exemplars and labels as they are stored now."""
    counts = execute(connection, "exemplars.split_counts", classifier_ids=[classifier.id]).all()
    selections = execute(connection, "reports.label_selections", classifier_id=classifier.id).all()
    copies = execute(
        connection, "reports.copies", classifier_id=classifier.id, has_vectors=classifier.knn is not None
    ).one()
    unlikely = execute(
        connection,
        "reports.unlikely_logits",
        classifier_id=classifier.id,
        tolerance=sum_tolerance(len(classifier.class_names)),
    ).scalar_one()
    none = dict.fromkeys(Split, 0)
    return Inventory(
        exemplars=none | {Split(row.split): row.exemplars for row in counts},
        labelled=none | {Split(row.split): row.labelled for row in counts},
        selections=tuple(LabelSelection(**row._mapping) for row in selections),
        training_waiting=support.waiting(connection, classifier),
        copies=copies.copies,
        copies_apart=copies.copies_apart,
        training_copies=copies.training_copies,
        unlikely_logits=unlikely,
    )


def snapshot_origin(connection: Connection, calibration: Calibration) -> SnapshotOrigin:
    row = execute(connection, "reports.snapshot_origin", calibration_id=calibration.id).one()
    return SnapshotOrigin(**row._mapping)


def quartiles(connection: Connection, calibration: Calibration) -> FloatArray | None:
    """Return the quartiles of d over all points of a snapshot, (3,); None if the classifier has logits only."""
    found = execute(connection, "reports.snapshot_quartiles", calibration_id=calibration.id).scalar_one()
    return None if found is None else np.array(found, dtype=np.float64)


def snapshot_changes(connection: Connection, calibration: Calibration) -> PointChanges:
    """Return the changes that another snapshot would include now."""
    parameters = {
        "classifier_id": calibration.classifier_id,
        "calibrator_id": calibration.calibrator_id,
        "number": calibration.number,
        "splits": [Split.MC, Split.VP] if calibration.vp_count else [Split.MC],
        "undivided": calibration.method_settings.undivided,
    }
    row = execute(connection, "reports.snapshot_changes", **parameters).one()
    return PointChanges(arrived=row.arrived, changed=row.changed, left=row.gone)


def days(connection: Connection, classifier: Classifier, until: datetime) -> tuple[Day, ...]:
    """Return the `DAYS` days up to that of a time, the oldest first; none if nothing happened."""
    last = until.astimezone(UTC).date()
    first = last - timedelta(days=DAYS - 1)
    parameters = {"classifier_id": classifier.id, "since": datetime(first.year, first.month, first.day, tzinfo=UTC)}
    found: dict[date, Day] = {
        first + timedelta(days=number): Day(first + timedelta(days=number)) for number in range(DAYS)
    }
    decisions = execute(connection, "reports.daily_decisions", **parameters, sampled=SAMPLED).all()
    labels = execute(connection, "reports.daily_labels", **parameters, most=COUNTED_LABELS).all()
    for row in (*decisions, *labels):
        if row.day in found:
            found[row.day] = replace(found[row.day], **row._mapping)
    return tuple(found.values()) if decisions or labels else ()


def history(connection: Connection, calibration: Calibration) -> tuple[SnapshotChange, ...]:
    """Return what the newest snapshots of the classifier changed, up to this one, the newest first."""
    parameters = {
        "classifier_id": calibration.classifier_id,
        "calibration_id": calibration.id,
        "most": HISTORY,
        "countable": COUNTABLE,
    }
    return tuple(
        SnapshotChange(
            calibration=row.calibration,
            created_at=row.created_at.astimezone(UTC),
            reason=row.reason,
            method=row.method,
            state=row.state,
            mc_count=row.mc_count,
            vp_count=row.vp_count,
            previous=row.previous,
            points=None
            if row.previous is None
            else PointChanges(
                arrived=row.arrived,
                changed=row.relabelled,
                left=row.gone,
                forgotten=row.forgotten,
                moved=row.moved,
            ),
            other_parameters=row.other_parameters,
            other_training=row.other_training,
            other_settings=tuple(row.other_settings),
            admitted=row.admitted,
        )
        for row in execute(connection, "reports.history", **parameters)
    )


def discrepancies(connection: Connection, calibration: Calibration) -> tuple[Discrepancies, Discrepancies]:
    """Return discrepancies under the snapshot's parameters: on mc and vp as they are now, and on scored exemplars."""
    parameters = {"classifier_id": calibration.classifier_id, "knn_parameters_id": calibration.knn_parameters_id}
    rows = execute(connection, "reports.discrepancies", **parameters).all()

    def of(is_scored: bool) -> Discrepancies:
        counted = [(row.points, row.differing, row.documents) for row in rows if row.is_scored == is_scored]
        points, differing, documents = np.array(counted, dtype=np.int64).reshape(-1, 3).T
        return discrepancies_of_documents(points, differing, documents)

    return of(is_scored=False), of(is_scored=True)


def recent_points(
    connection: Connection, classifier: Classifier, knn_parameters_id: int | None, calibration: Calibration | None
) -> DecidedPoints:
    """Return the newest decision on each of at most `RECENT` exemplars of the newest requests, in order of ingestion.

    Any snapshot may have made it. Comparable are the decisions by `calibration`, if one is given, or by a snapshot with
    these KNN parameters since the training exemplars last changed. Without vectors, the KNN's logits and d are NaN, and
    its prediction and q are -1.
    """
    columns: dict[str, FixedColumn] = {
        "exemplar_id": INT8,
        "calibration_id": INT8,
        "weighted": BOOL,
        "require_full_match": BOOL,
        **view_columns(classifier),
        "reason": INT4,
        "label": INT4,
        "is_random": BOOL,
        "is_comparable": BOOL,
        "is_seen": BOOL,
    }
    parameters = {
        "classifier_id": classifier.id,
        "calibration_id": None if calibration is None else calibration.id,
        "knn_parameters_id": knn_parameters_id,
        "support_version": classifier.support_version,
        "class_count": classifier.class_count,
        "row_limit": RECENT,
        "reasons": list(Reason),
        "codes": [reason.code for reason in Reason],
    }
    rows = read_columns(connection, "reports.recent_rows", columns, **parameters)
    seen = rows["is_seen"]
    new = {name: values[~seen] for name, values in rows.items()}
    view = view_of_decisions(new)
    return DecidedPoints(
        exemplar_ids=new["exemplar_id"],
        calibration_ids=new["calibration_id"],
        weighted=new["weighted"],
        require_full_match=new["require_full_match"],
        predicted=new["predicted"],
        approximation=view if classifier.knn else replace(view, predicted=np.full(len(view.predicted), -1)),
        reason=new["reason"],
        comparable=new["is_comparable"],
        label=new["label"],
        is_random=new["is_random"],
        seen_count=int(seen.sum()),
    )


def unlabelled_rows(
    connection: Connection, classifier: Classifier, calibration: Calibration
) -> Iterator[Sequence[Row[Any]]]:
    """Yield recent traffic that neither calibrates nor trains, in random order, with labels by name, in blocks.

    It is that of which nothing joined the training exemplars; see `without_gaps`.
    """
    recent = recent_points(connection, classifier, calibration.knn_parameters_id, calibration)
    exemplar_ids = without_gaps(connection, classifier, recent.exemplar_ids)
    return stream(connection, "reports.unlabelled_rows", {"exemplar_ids": exemplar_ids})


def without_gaps(connection: Connection, classifier: Classifier, exemplar_ids: IntArray) -> IntArray:
    """Return those of some points that came after all of their kind that joined the training exemplars, int64.

    What joins was mostly chosen, so that the points among which it is missing are no random sample.
    """
    if not exemplar_ids.size:
        return exemplar_ids
    joined = labels.labelled_later(connection, classifier, [Split.TRAIN], first_id=int(exemplar_ids.min()))
    return exemplar_ids[exemplar_ids > max((row.id for row in joined), default=0)]


def work_rows(connection: Connection, exemplar_ids: IntArray, *, with_labelled: bool, limit: int) -> Sequence[Row[Any]]:
    """Return those of some exemplars that neither calibrate nor train, in random order, each with how many there are.

    with_labelled: whether those that have a label are wanted too.
    """
    parameters = {"exemplar_ids": exemplar_ids, "with_labelled": with_labelled, "row_limit": limit}
    return execute(connection, "reports.work_rows", **parameters).all()


def table_queries(
    classifier: str, calibration: int, setting: int, split: str, match_edges: Sequence[int], part_edges: Sequence[int]
) -> dict[str, str]:
    """Return the SQL of each query behind a table of a report by its name, with its parameters written out.

    Args:
        split: The split that the calibration is described by.
        match_edges: Lower edges of the groups of q of the partition map; empty without vectors.
        part_edges: The edges of the tables of traffic by q.
    """
    values: dict[str, int | str | Sequence[int]] = {
        "classifier": classifier,
        "calibration": calibration,
        "setting": setting,
        "split": split,
        "match_edges": match_edges,
        "part_edges": part_edges,
    }
    return {name: filled(f"table_queries.{name}", values) for name in statement_names("table_queries")}
