"""The labelled decisions that monitors count, and from where on what they counted may be otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row

from venn_admit.core.monitoring.anytime.documents import LabelledPoints
from venn_admit.core.types import IntArray
from venn_admit.store.database.statements import execute
from venn_admit.store.decisions.monitored import groups, labelled
from venn_admit.store.decisions.monitors import StoredMonitor
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True, eq=False)
class CountedLabels:
    """The labelled points that count.

    events: (documents,) int64, the first label event of each document that counts. places: (documents,) int64, what the
    documents are ordered by: these events or, if there is a label deadline, their first decisions.
    """

    points: LabelledPoints
    events: IntArray
    places: IntArray


def first_change(connection: Connection, classifier: Classifier, monitor: StoredMonitor) -> int | None:
    """Return the place before which everything counts as it did when labels were settled; None if all does."""
    place: int | None = execute(
        connection,
        "monitors.first_change",
        classifier_id=classifier.id,
        settled_event=monitor.settled_event,
        after_event=monitor.after_event,
        by_decision=monitor.deadline is not None,
        **monitor.of_calibrator,
    ).scalar_one()
    return place


def counted_labels(
    connection: Connection, classifier: Classifier, monitor: StoredMonitor, *, from_place: int
) -> CountedLabels:
    """Return the labelled points that a monitor counts, in the order in which their documents do.

    from_place: only documents of later places are returned; at least that before the first document.
    """
    of_monitor = {**monitor.of_calibrator, "after_event": monitor.after_event}
    if monitor.deadline is None:
        of_documents = {
            **of_monitor,
            "classifier_id": classifier.id,
            "after_decision": monitor.after_decision,
            "from_event": from_place,
        }
        found = execute(connection, "monitors.labelled_decisions", **of_documents)
        rows = [row for row in found if row.came_together]
    else:
        until = {"passed_decision": monitor.deadline.passed, "label_deadline": monitor.deadline.time}
        rows = list(
            execute(connection, "deadlines.labelled_decisions", **of_monitor, **until, from_decision=from_place)
        )
    places, first, document = np.unique(
        np.array([row.place for row in rows], dtype=np.int64), return_index=True, return_inverse=True
    )
    events = np.array([row.event_id for row in rows], dtype=np.int64)[first]
    known = {} if monitor.plan.groups is None else monitor.plan.groups.values
    of_points, admitted = groups(connection, rows, list(known)), [row.is_admitted for row in rows]
    beside = _beside(connection, monitor, rows) if monitor.plan.compares_sample else {}
    points = labelled(classifier, rows, document.tolist(), admitted, of_points, known, beside)
    return CountedLabels(points, events, places)


def _beside(connection: Connection, monitor: StoredMonitor, rows: Sequence[Row[Any]]) -> dict[int, tuple[int, int]]:
    """Return of the labelled points that are compared with another its predicted class, and whether they are surer."""
    alone = [row for row in rows if row.document_id is None]
    found = execute(
        connection,
        "monitors.points_beside",
        **monitor.of_calibrator,
        exemplar_ids=[row.exemplar_id for row in alone],
        event_ids=[row.event_id for row in alone],
    )
    return {row.exemplar_id: (row.predicted_beside, row.surer) for row in found}
