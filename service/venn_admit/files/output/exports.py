"""The form in which the contents of the store are written: the columns of tables, and settings as JSON.

The schemas are the contract with the readers of the files: names, order and types of the columns.
"""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from venn_admit.core.evidence import ABERS, ADMIT, PREDICTION, SHARED, VERDICT, VIEW, Field, Kind
from venn_admit.files.output.atomic import replacing, writing

# Most of what an answer holds.
_AS_IT_IS = frozenset({str, int, bool, type(None)})
_TYPES = {
    Kind.INTEGER: pa.int32(),
    Kind.CLASS: pa.int32(),
    Kind.REAL: pa.float64(),
    Kind.UNBOUNDED: pa.float64(),
    Kind.REASON: pa.string(),
    Kind.INTEGERS: pa.list_(pa.int32()),
    Kind.UNBOUNDEDS: pa.list_(pa.float64()),
    Kind.BITS: pa.list_(pa.int32()),
}


def _columns(fields: Iterable[Field]) -> dict[str, pa.DataType]:
    return {field.out: _TYPES[field.kind] for field in fields if field.out is not None}


_MATCH_COUNT, _DISTANCE, _LOGITS = VIEW
SCORES_SCHEMA = pa.schema(
    {
        "external_id": pa.string(),
        **_columns((*PREDICTION, _LOGITS, _MATCH_COUNT, _DISTANCE, *ADMIT.fields, *VERDICT)),
        "calibration": pa.int64(),
        "predicted_class": pa.string(),
        "decided_class": pa.string(),
        "method": pa.string(),
        **_columns(ABERS.fields),
    }
)
SCORE_FIELDS = {field.out: field for field in (*SHARED, *ADMIT.fields, *ABERS.fields) if field.out is not None}
"""The fields that `score` writes, by column."""

SERVED_SCHEMA = pa.schema({"external_id": pa.string(), "served_class": pa.string(), "stage": pa.int32()})
EXEMPLARS_SCHEMA = pa.schema(
    {"external_id": pa.string(), "split": pa.string(), "label": pa.int32(), "predicted_by_network": pa.int32()}
)
# Without predictions, so that who labels does not take them over.
UNLABELLED_SCHEMA = pa.schema({"external_id": pa.string(), "label": pa.string(), "document_id": pa.string()})
NEIGHBOURS_SCHEMA = pa.schema(
    {"external_id": pa.string(), "neighbour_ids": pa.list_(pa.string()), "distances": pa.list_(pa.float64())}
)
APPROXIMATIONS_SCHEMA = pa.schema(
    {
        "external_id": pa.string(),
        "split": pa.string(),
        "logits": pa.list_(pa.float64()),
        "predicted": pa.int32(),
        "q": pa.int32(),
        "d": pa.float64(),
    }
)
CALIBRATION_SCHEMA = pa.schema(
    {
        "external_id": pa.string(),
        "split": pa.string(),
        "label": pa.int32(),
        "predicted": pa.int32(),
        "q": pa.int32(),
        "d": pa.float64(),
        "score": pa.float64(),
        "set": pa.list_(pa.int32()),
    }
)


def list_column(matrix: npt.NDArray[Any]) -> pa.ListArray:
    """Return an (n, k) array as n lists of length k, of the array's own type."""
    row_count, width = matrix.shape
    offsets = np.arange(row_count + 1) * width  # (n + 1,)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(matrix.reshape(-1)))  # (n * k,)


def write_json(path: Path, payload: Any) -> None:
    """Write dictionaries, lists, texts and numbers (Python's or numpy's) as JSON, atomically.

    JSON has no infinities and no NaN; they are written as the texts "inf", "-inf" and "nan".

    Raises InvalidInputError if the path cannot be written, and TypeError for a value that JSON does not know.
    """
    text = json.dumps(finite_json(payload), indent=2, allow_nan=False) + "\n"
    with replacing(path) as file, writing(path):
        file.write(text.encode())


def finite_json(value: Any) -> Any:
    """Return the value without what JSON cannot hold: arrays become lists, NaN and infinities become text."""
    if type(value) is float:  # as most are
        return value if math.isfinite(value) else str(value)
    match value:
        case dict():
            return {key: item if type(item) in _AS_IT_IS else finite_json(item) for key, item in value.items()}
        case list() | tuple():
            return [item if type(item) in _AS_IT_IS else finite_json(item) for item in value]
        case np.ndarray() | np.generic():
            return finite_json(value.tolist())
    return value


def classes_of(bits: str) -> list[int]:
    """Return the classes of a set that the database writes as a bit string, one bit per class."""
    return [position for position, bit in enumerate(bits) if bit == "1"]
