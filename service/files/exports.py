"""Files out, each complete or absent: tables as Parquet, settings as JSON.

The schemas are the contract with those who read the files: names, order and types of the columns.
"""

import json
import math
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from service.core.types import BoolArray, IntArray
from service.errors import InvalidInputError

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
    }
)
EXEMPLARS_SCHEMA = pa.schema(
    {
        "external_id": pa.string(),
        "split": pa.string(),
        "label": pa.int32(),
        "predicted_by_network": pa.int32(),
    }
)
UNLABELLED_SCHEMA = pa.schema(
    {
        "external_id": pa.string(),
        "document_id": pa.string(),
        "predicted_by_network": pa.int32(),
    }
)
NEIGHBOURS_SCHEMA = pa.schema(
    {
        "external_id": pa.string(),
        "neighbour_ids": pa.list_(pa.string()),
        "distances": pa.list_(pa.float64()),
    }
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
    """Return a (n, k) array as n lists of length k, of the array's own type."""
    row_count, width = matrix.shape
    offsets = np.arange(row_count + 1) * width  # (n + 1,)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(matrix.reshape(-1)))  # (n * k,)


def set_column(included: BoolArray) -> pa.ListArray:
    """Return prediction sets, (n, C) bool, as n lists of the classes included, ascending, int32."""
    offsets = np.concatenate(([0], included.sum(axis=1).cumsum()))  # (n + 1,)
    classes = np.nonzero(included)[1]
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(classes, pa.int32()))


def coded_column(codes: IntArray, words: Sequence[str]) -> pa.StringArray:
    """Return words[code] for each of the (n,) codes, null where a code is -1, such as `Selection.reason`."""
    return pa.array(words, pa.string()).take(nullable(codes, codes < 0))


def nullable(values: Any, null_mask: BoolArray) -> pa.Array:
    """Return the n values (numpy, list or Arrow) as a column that is null where the (n,) mask is true."""
    column = values if isinstance(values, pa.Array) else pa.array(values)
    return pc.if_else(pa.array(null_mask), pa.scalar(None, column.type), column)


class TableWriter:
    """Writes a Parquet file batch by batch; the file appears under its name when the context ends well.

    Until then the rows are in a file beside it that ends in `.partial`, which an error removes; whatever
    had the name before stays as it was.

    Raises InvalidInputError where the path cannot be written, and for columns that are not the schema's.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._schema = schema
        self._context = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as context:
            file = context.enter_context(_replacing(self._path))
            self._writer = context.enter_context(pq.ParquetWriter(file, self._schema, compression="zstd"))
            self._context = context.pop_all()
        return self

    def write(self, columns: Mapping[str, Any]) -> None:
        """Append rows: for every column of the schema n values, as a numpy array, a list or an Arrow array.

        A (n, k) numpy array is n lists. Values are converted to the column's type; one that does not fit is
        an error.
        """
        if set(columns) != set(self._schema.names):
            raise InvalidInputError(f"expected the columns {self._schema.names}, got {list(columns)}")
        try:
            arrays = [_convert(columns[field.name], field) for field in self._schema]
            batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        except (pa.ArrowException, ValueError) as error:
            raise InvalidInputError(f"{self._path}: expected values that fit the columns, got {error}") from error
        with _writing(self._path):
            self._writer.write_batch(batch)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        with _writing(self._path):
            return self._context.__exit__(kind, error, trace)


def write_json(path: Path, payload: Any) -> None:
    """Write dictionaries, lists, texts and numbers (Python's or numpy's) as JSON, atomically.

    JSON has no infinities and no NaN: they are written as the texts "inf", "-inf" and "nan".

    Raises InvalidInputError where the path cannot be written; TypeError for a value JSON does not know.
    """
    text = json.dumps(finite_json(payload), indent=2, allow_nan=False) + "\n"
    with _replacing(path) as file, _writing(path):
        file.write(text.encode())


def _convert(values: Any, field: pa.Field) -> pa.Array:
    if isinstance(values, np.ndarray) and values.ndim == 2:
        values = list_column(values)
    column = values if isinstance(values, pa.Array) else pa.array(values)
    return column.cast(field.type)


def finite_json(value: Any) -> Any:
    """Return the value with what JSON cannot hold replaced: arrays by lists, NaN and infinities by text."""
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


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a new file beside the path; rename it to the path when the context ends well, else remove it."""
    with _writing(path):
        occupied = path.exists() and not path.is_file()
    if occupied:  # a rename would replace even a device
        raise InvalidInputError(f"{path}: expected the name of a file, got that of something else")
    partial = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")
    with _writing(path):
        file = partial.open("xb")
    try:
        with file:
            yield file
            with _writing(path):
                file.flush()
                os.fsync(file.fileno())
        with _writing(path):
            partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInputError(
            f"{path}: expected a place to write to, got {error}; check the folder, its rights and its room"
        ) from error


def check_writable(path: Path) -> None:
    """Raise InvalidInputError unless a file can be put at `path`: before long work, not after it."""
    occupied = path.exists() and not path.is_file()
    if occupied or not path.parent.is_dir() or not os.access(path.parent, os.W_OK | os.X_OK):
        raise InvalidInputError(
            f"{path}: expected the name of a file in a folder that exists and can be written; check the folder"
        )
