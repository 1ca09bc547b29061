"""Arrays, tensors, tables and DataFrames as NumPy and Arrow have them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from venn_admit.errors import InvalidInputError
from venn_admit_client import arrays
from venn_admit_client.arrays import Array, is_tensor
from venn_admit_client.naming import type_text

_TABLES = (
    "a path, a pyarrow Table or RecordBatchReader, a DataFrame, or what a hook returns, or else arrays by their names, "
    "vectors and logits"
)
UNREADABLE = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""What pyarrow raises for values that it cannot hold."""


def array_of(values: Any, name: str = "array") -> Array:
    """Return an array; of a tensor, or of a list of tensors, their values on the CPU.

    name: what messages call it.

    Raises:
        InvalidInputError: Rows have different lengths, some values are masked, or they cannot be an array.
    """
    return arrays.array_of(values, name, InvalidInputError)


def column_of(values: Any, name: str = "column") -> Sequence[Any]:
    """Return a column of values as a list, or as an array of numbers or of rows; None stands for what is masked.

    name: what messages call it.

    Raises:
        InvalidInputError: It is a text, a mapping or a single value.
    """
    values = arrays.values_of(values, name, InvalidInputError)
    has_tensors = isinstance(values, (list, tuple)) and any(map(is_tensor, values))
    if has_tensors or is_tensor(values) or getattr(values, "ndim", 1) > 1:
        values = array_of(values, name)
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        values = _dates_of(values)
    is_plain = isinstance(values, np.ndarray) and (values.ndim > 1 or values.dtype.kind in "iuf")
    if is_plain and not np.ma.is_masked(values):
        return values  # type: ignore[no-any-return]
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _dates_of(values: Array) -> Array:
    """Return dates and times as Python has them, as text if they are finer than it has, and None for NaT."""
    given = np.ma.filled(values, values.dtype.type("NaT", np.datetime_data(values.dtype)[0]))
    in_microseconds = given.astype("M8[us]")
    is_exact = np.isnat(given) | (in_microseconds == given)
    return np.where(is_exact, in_microseconds.astype(object), np.datetime_as_string(given))


def attributes_of(values: Any) -> Mapping[str, Sequence[Any]]:
    """Return columns as lists of plain values, from a DataFrame, a table or a mapping of columns."""
    if isinstance(values, Mapping):
        return {str(name): column_of(column, f"attribute {name!r}") for name, column in values.items()}
    arrow = arrow_of(values, expected="attributes as columns by name, a pyarrow Table or a DataFrame")
    table = arrow if isinstance(arrow, pa.Table) else arrow.read_all()
    return {name: table.column(name).to_pylist() for name in table.column_names}


def arrow_of(data: Any, *, expected: str = _TABLES) -> pa.Table | pa.RecordBatchReader:
    """Return a table, or a stream of record batches; expected: what messages say that data may be.

    Raises:
        InvalidInputError: It is neither, nor a DataFrame that can be read as one.
    """
    if isinstance(data, (pa.Table, pa.RecordBatchReader)):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    is_of_pandas = type(data).__module__.partition(".")[0] == "pandas"
    try:
        if is_of_pandas and hasattr(data, "columns"):
            is_named = any(name is not None for name in data.index.names)
            return pa.Table.from_pandas(data, preserve_index=None if is_named else False)
        if not is_of_pandas and hasattr(data, "__arrow_c_stream__"):  # polars and others
            return pa.RecordBatchReader.from_stream(data)
    except UNREADABLE as error:
        said = "; ".join(map(str, error.args))  # the column is named in the second
        raise InvalidInputError(f"the {type(data).__name__} cannot be read as a table: {said}") from error
    raise InvalidInputError(f"expected {expected}, got {type_text(data)}")
