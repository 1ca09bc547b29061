"""The points, exemplars and labels of a request, as the flows take them."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from venn_admit.api.models.decisions import Point
from venn_admit.api.models.exemplars import NewExemplars, NewLabels
from venn_admit.core.types import Float32Array
from venn_admit.errors import InvalidInputError
from venn_admit.files.inputs import OF_NETWORK
from venn_admit.files.label_sources import LabelTable
from venn_admit.files.sources import ArraySource
from venn_admit.flows.decisions.score_one import GivenPoint
from venn_admit.store.exemplars.classifiers import Classifier


def given_points(points: Sequence[Point]) -> list[GivenPoint]:
    """Return points to decide on. Raises InvalidInputError, which names the point, if float32 cannot hold a number."""
    with np.errstate(over="ignore"):
        return [
            GivenPoint(
                None if point.vector is None else _array(f"points[{row}].vector", point.vector),
                None if point.logits is None else _array(f"points[{row}].logits", point.logits),
                point.attributes,
                point.external_id,
            )
            for row, point in enumerate(points)
        ]


def exemplar_source(given: NewExemplars, classifier: Classifier, memory_budget: int) -> ArraySource:
    """Return exemplars to store as a source. Raises InvalidInputError, which names the row."""
    rows = given.exemplars
    vectors = None
    given_vector = next((row.vector for row in rows if row.vector is not None), None)
    if given_vector is not None:
        # With logits only there is no length that they must have: the source refuses them whatever it is.
        dimension = None if classifier.knn is None else classifier.knn.dimension
        vectors = (
            np.empty((len(rows), len(given_vector)))
            if dimension is None
            else np.array([_numbers(f"row {number}, vector", row.vector, dimension) for number, row in enumerate(rows)])
        )
    return ArraySource(
        given.source,
        vectors=vectors,
        logits=np.array(
            [_numbers(f"row {number}, logits", row.logits, classifier.class_count) for number, row in enumerate(rows)]
        ),
        labels=[row.label for row in rows],
        ids=[row.external_id for row in rows] if any(row.external_id is not None for row in rows) else None,
        documents=[row.document_id for row in rows] if any(row.document_id is not None for row in rows) else None,
        row_attributes=[row.attributes for row in rows],
        memory_budget=memory_budget,
        stated=given.stated,
    )


def label_source(given: NewLabels, memory_budget: int) -> LabelTable:
    """Return labels to record as a source."""
    labels = [row.label for row in given.labels]
    # Numbers stay numbers, as the text of one may be the name of another class.
    if any(isinstance(label, str) for label in labels):
        column = pa.array([None if label is None else str(label) for label in labels], pa.string())
    else:
        column = pa.array(labels, pa.int64())
    columns = {"external_id": pa.array([row.external_id for row in given.labels], pa.string()), "label": column}
    if any(row.selection is not None for row in given.labels):
        selections = [row.selection or given.selection for row in given.labels]
        columns["selection"] = pa.array(selections, pa.string())
    return LabelTable(given.source, pa.table(columns), memory_budget)


def _array(where: str, values: Sequence[float]) -> Float32Array:
    array = np.array(values, dtype=np.float32)
    if not np.isfinite(array).all():
        position = int(np.isfinite(array).argmin())
        raise InvalidInputError(
            f"{where}[{position}]: expected a number that float32 can hold, got {values[position]!r}"
        )
    return array


def _numbers(where: str, values: Sequence[float] | None, length: int) -> Sequence[float]:
    if values is None:
        raise InvalidInputError(f"{where}: expected {length} numbers, got none; give them in every row or in no row")
    if len(values) != length:
        raise InvalidInputError(f"{where}: expected {length} numbers, got {len(values)}; {OF_NETWORK}")
    return values
