"""Copies among the stored exemplars of a classifier: where they are, and what follows from them for splits."""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from venn_admit.core.content import DIGEST_BYTES, content_digests
from venn_admit.core.copies import HeldOutDocument
from venn_admit.core.split_names import HELD_OUT_SPLITS, Split
from venn_admit.store.database.ids import execute_ids
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars import exemplars
from venn_admit.store.exemplars.classifiers import Classifier

_BLOCK_ROWS = 8192


@dataclass(frozen=True, slots=True)
class StoredCopy:
    """A stored exemplar with a certain vector and logits, or of a certain document.

    document_key: its document, or else its external id.
    """

    external_id: str
    document_key: str
    split: Split


def stored_copies(
    connection: Connection, classifier: Classifier, digests: Collection[bytes]
) -> tuple[dict[bytes, StoredCopy], dict[bytes, StoredCopy]]:
    """Return exemplars with these distinct digests of vector and logits: one for each that is held out, or trains."""
    each = list(digests)
    assert all(len(digest) == DIGEST_BYTES for digest in each), "packed into one value"
    held_out: dict[bytes, StoredCopy] = {}
    training: dict[bytes, StoredCopy] = {}
    for row in execute(connection, "copies.of_contents", classifier_id=classifier.id, digests=b"".join(each)):
        copy = StoredCopy(row.external_id, row.document_key, Split(row.split))
        (training if copy.split == Split.TRAIN else held_out)[each[row.position]] = copy
    return held_out, training


def splits_of_documents(
    connection: Connection, classifier: Classifier, document_ids: Collection[str]
) -> dict[str, Split]:
    """Return the splits of those documents that have points that are held out."""
    ids = json.dumps(list(document_ids))
    rows = execute(connection, "copies.splits_of_documents", classifier_id=classifier.id, document_ids=ids)
    return {row.document_id: Split(row.split) for row in rows}


def of_documents(
    connection: Connection, classifier: Classifier, document_ids: Collection[str], *, that_train: bool
) -> dict[str, StoredCopy]:
    """Return, by document, an exemplar of those documents that have one that trains, or one that is held out."""
    parameters = {
        "classifier_id": classifier.id,
        "document_ids": json.dumps(list(document_ids)),
        "splits": [Split.TRAIN] if that_train else list(HELD_OUT_SPLITS),
    }
    rows = execute(connection, "copies.of_documents", **parameters)
    return {row.document_id: StoredCopy(row.external_id, row.document_id, Split(row.split)) for row in rows}


def equal_documents(
    connection: Connection, classifier: Classifier, document_keys: Collection[str], *, new: Collection[str]
) -> list[list[HeldOutDocument]]:
    """Return the units of copies that some documents, or points without one, belong to. new: those that are new."""
    units: dict[int, list[HeldOutDocument]] = {}
    parameters = {"classifier_id": classifier.id, "document_keys": list(document_keys)}
    for row in execute(connection, "copies.equal_documents", **parameters):
        document = HeldOutDocument(row.document_key, Split(row.split), row.points, row.document_key in new)
        units.setdefault(row.number, []).append(document)
    return list(units.values())


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """How many exemplars left a split, less than none, and came into one; of those that are new, and of the others."""

    new: Counter[Split]
    others: Counter[Split]


def move(
    connection: Connection, classifier: Classifier, documents: Mapping[HeldOutDocument, Split], *, first_new_id: int
) -> Moved:
    """Put documents into the splits given. first_new_id: exemplars from there on are new, even of other documents."""
    moved = Moved(Counter(), Counter())
    parameters = {
        "document_keys": [one.key for one in documents],
        "splits": list(documents.values()),
        "are_new": [one.is_new for one in documents],
        "first_new_id": first_new_id,
    }
    for row in execute(connection, "copies.move", classifier_id=classifier.id, **parameters):
        others = row.exemplars - row.new_exemplars
        for split, sign in ((Split(row.split_before), -1), (Split(row.split), 1)):
            moved.new[split] += sign * row.new_exemplars
            moved.others[split] += sign * others
    return moved


def complete_digests(connection: Connection, classifier: Classifier) -> None:
    """Store the digests that programs from before left out; the caller holds the ingestion lock."""
    while True:
        ids = execute_ids(connection, "copies.without_digest", classifier_id=classifier.id, row_limit=_BLOCK_ROWS)
        if not ids.size:
            return
        vectors = None if classifier.knn is None else exemplars.vectors(connection, classifier, ids)
        logits = exemplars.network_logits(connection, classifier, ids)
        digests = content_digests(vectors, logits, [None] * len(ids))
        execute(connection, "copies.set_digests", exemplar_ids=ids, digests=digests)
