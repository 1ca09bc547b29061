"""What the open points of a calibrator were computed from, and which points arrived or changed since.

A ledger has each change with the number of its transaction. A view of the data says which transactions it saw, so what
it did not see is told exactly, in whatever order transactions end.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
from sqlalchemy import Connection, Row

from venn_admit.core.types import IntArray
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.engine import database_identity
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars.classifiers import Classifier

_MOST_NAMED = 1000


class Changed(NamedTuple):
    """Held-out exemplars that arrived or changed since the view of the open points, int64, ascending.

    Some of them may be gone, or be as they were. exemplar_ids: None if it may be any: there is no such view, it is of
    other parameters or of the server that the database was copied from, or a single statement changed many. revision:
    of the snapshot that the open points are of; None if it was deleted, or it may be any exemplar.
    """

    exemplar_ids: IntArray | None
    revision: UUID | None


@dataclass(frozen=True, slots=True)
class View:
    """A view of the data. seen: as `pg_current_snapshot` says it. last_exemplar_id: of the held-out exemplars."""

    seen: str
    last_exemplar_id: int


def keep(guard: Connection, classifier: Classifier) -> None:
    """Keep the ledger from being emptied before the transaction ends; called before a snapshot takes its view."""
    execute(guard, "point_changes.share", classifier_id=classifier.id)


def current_view(connection: Connection, classifier: Classifier) -> View:
    """Return what a transaction sees; asked before it reads any points."""
    row = execute(connection, "point_changes.current_view", classifier_id=classifier.id).one()
    return View(row.seen, row.last_exemplar_id)


def changed_points(
    connection: Connection, classifier: Classifier, calibrator_id: int, knn_parameters_id: int
) -> Changed:
    """Return which held-out exemplars arrived or changed since the view of the open points."""
    view = _view_of_open_points(connection, calibrator_id, knn_parameters_id)
    ids = None if view is None else _changed_since(connection, classifier, view)
    return Changed(ids, None if view is None or ids is None else view.revision)


def is_as_it_was(connection: Connection, classifier: Classifier, calibration: Calibration) -> bool:
    """Whether it is certain, without a look at the points, that another snapshot would be of the same ones.

    It is not if this is not the newest snapshot, or if there is no view of its points.
    """
    if calibration.knn_parameters_id is None:
        return False
    view = _view_of_open_points(connection, calibration.calibrator_id, calibration.knn_parameters_id)
    if view is None or view.number != calibration.number:
        return False
    changed = _changed_since(connection, classifier, view)
    return changed is not None and not len(changed)


def add_view(
    connection: Connection,
    classifier: Classifier,
    calibrator_id: int,
    knn_parameters_id: int,
    view: View,
    left_out: IntArray,
) -> None:
    """Store from which view the open points were computed; left_out: held-out exemplars without an approximation."""
    execute(
        connection,
        "point_changes.add_view",
        calibrator_id=calibrator_id,
        knn_parameters_id=knn_parameters_id,
        seen=view.seen,
        identity=database_identity(connection),
        last_exemplar_id=view.last_exemplar_id,
    )
    if len(left_out):
        ids: list[int | None] = [None] if len(left_out) > _MOST_NAMED else list(left_out.tolist())
        execute(connection, "point_changes.add_changes", classifier_id=classifier.id, exemplar_ids=ids)


def _view_of_open_points(connection: Connection, calibrator_id: int, knn_parameters_id: int) -> Row[Any] | None:
    parameters = {
        "calibrator_id": calibrator_id,
        "knn_parameters_id": knn_parameters_id,
        "identity": database_identity(connection),
    }
    return execute(connection, "point_changes.view_of_open_points", **parameters).one_or_none()


def _changed_since(connection: Connection, classifier: Classifier, view: Row[Any]) -> IntArray | None:
    of_view = {"seen": view.seen, "last_exemplar_id": view.last_exemplar_id}
    found = execute(connection, "point_changes.changed_since", classifier_id=classifier.id, **of_view)
    ids = found.scalars().all()
    return None if None in ids else np.sort(np.array(ids, dtype=np.int64))


def forget_seen(guard: Connection, classifier: Classifier) -> None:
    """Delete what every view of a classifier saw, unless another snapshot of it is under way.

    guard: a transaction that sees what is committed, and has called `keep`.
    """
    of_classifier = {"classifier_id": classifier.id}
    if execute(guard, "point_changes.own", **of_classifier).scalar_one():
        execute(guard, "point_changes.forget_seen", **of_classifier)
