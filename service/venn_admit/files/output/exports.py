"""The form in which the contents of the store are written: the columns of tables, and settings as JSON.

The schemas are the contract with the readers of the files: names, order and types of the columns.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from venn_admit.files.output.atomic import replacing, writing

SCORES_SCHEMA = pa.schema(
    {
        "external_id": pa.string(),
        "predicted": pa.int32(),
        "logits": pa.list_(pa.float64()),
        "q": pa.int32(),
        "d": pa.float64(),
        "set": pa.list_(pa.int32()),
        "band_size": pa.list_(pa.int32()),
        "threshold": pa.list_(pa.float64()),
        "category_size": pa.int32(),
        "upweight": pa.float64(),
        "lower": pa.float64(),
        "upper": pa.float64(),
        "decision": pa.int32(),
        "reason": pa.string(),
        "calibration": pa.int64(),
        "predicted_class": pa.string(),
        "decided_class": pa.string(),
        "method": pa.string(),
        "score": pa.float64(),
    }
)
EXEMPLARS_SCHEMA = pa.schema(
    {"external_id": pa.string(), "split": pa.string(), "label": pa.int32(), "predicted_by_network": pa.int32()}
)
UNLABELLED_SCHEMA = pa.schema(
    {"external_id": pa.string(), "document_id": pa.string(), "predicted_by_network": pa.int32()}
)
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
    match value:
        case np.ndarray() | np.generic():
            return finite_json(value.tolist())
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {key: finite_json(item) for key, item in value.items()}
        case list() | tuple():
            return [finite_json(item) for item in value]
    return value


def classes_of(bits: str) -> list[int]:
    """Return the classes of a set that the database writes as a bit string, one bit per class."""
    return [position for position, bit in enumerate(bits) if bit == "1"]
