"""Arrays, tensors, tables and DataFrames as NumPy and Arrow have them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from venn_admit.errors import InvalidInputError

_TABLES = "a path, a pyarrow Table or RecordBatchReader, a pandas DataFrame, or what a hook returns"


def array_of(values: Any) -> np.ndarray[Any, Any]:
    """Return an array; of a tensor, its values on the CPU."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.numpy() if str(values.dtype) != "torch.bfloat16" else values.float().numpy()
    return np.asarray(values)


def column_of(values: Any) -> Sequence[Any]:
    """Return a column of values as a list, or as an array of numbers."""
    if hasattr(values, "detach"):
        values = array_of(values)
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        return values  # type: ignore[return-value]
    return values.tolist() if hasattr(values, "tolist") else list(values)


def attributes_of(values: Any) -> Mapping[str, Sequence[Any]]:
    """Return columns as lists of plain values, from a DataFrame, a table or a mapping of columns."""
    if isinstance(values, Mapping):
        return {str(name): column_of(column) for name, column in values.items()}
    arrow = arrow_of(values)
    table = arrow if isinstance(arrow, pa.Table) else arrow.read_all()
    return {name: table.column(name).to_pylist() for name in table.column_names}


def arrow_of(data: Any) -> pa.Table | pa.RecordBatchReader:
    """Return a table, or a stream of record batches.

    Raises:
        InvalidInputError: It is neither, nor a DataFrame that can be read as one.
    """
    if isinstance(data, (pa.Table, pa.RecordBatchReader)):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "__arrow_c_stream__"):  # polars and others
        return pa.RecordBatchReader.from_stream(data)
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns"):
        try:
            return pa.Table.from_pandas(data, preserve_index=False)
        except pa.ArrowException as error:
            raise InvalidInputError(f"the DataFrame cannot be read as a table: {error}") from error
    raise InvalidInputError(f"expected {_TABLES}, got a {type(data).__name__}")
