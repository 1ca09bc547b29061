"""Files and tables as the bodies of requests, and decisions as tables. All this needs pyarrow, which is an extra."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from tempfile import TemporaryFile
from types import ModuleType
from typing import IO, Any

import numpy as np

from .arrays import Array
from .bodies import ARROW_STREAM, CSV, PARQUET
from .errors import InvalidInputError
from .inputs import attribute_columns, column, texts
from .naming import type_text

_EXEMPLARS = {".parquet": PARQUET, ".arrows": ARROW_STREAM}
_LABELS = {**_EXEMPLARS, ".csv": CSV}
# How many rows a message of a stream has, so that the service need not hold them all.
_BATCH_ROWS = 8192

Body = tuple[IO[bytes], str]


def arrow() -> ModuleType:
    """Return pyarrow. Raises InvalidInputError if it is not installed."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise InvalidInputError(
            "tables, and files that are scored, need pyarrow, which is not installed: pip install "
            "'venn-admit-client[arrow]'"
        ) from error
    module: ModuleType = pa
    return module


@contextmanager
def exemplar_body(data: Any, columns: Mapping[str, Any], attributes: Mapping[str, Any] | None) -> Iterator[Body]:
    """Open exemplars as a file to send, and say of which media type it is.

    Args:
        data: A path ending in .parquet or .arrows, a table of Arrow, or a DataFrame; None if there are columns.
        columns: Arrays and lists of n rows each, by the names that they have in a file; None: not given.
        attributes: Columns of n values each.

    Raises:
        InvalidInputError: Both or neither were given, or something of another type.
    """
    given = [name for name, values in {**columns, "attributes": attributes}.items() if values is not None]
    if data is not None and given:
        raise InvalidInputError(f"expected either data or arrays, got both: data and {', '.join(given)}")
    if data is None and "logits" not in given:
        raise InvalidInputError("expected data, or vectors and logits, or logits only; logits are missing")
    with _body(_of_columns(columns, attributes) if data is None else data, _EXEMPLARS) as body:
        yield body


@contextmanager
def label_body(labels: Any) -> Iterator[Body]:
    """Open labels as a file to send, and say of which media type it is. Raises InvalidInputError."""
    with _body(labels, _LABELS) as body:
        yield body


@contextmanager
def _body(data: Any, kinds: Mapping[str, str]) -> Iterator[Body]:
    if isinstance(data, (str, PathLike)):
        path = Path(data)
        if path.suffix.lower() not in kinds:
            raise InvalidInputError(f"{path}: expected a name ending in {', '.join(kinds)}; save it as one of them")
        try:
            opened = path.open("rb")
        except OSError as error:
            raise InvalidInputError(f"{path} cannot be read: {error.strerror or error}; check the path") from error
        with opened as file:
            yield file, kinds[path.suffix.lower()]
        return
    reader = _reader(data)
    with TemporaryFile() as file:
        with arrow().ipc.new_stream(file, reader.schema) as writer:
            for batch in reader:
                for start in range(0, batch.num_rows, _BATCH_ROWS):
                    writer.write_batch(batch.slice(start, _BATCH_ROWS))
        yield file, ARROW_STREAM


def _reader(data: Any) -> Any:
    """Return record batches to be read once."""
    pa = arrow()
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return data.to_reader()
    if isinstance(data, pa.RecordBatchReader):
        return data
    if hasattr(data, "__arrow_c_stream__"):  # polars, pandas and others
        try:
            return pa.RecordBatchReader.from_stream(data)
        except (pa.ArrowException, ValueError) as error:
            raise InvalidInputError(f"the {type(data).__name__} cannot be read as a table: {error}") from error
    raise InvalidInputError(f"expected a path, a pyarrow Table or a DataFrame, got {type_text(data)}")


def _of_columns(columns: Mapping[str, Any], attributes: Any) -> Any:
    """Return a table of arrays and lists. Raises InvalidInputError if they cannot be one."""
    pa = arrow()
    given = {name: _arrow_column(name, values) for name, values in columns.items() if values is not None}
    try:
        if attributes is not None and (columns_of := attribute_columns(attributes)):
            fields = [pa.array(values) for values in columns_of.values()]
            given["attributes"] = pa.StructArray.from_arrays(fields, list(columns_of))
        return pa.table(given)
    except (pa.ArrowException, ValueError) as error:
        lengths = ", ".join(f"{name} has {len(values)}" for name, values in given.items())
        raise InvalidInputError(f"expected columns of one length, got {lengths}: {error}") from error


def _arrow_column(name: str, values: Any) -> Any:
    pa = arrow()
    if isinstance(values, np.ndarray) and values.ndim == 2:
        array: Array = np.ascontiguousarray(values)
        return pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])
    listed = texts(values) if name in ("external_id", "document_id") else column(values)
    assert listed is not None
    if any(isinstance(value, str) for value in listed):
        return pa.array([None if value is None else str(value) for value in listed], pa.string())
    try:
        return pa.array(listed)
    except pa.ArrowException as error:
        raise InvalidInputError(f"{name}: expected class numbers or class names: {error}") from error


def read_parquet(file: IO[bytes]) -> Any:
    """Return the table in a Parquet file."""
    arrow()
    from pyarrow import parquet

    return parquet.read_table(file)
