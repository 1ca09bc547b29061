"""Exemplars, their vectors and labels, written and read by binary COPY."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Connection, Row

from venn_admit.core.copies import united
from venn_admit.core.split_names import Split
from venn_admit.core.types import Float32Array, IntArray
from venn_admit.store.database.binary_copy import (
    INT4,
    INT8,
    Array,
    FixedColumn,
    Vector,
    copy_out,
    copy_out_packed,
    read_columns,
)
from venn_admit.store.database.engine import driver_cursor
from venn_admit.store.database.ids import execute_ids, unpacked_ids
from venn_admit.store.database.statements import copy_query, execute, stream
from venn_admit.store.exemplars import generations
from venn_admit.store.exemplars.classifiers import Classifier, left_of


class DescribedExemplar(NamedTuple):
    """An exemplar as its users know it."""

    external_id: str
    network_predicted: int
    attributes: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class LabelledLogits:
    """n labelled exemplars: ids (n,) int64, labels (n,) int64, and the network's logits (n, C) float32."""

    ids: IntArray
    labels: IntArray
    logits: Float32Array


@dataclass(frozen=True, slots=True, eq=False)
class ExemplarKeys:
    """The names of n exemplars: ids (n,) int64, and of each its unit (`core.copies`) and its external id.

    A unit without copies is the document, or else the exemplar itself.
    """

    ids: IntArray
    document_keys: list[str]
    row_keys: list[str]


def lock_ingestion(connection: Connection, classifier: Classifier) -> None:
    """Wait until nobody else stores exemplars or labels of a generation; keep others out until this transaction ends.

    A caller that locks the classifier as well, by `classifiers.lock`, does so after this, as ingestion does.
    """
    execute(connection, "classifiers.lock_ingestion", classifier_id=classifier.id)


def lock_ingestion_of_all(connection: Connection, classifier: Classifier) -> list[Classifier]:
    """Do what `lock_ingestion` does for each generation of a classifier; return them in the order of their numbers.

    They are as they were once all were locked. Raises NotFoundError if the classifier was deleted meanwhile.
    """
    locked: set[int] = set()
    while True:
        found = generations.of_same(connection, classifier)
        if not found:
            classifier = left_of(connection, classifier, locked | {classifier.id})
        others = [one for one in found if one.id not in locked]
        if found and not others:
            return found
        # Once more afterwards: one may be added, or deleted, while we wait.
        for one in others:
            lock_ingestion(connection, one)
            locked.add(one.id)


def split_counts(connection: Connection, classifier: Classifier) -> dict[Split, int]:
    """Return the number of exemplars in each split, including empty splits."""
    rows = execute(connection, "exemplars.split_counts", classifier_ids=[classifier.id])
    stored = {row.split: row.exemplars for row in rows}
    return {split: stored.get(split, 0) for split in Split}


def split_classes(connection: Connection, classifier: Classifier, split: Split) -> list[int]:
    """Return two labels of a split, ascending, or fewer if it has no more; training exemplars that wait left out."""
    parameters = {"classifier_id": classifier.id, "split": split, "support_version": classifier.support_version}
    return sorted(execute(connection, "exemplars.split_classes", **parameters).scalars())


def in_split(connection: Connection, exemplar_ids: IntArray, split: Split) -> IntArray:
    """Return those of some exemplars that are in a split; ascending ids."""
    return execute_ids(connection, "exemplars.in_split", exemplar_ids=exemplar_ids, split=split)


def split_keys(connection: Connection, classifier: Classifier, split: Split) -> ExemplarKeys:
    """Return a split's exemplars in the order of their external ids, which does not depend on the order of arrival."""
    rows = execute(connection, "exemplars.split_keys", classifier_id=classifier.id, split=split).all()
    return _keys(np.array([row.id for row in rows], dtype=np.int64), rows)


def keys(connection: Connection, exemplar_ids: IntArray) -> ExemplarKeys:
    """Return the names of some exemplars, in the given order."""
    rows = execute(connection, "exemplars.keys", exemplar_ids=exemplar_ids).all()
    return _keys(exemplar_ids, rows)


def _keys(ids: IntArray, rows: Sequence[Row[Any]]) -> ExemplarKeys:
    units = united([row.document_key for row in rows], [row.point_digest for row in rows])
    return ExemplarKeys(ids, units, [row.external_id for row in rows])


def count_stored(connection: Connection, exemplar_ids: IntArray) -> int:
    """Return how many of some exemplars, which are distinct, are stored."""
    return int(execute(connection, "exemplars.count_stored", exemplar_ids=exemplar_ids).scalar_one())


def support_ids(connection: Connection, classifier: Classifier, *, after: int = 0) -> IntArray:
    """Return the training exemplars after an id in order of ingestion, without those that wait, (N,) int64."""
    parameters = {"classifier_id": classifier.id, "after": after, "support_version": classifier.support_version}
    return unpacked_ids(execute(connection, "exemplars.support_ids", **parameters).scalar_one())


def support_fingerprint(connection: Connection, classifier: Classifier, *, up_to: int) -> bytes:
    """Return what tells apart which exemplars train up to an id, their labels and their contents, 32 bytes."""
    parameters = {"classifier_id": classifier.id, "up_to": up_to}
    return bytes(execute(connection, "exemplars.support_fingerprint", **parameters).scalar_one())


def _labelled_logits(classifier: Classifier) -> dict[str, FixedColumn]:
    return {"id": INT8, "label": INT4, "network_logits": Array(">f4", classifier.class_count)}


def support_blocks(
    connection: Connection, classifier: Classifier, ids: IntArray, block_rows: int
) -> Iterator[tuple[IntArray, Float32Array]]:
    """Yield labels and network logits of the training exemplars of all ascending `ids` in a range, in their order."""
    columns = _labelled_logits(classifier)
    query, parts = copy_query("exemplars.support"), _parts(classifier, ids, block_rows)
    for block in copy_out_packed(driver_cursor(connection), query, parts, columns):
        yield block["label"], block["network_logits"]


def support_vector_blocks(
    connection: Connection, classifier: Classifier, ids: IntArray, block_rows: int
) -> Iterator[Float32Array]:
    """Yield vectors of the training exemplars of all ascending `ids` in a range, in their order."""
    columns: dict[str, FixedColumn] = {"exemplar_id": INT8, "vector": Vector(classifier.dimension)}
    query, parts = copy_query("exemplars.support_vectors"), _parts(classifier, ids, block_rows)
    for block in copy_out_packed(driver_cursor(connection), query, parts, columns):
        yield block["vector"]


def _parts(classifier: Classifier, ids: IntArray, block_rows: int) -> dict[str, object]:
    """The parameters of a statement that reads ascending ids in blocks."""
    last = np.append(ids[block_rows - 1 :: block_rows], ids[-1:] if len(ids) % block_rows else ids[:0])
    return {"classifier_id": classifier.id, "first_ids": ids[::block_rows].tolist(), "last_ids": last.tolist()}


def vectors(connection: Connection, classifier: Classifier, exemplar_ids: IntArray) -> Float32Array:
    """Return the vectors of some exemplars, in the given order, (n, D) float32."""
    columns: dict[str, FixedColumn] = {"exemplar_id": INT8, "vector": Vector(classifier.dimension)}
    parameters = {"classifier_id": classifier.id, "exemplar_ids": exemplar_ids}
    found = np.empty((len(exemplar_ids), classifier.dimension), dtype=np.float32)
    start = 0
    for block in copy_out(
        driver_cursor(connection), copy_query("exemplars.vectors"), parameters, columns, block_rows=1024
    ):
        found[start : start + len(block["vector"])] = block["vector"]
        start += len(block["vector"])
    assert start == len(exemplar_ids), "an exemplar without a vector"
    return found


def network_logits(connection: Connection, classifier: Classifier, exemplar_ids: IntArray) -> Float32Array:
    """Return the network's logits of some exemplars, in the given order, (n, C) float32."""
    columns: dict[str, FixedColumn] = {"network_logits": Array(">f4", classifier.class_count)}
    found = read_columns(connection, "exemplars.network_logits", columns, exemplar_ids=exemplar_ids)
    return np.asarray(found["network_logits"])


def split_logits(connection: Connection, classifier: Classifier, split: Split) -> LabelledLogits:
    """Return a labelled split in order of ingestion."""
    columns, parameters = _labelled_logits(classifier), {"classifier_id": classifier.id, "split": split}
    return LabelledLogits(*read_columns(connection, "exemplars.split_logits", columns, **parameters).values())


def labels(connection: Connection, exemplar_ids: IntArray) -> IntArray:
    """Return the labels of some labelled exemplars, in the given order, (n,) int64."""
    return execute_ids(connection, "exemplars.labels", exemplar_ids=exemplar_ids)


def groups(connection: Connection, exemplar_ids: IntArray, attributes: Sequence[str]) -> dict[str, list[str | None]]:
    """Return the group of each of some exemplars by attributes, in the given order; None for one in none."""
    ids = exemplar_ids.tolist()
    return {
        name: list(execute(connection, "exemplars.group_values", exemplar_ids=ids, attribute=name).scalars())
        for name in attributes
    }


def described(connection: Connection, exemplar_ids: IntArray) -> Sequence[DescribedExemplar]:
    """Return external id, network's prediction and attributes of some exemplars, in the given order."""
    rows = execute(connection, "exemplars.described", exemplar_ids=exemplar_ids)
    return list(map(DescribedExemplar._make, rows))


def export_rows(connection: Connection, classifier: Classifier) -> Iterator[Sequence[Row[Any]]]:
    """Yield all exemplars in order of ingestion, in blocks."""
    return stream(connection, "exemplars.export_exemplars", {"classifier_id": classifier.id})
