"""Storing exemplars that are new, with their vectors and labels, by binary COPY."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from sqlalchemy import Connection, Row

from venn_admit.core.split_names import Split
from venn_admit.core.types import Float32Array, IntArray
from venn_admit.errors import Code, ConflictError, InvalidInputError
from venn_admit.store.database.binary_copy import (
    BOOL,
    BYTEA,
    INT4,
    INT8,
    JSONB,
    TEXT,
    Array,
    FilledColumns,
    Vector,
    copy_in,
)
from venn_admit.store.database.engine import driver_cursor
from venn_admit.store.database.ids import unpacked_ids
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars import forgotten
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.exemplars.labels import LabelEvent, append_events, carry_events, record

_Value = TypeVar("_Value")


_SPLITS = {split: split.encode() for split in Split}


# Postgres accepts up to 256 MB of JSON, in another form; that much is not an attribute of an exemplar.
ATTRIBUTES_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, eq=False)
class IncomingExemplars:
    """Validated rows to be stored; each field has length n.

    first_row: position of the first row in its source, for messages. vectors: (n, D) float32, r; None if the
    classifier has logits only. logits: (n, C) float32, f. predicted: (n,) int64, argmax f. labels: (n,) int64, -1 if
    unknown. digests: of the content, as `content_digests` makes them. point_digests: those without documents. ledgers:
    of new exemplars that another generation knows, by external id, its exemplar there, whose label events they take
    over; their labels are those that follow from these.
    """

    first_row: int
    external_ids: Sequence[str]
    document_ids: Sequence[str | None]
    splits: Sequence[Split]
    vectors: Float32Array | None
    logits: Float32Array
    predicted: IntArray
    labels: IntArray
    attributes: Sequence[Mapping[str, Any]]
    digests: Sequence[bytes]
    point_digests: Sequence[bytes]
    ledgers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class StoredExemplars:
    """The result of storing n rows: ids (n,) int64, in their order, and the positions of new rows, int64."""

    ids: IntArray
    new_rows: IntArray


def store(
    connection: Connection, classifier: Classifier, incoming: IncomingExemplars, *, selection: str, source: str
) -> StoredExemplars:
    """Append the rows that are new; a known id must come with the content that is stored under it.

    The caller holds the ingestion lock, so that no other row of this classifier appears in between. A label that
    arrives for a scored exemplar stored without one becomes its first label event. Raises ConflictError naming the row,
    and what differs.
    """
    digests = incoming.digests
    known = _known(connection, classifier, incoming.external_ids)
    n = len(incoming.external_ids)
    if not known and len(set(incoming.external_ids)) == n:
        every = np.arange(n)
        return StoredExemplars(
            ids=_append(connection, classifier, incoming, every, selection=selection, source=source), new_rows=every
        )
    first_at: dict[str, int] = {}
    first_label_at: dict[str, int] = {}
    for position, external_id in enumerate(incoming.external_ids):
        stored = known.get(external_id)
        if stored is None:
            first = first_at.setdefault(external_id, position)
        else:
            _check_same(stored, incoming, digests, position, source)
            if incoming.labels[position] < 0 or stored.label is not None:
                continue
            first = first_label_at.setdefault(external_id, position)
        if digests[first] != digests[position] or incoming.labels[first] != incoming.labels[position]:
            raise ConflictError(
                f"{source}: rows {incoming.first_row + first} and {incoming.first_row + position} both have id "
                f"{external_id!r}, with different content; an id names one exemplar"
            )
    new = np.fromiter(first_at.values(), dtype=np.int64, count=len(first_at))
    new_ids = _append(connection, classifier, incoming, new, selection=selection, source=source)
    id_of = {external_id: row.id for external_id, row in known.items()}
    id_of |= dict(zip(first_at, new_ids.tolist(), strict=True))
    ids = np.array([id_of[external_id] for external_id in incoming.external_ids], dtype=np.int64)
    if first_label_at:
        first_labels = [
            LabelEvent(int(ids[row]), int(incoming.labels[row]), selection, Split.SCORED)
            for row in first_label_at.values()
        ]
        record(connection, first_labels, source=source)
    return StoredExemplars(ids=ids, new_rows=new)


def _known(connection: Connection, classifier: Classifier, external_ids: Sequence[str]) -> dict[str, Row[Any]]:
    """Return what is stored under some ids, by id."""
    parameters = {"classifier_id": classifier.id, "external_ids": json.dumps(list(external_ids))}
    rows = execute(connection, "exemplars.known_exemplars", **parameters)
    return {row.external_id: row for row in rows}


# A row that trains must not calibrate too, so another id is the remedy only for another exemplar.
_WRONG_FILE = "see whether this is the file you meant; give the row an id of its own only if it is another exemplar"


def _check_same(
    stored: Row[Any], incoming: IncomingExemplars, digests: Sequence[bytes], position: int, source: str
) -> None:
    """Raise ConflictError unless an incoming row matches the exemplar that is stored under its id."""
    split, label = incoming.splits[position], int(incoming.labels[position])
    if bytes(stored.content_digest) != digests[position]:
        problem = "already stored with another vector, logits or document; use another id, or correct the file"
    elif label >= 0 and stored.label is not None and stored.label != label:
        problem = f"already stored with label {stored.label}, got {label}; a stored label is not changed by a file"
    elif split == Split.SCORED:  # anything stored can be scored
        return
    elif stored.split == Split.SCORED:
        problem = f"already stored to be scored, expected a new exemplar for split {split}; {_WRONG_FILE}"
    elif (stored.split == Split.TRAIN) != (split == Split.TRAIN):
        problem = f"already stored in split {stored.split}, expected a new exemplar for split {split}; {_WRONG_FILE}"
    else:
        return
    where = f"{source}: row {incoming.first_row + position}, id {incoming.external_ids[position]!r}"
    raise ConflictError(f"{where}: {problem}")


def _require_unforgotten(
    connection: Connection, classifier: Classifier, incoming: IncomingExemplars, rows: Sequence[int], source: str
) -> None:
    """Raise ConflictError if a new row, by its id or its document, is one that was forgotten."""
    marks = forgotten.tombstones_of(connection, classifier)
    if marks.are_none:
        return
    givers = {marks.of_exemplar(incoming.external_ids[row]): (row, "it") for row in rows}
    for row in rows:
        document_id = incoming.document_ids[row]
        if document_id is not None:
            givers.setdefault(marks.of_document(document_id), (row, f"its document {document_id!r}"))
    for digest, since in forgotten.forgotten_since(connection, givers).items():
        row, what = givers[digest]
        external_id = incoming.external_ids[row]
        raise ConflictError(
            f"{source}: row {incoming.first_row + row}, id {external_id!r}: {what} was forgotten on "
            f"{since:%Y-%m-%d} and is not stored again; leave the row out",
            code=Code.FORGOTTEN,
            classifier=classifier.name,
            exemplar=external_id,
        )


def _append(
    connection: Connection,
    classifier: Classifier,
    incoming: IncomingExemplars,
    rows: IntArray,
    *,
    selection: str,
    source: str,
) -> IntArray:
    """Store the chosen rows; return their new ids, ascending."""
    _require_unforgotten(connection, classifier, incoming, rows.tolist(), source)
    ids = unpacked_ids(execute(connection, "exemplars.allocate_exemplar_ids", count=len(rows)).scalar_one())
    if not len(rows):
        return ids
    n, chosen = len(rows), rows.tolist()
    cursor = driver_cursor(connection)
    kept = slice(None) if n == len(incoming.labels) else rows  # a view of all
    labels, splits = incoming.labels[kept], _at(incoming.splits, rows)
    document_ids = _at(incoming.document_ids, rows)
    copy_in(
        cursor,
        "exemplar",
        {
            "id": (INT8, ids),
            "classifier_id": (INT4, np.full(n, classifier.id)),
            "external_id": (TEXT, [one.encode() for one in _at(incoming.external_ids, rows)]),
            "document_id": (TEXT, [None if one is None else one.encode() for one in document_ids]),
            "split": (TEXT, [_SPLITS[split] for split in splits]),
            "network_logits": (Array(">f4", classifier.class_count), incoming.logits[kept]),
            "network_predicted": (INT4, incoming.predicted[kept]),
            "label": (INT4, labels),
            "attributes": (JSONB, [_json(incoming, row, source) for row in chosen]),
            "content_digest": (BYTEA, _at(incoming.digests, rows)),
            # The same where there is no document.
            "point_digest": (
                BYTEA,
                [incoming.point_digests[row] if incoming.document_ids[row] is not None else None for row in chosen],
            ),
        },
        nulls={"label": labels < 0},
    )
    if incoming.vectors is not None:
        columns: FilledColumns = {
            "classifier_id": (INT4, np.full(n, classifier.id)),
            "support": (BOOL, np.array([split == Split.TRAIN for split in splits])),
            "exemplar_id": (INT8, ids),
            "vector": (Vector(classifier.dimension), incoming.vectors[kept]),
        }
        copy_in(cursor, "exemplar_vector", columns)
    labelled = labels >= 0
    taken: dict[int, int] = {}
    if incoming.ledgers:
        ledgers = [incoming.ledgers.get(external_id) for external_id in _at(incoming.external_ids, rows)]
        labelled &= np.array([ledger is None for ledger in ledgers])
        taken = {key: ledger for key, ledger in zip(ids.tolist(), ledgers, strict=True) if ledger is not None}
    given = labels[labelled]
    append_events(connection, ids[labelled], given, [selection] * len(given), source=source)
    carry_events(connection, list(taken), list(taken.values()))
    return ids


def _at(values: Sequence[_Value], rows: IntArray) -> Sequence[_Value]:
    """The values of some rows, in ascending order; mostly these are all, which need not be copied."""
    return values if len(rows) == len(values) else [values[row] for row in rows.tolist()]


def _json(incoming: IncomingExemplars, row: int, source: str) -> bytes:
    if not incoming.attributes[row]:
        return b"\x01{}"
    encoded = b"\x01" + json.dumps(incoming.attributes[row]).encode()
    if len(encoded) > ATTRIBUTES_BYTES:
        raise InvalidInputError(
            f"{source}: row {incoming.first_row + row}, attributes: expected at most {ATTRIBUTES_BYTES:,} bytes of "
            f"JSON, got {len(encoded):,}; shorten them or leave some out"
        )
    return encoded
