"""Neighbour lists of stored exemplars."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row

from venn_admit.core.split_names import Split
from venn_admit.core.types import BoolArray, FloatArray, IntArray
from venn_admit.store.database.binary_copy import INT8, Array, FixedColumn, copy_in, read_columns
from venn_admit.store.database.engine import driver_cursor
from venn_admit.store.database.ids import execute_ids
from venn_admit.store.database.statements import execute, stream
from venn_admit.store.exemplars import support, support_changes
from venn_admit.store.exemplars.classifiers import Classifier


@dataclass(frozen=True, slots=True, eq=False)
class StoredNeighbours:
    """Neighbour lists of n points.

    exemplar_ids: (n,) int64. neighbour_ids: (n, K) int64, distances: (n, K) float64, nearest first.
    support_version: (n,) int64, the version that each list is complete to.
    """

    exemplar_ids: IntArray
    neighbour_ids: IntArray
    distances: FloatArray
    support_version: IntArray

    def take(self, rows: IntArray) -> "StoredNeighbours":
        """Return the lists in these rows, in this order; rows: (m,) int64."""
        return StoredNeighbours(*(values[rows] for values in self._columns()))

    def followed_by(self, other: "StoredNeighbours") -> "StoredNeighbours":
        """Return these lists, followed by those of `other`."""
        return StoredNeighbours(*map(np.concatenate, zip(self._columns(), other._columns(), strict=True)))

    def _columns(self) -> tuple[Any, ...]:
        return self.exemplar_ids, self.neighbour_ids, self.distances, self.support_version

    def holding(self, neighbour_ids: IntArray) -> BoolArray:
        """Return whether each list holds any of some training exemplars, (n,) bool."""
        return np.asarray(np.isin(self.neighbour_ids, neighbour_ids).any(axis=1))


def without_neighbours(connection: Connection, classifier: Classifier, splits: list[Split]) -> IntArray:
    """Return the ids of the points of some splits that have no neighbours yet."""
    return execute_ids(connection, "approximations.without_neighbours", classifier_id=classifier.id, splits=splits)


def outdated_neighbours(connection: Connection, classifier: Classifier) -> IntArray:
    """Return the ids of points, of any split, whose neighbours or their labels may have changed.

    If training exemplars only left or were relabelled, these are the points that have them among their neighbours.
    """
    searched, version = classifier.neighbours_support_version, classifier.support_version
    if searched == version:
        return np.empty(0, dtype=np.int64)
    if support.grew_after(connection, classifier, searched):
        parameters = {"classifier_id": classifier.id, "support_version": version}
        return execute_ids(connection, "approximations.outdated_neighbours", **parameters)
    changed = support_changes.after(connection, classifier, searched).exemplar_ids.tolist()
    parameters = {"neighbour_ids": changed, "support_version": version}
    return execute_ids(connection, "approximations.outdated_neighbours_holding", **parameters)


def _neighbour_columns(classifier: Classifier) -> dict[str, FixedColumn]:
    k = classifier.neighbour_count
    return {
        "exemplar_id": INT8,
        "neighbour_ids": Array(">i8", k),
        "distances": Array(">f8", k),
        "support_version": INT8,
    }


def read(connection: Connection, classifier: Classifier, exemplar_ids: IntArray) -> StoredNeighbours:
    """Return the stored neighbour lists of some exemplars, in no particular order."""
    parameters = {"exemplar_ids": exemplar_ids, "classifier_id": classifier.id}
    rows = read_columns(connection, "approximations.neighbours", _neighbour_columns(classifier), **parameters)
    return StoredNeighbours(*rows.values())


def write(connection: Connection, classifier: Classifier, found: StoredNeighbours) -> None:
    """Store neighbour lists in place of older ones."""
    execute(connection, "approximations.delete_neighbours", exemplar_ids=found.exemplar_ids)
    formats, values = _neighbour_columns(classifier), found._columns()
    columns = {name: (column, of) for (name, column), of in zip(formats.items(), values, strict=True)}
    copy_in(driver_cursor(connection), "neighbours", columns)


def export_rows(connection: Connection, classifier: Classifier) -> Iterator[Sequence[Row[Any]]]:
    """Yield neighbour lists by external ids, in order of ingestion, in blocks."""
    return stream(connection, "approximations.export_neighbours", {"classifier_id": classifier.id})
