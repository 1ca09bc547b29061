"""The labels of reviewers: recorded in the ledger as any others, kept by reviewer, and compared."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from sqlalchemy import Connection, Engine

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.errors import InvalidInputError
from venn_admit.files.label_sources import LabelTable
from venn_admit.files.labels import LabelRows
from venn_admit.flows.data.label import label
from venn_admit.flows.reviews.claims import MOST_DISAGREEMENTS, check_ids, check_reviewer
from venn_admit.layer.contributions import without_prediction
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.reviews import reviews
from venn_admit_client.records.data import Labelling
from venn_admit_client.records.reviews import Disagreement, GivenLabel, Reviewed, ReviewedPoint

# The ledger makes a review of a point that was not drawn to be audited `selected`.
_DRAWN, _NOT_YET = "review", "selected"


def give(
    engine: Engine,
    name: str,
    reviewer: str,
    labels: Mapping[str, str | int],
    *,
    resolves: bool = False,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    on_stored: Callable[[Connection, Reviewed], object] = lambda *_: None,
) -> Reviewed:
    """Record the labels of a reviewer: all of them, or none if one is refused. Their claims end.

    A label of a point that another reviewer has labelled is kept beside that, and is the one that counts. If they
    differ, reviewers disagree about the point until one of them agrees with the other, or a label resolves it.

    The label of a point that was drawn to be audited counts for that. A document counts once, so the labels of its
    drawn points count when the last of them comes; until then they are kept as selected.

    Args:
        labels: Class names or numbers, by the ids of points.
        resolves: Whether these labels end disagreements about their points.

    Raises:
        InvalidInputError: The name of the reviewer is invalid, there is no label, an id is none, or a label is of no
            class.
        NotFoundError: An id is stored for no generation of the classifier.
    """
    check_reviewer(reviewer)
    check_ids(labels)
    columns = {"external_id": pa.array(list(labels), pa.string()), "label": _column(list(labels.values()))}
    found: list[Reviewed] = []

    def keep(connection: Connection, done: Labelling) -> None:
        classifier = classifiers.by_name(connection, name)
        reviews.add_labels(connection, classifier, reviewer, list(labels), resolves=resolves)
        found.append(_reviewed(connection, classifier, reviewer, list(labels), done))
        on_stored(connection, found[0])

    source = LabelTable(f"reviewer {reviewer}", pa.table(columns), memory_budget)
    label(engine, name, source, selection=_DRAWN, retract=False, completed=_with_documents, on_stored=keep)
    return found[0]


def _column(given: Sequence[str | int]) -> pa.Array:
    """Labels as numbers if all are, since a text of digits may be the name of another class; else as texts."""
    if given and all(type(one) is int and one in range(2**31) for one in given):
        return pa.array(given, pa.int64())
    try:
        return pa.array(list(map(str, given)), pa.string())
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"labels: expected text that UTF-8 can encode, got {error.object[:80]!a}") from error


def _with_documents(connection: Connection, classifier: Classifier, rows: LabelRows) -> LabelRows:
    """Labels with those of the other drawn points of their documents, where these count by now; else as selected."""
    labels = dict(zip(rows.external_ids, rows.labels.tolist(), strict=True))
    selections = dict.fromkeys(labels, _DRAWN)
    for drawn in reviews.drawn_of_documents(connection, classifier, rows.external_ids):
        others = [one for one in drawn if one.external_id not in selections]
        if any(one.label is None for one in others):
            selections |= {one.external_id: _NOT_YET for one in drawn if one not in others}
        else:
            labels |= {one.external_id: one.label for one in others if not one.is_reviewed}
    reviews.lock_points(connection, classifier, list(labels))
    return replace(
        rows,
        external_ids=list(labels),
        labels=np.array(list(labels.values()), dtype=np.int64),
        selections=[selections.get(one, _DRAWN) for one in labels],
    )


def _reviewed(
    connection: Connection, classifier: Classifier, reviewer: str, external_ids: list[str], done: Labelling
) -> Reviewed:
    return Reviewed(
        reviewer=reviewer,
        rows=len(external_ids),
        new=done.new,
        corrected=done.corrected,
        unchanged=done.unchanged,
        points=_points(connection, classifier, reviewer, external_ids),
        recalibrations_due=done.recalibrations_due,
    )


def _points(
    connection: Connection, classifier: Classifier, reviewer: str, external_ids: list[str]
) -> tuple[ReviewedPoint, ...]:
    names = classifier.class_names
    rows = reviews.labelled(connection, classifier, reviewer, external_ids)
    disputed = {
        (generation, external_id)
        for generation in {row.classifier_id for row in rows}
        for external_id in reviews.disagreements(connection, generation, external_ids, limit=len(external_ids))
    }
    return tuple(
        ReviewedPoint(
            id=row.external_id,
            label=names[row.label],
            network=names[row.network_predicted],
            predicted=None if row.predicted is None else names[row.predicted],
            decision=row.decision_id,
            disagrees=(row.classifier_id, row.external_id) in disputed,
        )
        for row in rows
    )


def outcome(engine: Engine, name: str, reviewer: str, external_id: str) -> ReviewedPoint | None:
    """Return what was predicted of a point that the reviewer has labelled; None for any other."""
    with consistent_view(engine) as connection:
        found = _points(connection, classifiers.by_name(connection, name), reviewer, [external_id])
    return found[0] if found else None


def disagreements(engine: Engine, name: str, *, limit: int = MOST_DISAGREEMENTS) -> list[Disagreement]:
    """Return the points about which reviewers disagree, the one that was labelled last first."""
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        names = classifier.class_names
        found = reviews.disagreements(connection, classifier.id, limit=limit)
    return [
        Disagreement(
            id=external_id,
            label=names[rows[0].counting],
            labels=tuple(GivenLabel(row.reviewer, names[row.label], row.created_at) for row in rows),
            attributes=without_prediction(rows[0].attributes),
        )
        for external_id, rows in found.items()
    ]
