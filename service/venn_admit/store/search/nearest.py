"""The nearest training exemplars of one vector: exactly, by pgvector and a certificate, or by an HNSW index.

In both cases pgvector proposes candidates by float32 arithmetic, and the distances of the core rank them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pgvector
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format
from sqlalchemy import Connection

from venn_admit.core.neighbours.distances import euclidean_distances, greatest_float32_distance, least_distance
from venn_admit.core.types import Float32Array, FloatArray, IntArray, Neighbours, Support
from venn_admit.errors import InvalidInputError, NotReadyError
from venn_admit.store.database.binary_copy import FLOAT8, INT4, INT8, Array, FixedColumn, Vector, copy_out
from venn_admit.store.database.engine import driver_cursor
from venn_admit.store.database.statements import copy_query
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.exemplars.support import too_few
from venn_admit.store.search import hnsw

# Candidates beyond K: enough for the gap behind the K-th distance to exceed the rounding of float32.
MARGIN = 8
_BLOCK_ROWS = 1024

# Candidates, column by column: exemplar_id, float32_distance, vector, label, network_logits; `nearest` has waits, too.
_Block = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class NearestExemplars:
    """The K nearest training exemplars of one vector, by (distance, id).

    ids: (K,) int64. distances: (K,) float64. labels: (K,) int64. logits: (K, C) float32, the network's.
    """

    ids: IntArray
    distances: FloatArray
    labels: IntArray
    logits: Float32Array


def as_neighbours(found: Sequence[NearestExemplars]) -> tuple[Neighbours, Support]:
    """Return what was found of m points, m >= 1, as their neighbours in a support of m K rows."""
    distances = np.stack([near.distances for near in found])  # (m, K)
    support = Support(
        np.concatenate([near.logits for near in found]),  # (m K, C)
        np.concatenate([near.labels for near in found]),  # (m K,)
    )
    return Neighbours(np.arange(distances.size).reshape(distances.shape), distances), support


def check_vectors(classifier: Classifier, vectors: Sequence[Float32Array]) -> None:
    """Raise InvalidInputError unless each vector is (D,) float32 and finite."""
    shape = (classifier.dimension,)
    for vector in vectors:
        if vector.shape != shape or vector.dtype != np.float32:
            raise _other_vector(classifier, vector, "")
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        raise _other_vector(classifier, vectors[int(finite.argmin())], " with values that are not finite")


def _other_vector(classifier: Classifier, vector: Float32Array, values: str) -> InvalidInputError:
    return InvalidInputError(
        f"expected a finite float32 vector of classifier {classifier.name!r}, of shape ({classifier.dimension},), "
        f"got shape {vector.shape} and dtype {vector.dtype}{values}"
    )


def exact_nearest(connection: Connection, classifier: Classifier, vector: Float32Array) -> NearestExemplars:
    """Return the K nearest: ids and distances as `core.neighbours.search.exact_neighbours` has them, bit for bit.

    vector: (D,) float32, finite. The transaction should be REPEATABLE READ, because this may take three statements.
    Raises InvalidInputError for another vector, and NotReadyError if there are fewer than K training exemplars.
    """
    check_vectors(classifier, [vector])
    k, asked = classifier.neighbour_count, classifier.neighbour_count + MARGIN
    parameters = _parameters(classifier, vector)
    search = partial(_few, connection, "nearest.nearest", classifier)
    candidates = search({**parameters, "count": asked, "with_waiting": True})
    if candidates["waits"].any():
        candidates = search({**parameters, "count": asked, "with_waiting": False})
    count = len(candidates["exemplar_id"])
    if count < k:
        raise too_few(classifier, count)
    near = _rank(classifier, vector, [candidates])
    # In float32 arithmetic, what was cut off is at least as far as the farthest that was not.
    farthest = float(candidates["float32_distance"].max())
    if count < asked or least_distance(farthest, classifier.dimension) > near.distances[-1]:
        return near
    reach = greatest_float32_distance(float(near.distances[-1]), classifier.dimension)
    in_reach = _many(connection, "nearest.within", classifier, {**parameters, "reach": reach})
    return _rank(classifier, vector, in_reach)


def hnsw_nearest(
    connection: Connection, classifier: Classifier, vector: Float32Array, ef_search: int
) -> NearestExemplars:
    """Return the K nearest of what the HNSW index proposes, which may miss some of them; distances are exact.

    ef_search: candidates that the index keeps, K to 1000. The settings for it stay until the transaction ends. Raises
    the errors of `exact_nearest` and `hnsw.prefer`, and NotReadyError if the index proposes fewer than K.
    """
    check_vectors(classifier, [vector])
    hnsw.prefer(connection, classifier, ef_search)
    k = classifier.neighbour_count
    parameters = {**_parameters(classifier, vector), "dimension": classifier.dimension, "count": k + MARGIN}
    near = _rank(classifier, vector, [_few(connection, "nearest.nearest_by_hnsw", classifier, parameters)])
    if len(near.ids) < k:
        raise NotReadyError(
            f"the HNSW index of classifier {classifier.name!r} proposed {len(near.ids)} exemplars, expected K = {k} at "
            "least; search exactly, or raise ef_search, or vacuum the table if many training exemplars were removed, "
            "or wait for the jobs that are running if many arrived since they began"
        )
    return near


def _parameters(classifier: Classifier, vector: Float32Array) -> dict[str, Any]:
    return {"classifier_id": classifier.id, "vector": pgvector.Vector(vector)}


class _BinaryDumper(Dumper):
    """Sends a vector as it is stored; writing its digits would take a tenth of a search by an index.

    The cast around each parameter states its type.
    """

    format = Format.BINARY

    def dump(self, obj: pgvector.Vector) -> Buffer:
        return obj.to_binary()


def _few(connection: Connection, query: str, classifier: Classifier, parameters: Mapping[str, Any]) -> _Block:
    """The rows of a statement that returns only a few; this is quicker than COPY, which returns them one at a time."""
    cursor = driver_cursor(connection)
    cursor.adapters.register_dumper(pgvector.Vector, _BinaryDumper)
    # The statement is not prepared, because a plan for any dimension would not match the index.
    cursor.execute(copy_query(query).encode(), parameters, prepare=False, binary=True)
    ids, distances, vectors, labels, logits, *waits = (
        zip(*cursor.fetchall(), strict=True) if cursor.rowcount else [()] * len(cursor.description or ())
    )
    wire = Vector(classifier.dimension)
    return {
        "exemplar_id": np.array(ids, np.int64),
        "float32_distance": np.array(distances, np.float64),
        "vector": wire.take(np.frombuffer(b"".join(vectors), wire.wire)),
        "label": np.array(labels, np.int64),
        "network_logits": np.array(logits, np.float32).reshape(len(logits), classifier.class_count),
        "waits": np.array(waits, bool).reshape(-1),
    }


def _many(
    connection: Connection, query: str, classifier: Classifier, parameters: Mapping[str, Any]
) -> Iterator[_Block]:
    """The rows of a statement that may return all training exemplars, in blocks."""
    columns: dict[str, FixedColumn] = {
        "exemplar_id": INT8,
        "float32_distance": FLOAT8,
        "vector": Vector(classifier.dimension),
        "label": INT4,
        "network_logits": Array(">f4", classifier.class_count),
    }
    as_text = {**parameters, "vector": parameters["vector"].to_text()}  # a COPY accepts no binary parameters
    return copy_out(driver_cursor(connection), copy_query(query), as_text, columns, _BLOCK_ROWS)


def _rank(classifier: Classifier, vector: Float32Array, blocks: Iterable[_Block]) -> NearestExemplars:
    """The K nearest of the candidates in all blocks, or as many as there are."""
    near = NearestExemplars(
        ids=np.empty(0, np.int64),
        distances=np.empty(0),
        labels=np.empty(0, np.int64),
        logits=np.empty((0, classifier.class_count), np.float32),
    )
    for block in blocks:
        near = _merge(near, block, euclidean_distances(block["vector"], vector), classifier.neighbour_count)
    return near


def _merge(near: NearestExemplars, block: _Block, distances: FloatArray, k: int) -> NearestExemplars:
    """The K nearest of those known and of those in a block, by (distance, id)."""
    ids, distances = np.concatenate([near.ids, block["exemplar_id"]]), np.concatenate([near.distances, distances])
    order = np.lexsort((ids, distances))[:k]
    return NearestExemplars(
        ids=ids[order],
        distances=distances[order],
        labels=np.concatenate([near.labels, block["label"]])[order],
        logits=np.concatenate([near.logits, block["network_logits"]])[order],
    )
