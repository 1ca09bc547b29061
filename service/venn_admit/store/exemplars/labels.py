"""Labels of stored exemplars: the current ones, and the ledger of all label events."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row

from venn_admit.core.audits import AuditRates, drawn
from venn_admit.core.split_names import Split
from venn_admit.core.types import IntArray
from venn_admit.errors import Code, NotFoundError
from venn_admit.store.database.binary_copy import INT4, INT8, TEXT, FilledColumns, copy_in
from venn_admit.store.database.engine import driver_cursor
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars.classifiers import Classifier

LOOKED_AT = 10_000
"""How many events of all classifiers are looked at, at most, for the newest labels of one."""


@dataclass(frozen=True, slots=True)
class LabelledExemplar:
    """A stored exemplar: its current label, None while unknown, and what its split follows from.

    is_drawn: whether it was drawn to be audited. is_sampled: whether the smallest rate of the rule would have drawn it
    too, whatever was decided; points of documents never are. is_reviewed: whether it was drawn, and has a label that
    counts for that.
    """

    id: int
    split: Split
    label: int | None
    document_id: str | None
    point_digest: bytes
    is_drawn: bool = False
    is_sampled: bool = False
    is_reviewed: bool = False


@dataclass(frozen=True, slots=True)
class LabelEvent:
    """An event in the ledger: the label, None to retract it, how it was chosen, and the split that results."""

    exemplar_id: int
    label: int | None
    selection: str
    split: Split


def unknown_exemplar(name: str, external_id: str, where: str = "") -> NotFoundError:
    """Return the error that a classifier has no exemplar of an id; where: whose labels have it."""
    message = f"classifier {name!r} has no exemplar {external_id!r}"
    if where:
        message = f"{where}: {message}; if it was forgotten, or is of another classifier, remove it there"
    return NotFoundError(message, code=Code.UNKNOWN_EXEMPLAR, classifier=name, exemplar=external_id)


def by_external_id(
    connection: Connection, classifier: Classifier, external_ids: Sequence[str]
) -> dict[str, LabelledExemplar]:
    """Return those of the exemplars that are stored."""
    parameters = {"classifier_id": classifier.id, "external_ids": list(external_ids)}
    rows = execute(connection, "labels.labelled_exemplars", **parameters)
    return {
        row.external_id: LabelledExemplar(
            row.id,
            Split(row.split),
            row.label,
            row.document_id,
            bytes(row.point_digest),
            row.is_drawn,
            row.is_drawn and row.document_id is None and _is_sampled(row),
            row.is_reviewed,
        )
        for row in rows
    }


def _is_sampled(row: Row[Any]) -> bool:
    rates = AuditRates(tuple(row.admitted_rates), row.rejected_rate)
    return bool(drawn(bytes(row.key), [bytes(row.content)], np.array([rates.least_of_all])).item())


def drawn_beside(
    connection: Connection, classifier: Classifier, document_ids: Sequence[str], exemplar_ids: Sequence[int]
) -> tuple[str, str] | None:
    """Return the id and the document of a drawn point of some documents that has no label and is not among some."""
    parameters = {"classifier_id": classifier.id, "document_ids": document_ids, "exemplar_ids": exemplar_ids}
    row = execute(connection, "labels.drawn_beside", **parameters).one_or_none()
    return None if row is None else (row.external_id, row.document_id)


@dataclass(frozen=True, slots=True)
class CarriedLabel:
    """What another generation of a classifier knows of an exemplar by its ledger.

    label: the current one; None if it was taken back. labels: all that it ever had. is_random: whether it
    calibrates by one. generation: the name of the generation.
    """

    exemplar_id: int
    label: int | None
    labels: frozenset[int]
    is_random: bool
    generation: str


def of_other_generations(
    connection: Connection, classifier: Classifier, external_ids: Sequence[str]
) -> dict[str, CarriedLabel]:
    """Return, of exemplars that a classifier does not have, what its other generations know, by external id.

    If several know an exemplar, the one that a label came for last counts.
    """
    parameters = {"classifier_id": classifier.id, "first_id": classifier.first_id, "external_ids": list(external_ids)}
    rows = execute(connection, "labels.labels_of_other_generations", **parameters)
    return {
        row.external_id: CarriedLabel(
            row.exemplar_id, row.label, frozenset(row.labels or ()), row.is_random, row.generation
        )
        for row in rows
    }


def carry_events(connection: Connection, exemplar_ids: Sequence[int], of_ids: Sequence[int]) -> None:
    """Append the ledgers of the exemplars `of_ids` to those of others, which are as many and new."""
    if exemplar_ids:
        execute(connection, "labels.carry_events", exemplar_ids=list(exemplar_ids), of_ids=list(of_ids))


def newest(connection: Connection, classifier: Classifier, *, limit: int) -> Sequence[Row[Any]]:
    """Return the labels of a classifier that hold, the newest ones, among the newest `LOOKED_AT` events of all."""
    parameters = {"classifier_id": classifier.id, "row_limit": limit, "looked_at": LOOKED_AT}
    return execute(connection, "labels.newest_labels", **parameters).all()


def newest_event(connection: Connection, exemplar: LabelledExemplar) -> Row[Any]:
    """Return the event that gave an exemplar its label."""
    return execute(connection, "labels.newest_event_of_exemplar", exemplar_id=exemplar.id).one()


def record(connection: Connection, events: Sequence[LabelEvent], *, source: str) -> None:
    """Append events to the ledger, and set labels and splits as they say; each exemplar occurs once."""
    changed = {"exemplar_ids": [event.exemplar_id for event in events], "labels": [event.label for event in events]}
    execute(connection, "labels.set_labels", **changed, splits=[event.split for event in events])
    append_events(
        connection,
        np.array([event.exemplar_id for event in events], dtype=np.int64),
        np.array([-1 if event.label is None else event.label for event in events], dtype=np.int64),
        [event.selection for event in events],
        source=source,
    )
    execute(connection, "labels.settle_reviews", **changed)


def labelled_later(
    connection: Connection, classifier: Classifier, splits: Sequence[Split], *, first_id: int = 0
) -> Sequence[Row[Any]]:
    """Return the id and external id of exemplars that came without a label, such as by being scored.

    splits: where they are by now. first_id: the least id that is wanted.
    """
    parameters = {"classifier_id": classifier.id, "splits": [str(one) for one in splits], "first_id": first_id}
    return execute(connection, "labels.labelled_later", **parameters).all()


def append_events(
    connection: Connection, exemplar_ids: IntArray, labels: IntArray, selections: Sequence[str], *, source: str
) -> None:
    """Append n events to the ledger; labels: (n,) int64, -1 for a retraction."""
    if len(exemplar_ids):
        columns: FilledColumns = {
            "exemplar_id": (INT8, exemplar_ids),
            "label": (INT4, labels),
            "selection": (TEXT, [selection.encode() for selection in selections]),
            "source": (TEXT, [source.encode()] * len(exemplar_ids)),
        }
        copy_in(driver_cursor(connection), "label_event", columns, nulls={"label": labels < 0})
