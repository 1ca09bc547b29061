"""The nearest training exemplars of one vector: exactly, by pgvector and a certificate, or by an HNSW index.

Either way pgvector proposes candidates by float32 arithmetic, and the distances of `service.core` rank them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection

from service.core.distances import euclidean_distances, greatest_float32_distance, least_distance
from service.core.types import Float32Array, FloatArray, IntArray, Neighbours, Support
from service.errors import InvalidInputError, NotReadyError
from service.store import hnsw
from service.store.classifiers import Classifier
from service.store.copy import FLOAT8, INT4, INT8, Array, FixedColumn, Vector, copy_out, driver_cursor
from service.store.statements import copy_query

# Candidates beyond K: enough that the gap behind the K-th distance outgrows the rounding of float32.
MARGIN = 8
_BLOCK_ROWS = 1024


@dataclass(frozen=True, slots=True, eq=False)
class NearestExemplars:
    """The K nearest training exemplars of one vector, by (distance, id).

    ids: (K,) int64. distances: (K,) float64. labels: (K,) int64. logits: (K, C) float32, the network's.
    """

    ids: IntArray
    distances: FloatArray
    labels: IntArray
    logits: Float32Array

    def as_neighbours(self) -> tuple[Neighbours, Support]:
        """The same as the neighbours of one point in a support of K rows."""
        rows = np.arange(len(self.ids))
        return Neighbours(rows[np.newaxis], self.distances[np.newaxis]), Support(self.logits, self.labels)


def exact_nearest(connection: Connection, classifier: Classifier, vector: Float32Array) -> NearestExemplars:
    """The K nearest: ids and distances are those of `service.core.neighbors.exact_neighbours`, bit for bit.

    vector: (D,) float32, finite. Raises InvalidInputError for another, NotReadyError where there are fewer than K
    training exemplars.
    """
    _check_vector(classifier, vector)
    k, asked = classifier.neighbour_count, classifier.neighbour_count + MARGIN
    near, rows, farthest = _search(connection, "nearest.nearest", classifier, vector, {"count": asked})
    if rows < k:
        raise NotReadyError(
            f"classifier {classifier.name!r} has {rows} training exemplars, its KNN needs at least K = {k}: "
            "ingest more with --split train"
        )
    # What was cut off is at least as far as the farthest that was not, by float32 arithmetic.
    if rows < asked or least_distance(farthest, classifier.dimension) > near.distances[-1]:
        return near
    reach = greatest_float32_distance(float(near.distances[-1]), classifier.dimension)
    return _search(connection, "nearest.within", classifier, vector, {"reach": reach})[0]


def hnsw_nearest(
    connection: Connection, classifier: Classifier, vector: Float32Array, ef_search: int
) -> NearestExemplars:
    """The K nearest of what the HNSW index proposes, which may miss some of the K nearest; distances are exact.

    ef_search: candidates that the index keeps, K to 1000. The settings for it stay until the transaction ends.
    Raises as `exact_nearest` and `hnsw.prefer`, and NotReadyError where the index proposes fewer than K.
    """
    _check_vector(classifier, vector)
    hnsw.prefer(connection, classifier, ef_search)
    k = classifier.neighbour_count
    parameters = {"dimension": classifier.dimension, "count": k + MARGIN}
    near, rows, _ = _search(connection, "nearest.nearest_by_hnsw", classifier, vector, parameters)
    if rows < k:
        raise NotReadyError(
            f"the HNSW index of classifier {classifier.name!r} proposed {rows} exemplars, expected K = {k} at least; "
            "search exactly, or raise ef_search, or vacuum the table if many training exemplars were removed"
        )
    return near


def _search(
    connection: Connection,
    query: str,
    classifier: Classifier,
    vector: Float32Array,
    parameters: Mapping[str, Any],
) -> tuple[NearestExemplars, int, float]:
    """The K nearest of the rows of a statement, how many rows it had, and the greatest float32 distance of them."""
    columns: dict[str, FixedColumn] = {
        "exemplar_id": INT8,
        "float32_distance": FLOAT8,
        "r": Vector(classifier.dimension),
        "label": INT4,
        "network_logits": Array(">f4", classifier.class_count),
    }
    near = NearestExemplars(
        ids=np.empty(0, np.int64),
        distances=np.empty(0),
        labels=np.empty(0, np.int64),
        logits=np.empty((0, classifier.class_count), np.float32),
    )
    rows, farthest = 0, 0.0
    given = {"classifier_id": classifier.id, "vector": json.dumps(vector.tolist()), **parameters}
    for block in copy_out(driver_cursor(connection), copy_query(query), given, columns, _BLOCK_ROWS):
        near = _merge(near, block, euclidean_distances(block["r"], vector), classifier.neighbour_count)
        rows, farthest = rows + len(block["r"]), max(farthest, float(block["float32_distance"].max()))
    return near, rows, farthest


def _merge(near: NearestExemplars, block: Mapping[str, Any], distances: FloatArray, k: int) -> NearestExemplars:
    """The K nearest of those known and those of a block, by (distance, id)."""
    ids, distances = np.concatenate([near.ids, block["exemplar_id"]]), np.concatenate([near.distances, distances])
    order = np.lexsort((ids, distances))[:k]
    return NearestExemplars(
        ids=ids[order],
        distances=distances[order],
        labels=np.concatenate([near.labels, block["label"]])[order],
        logits=np.concatenate([near.logits, block["network_logits"]])[order],
    )


def _check_vector(classifier: Classifier, vector: Float32Array) -> None:
    if vector.shape != (classifier.dimension,) or vector.dtype != np.float32 or not np.isfinite(vector).all():
        raise InvalidInputError(
            f"expected a finite float32 vector of classifier {classifier.name!r}, of shape ({classifier.dimension},), "
            f"got shape {vector.shape} and dtype {vector.dtype}"
            + ("" if np.isfinite(vector).all() else " with values that are not finite")
        )
