"""Exemplars and labels in whatever form a caller has them, as the sources that flows take."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from venn_admit.service.errors import InvalidInputError
from venn_admit.service.files.label_sources import LabelFile, LabelSource, LabelTable
from venn_admit.service.files.sources import ArraySource, ArrowSource, ExemplarSource, FileSource

ARRAYS = "arrays"
TABLE = "table"
_TABLES = "a path, a pyarrow Table or RecordBatchReader, or a pandas DataFrame"


def exemplar_source(data: Any, columns: Mapping[str, Any], *, name: str | None, memory_budget: int) -> ExemplarSource:
    """Return exemplars as a source.

    Args:
        data: A path, a table of Arrow, a reader of record batches, or a DataFrame; None if there are arrays instead.
        columns: `vectors`, `logits`, `labels`, `ids`, `documents` and `attributes`, each None if it was not given.
        name: What the source is called; None: the file's name, or `arrays` or `table`.
        memory_budget: Bytes that reading may take.

    Raises:
        InvalidInputError: Both or neither were given, or something of another type.
    """
    given = [column for column, values in columns.items() if values is not None]
    if data is not None:
        if given:
            raise InvalidInputError(f"expected either data or arrays, got both: data and {', '.join(given)}")
        if isinstance(data, (str, PathLike)):
            return FileSource(Path(data), memory_budget)
        return ArrowSource(name or TABLE, _arrow(data), memory_budget)
    if "logits" not in given:
        raise InvalidInputError("expected data, or vectors and logits, or logits only; logits are missing")
    labels = columns["labels"]
    return ArraySource(
        name or ARRAYS,
        vectors=None if columns["vectors"] is None else _floats(columns["vectors"]),
        logits=_floats(columns["logits"]),
        labels=None if labels is None else _column(labels),
        ids=None if columns["ids"] is None else _column(columns["ids"]),
        documents=None if columns["documents"] is None else _column(columns["documents"]),
        attributes=None if columns["attributes"] is None else _attributes(columns["attributes"]),
        memory_budget=memory_budget,
    )


def label_source(data: Any, *, name: str | None, memory_budget: int) -> LabelSource:
    """Return labels as a source: a path, a table of Arrow, a DataFrame, or a mapping of ids to labels.

    Raises:
        InvalidInputError: It is of another type.
    """
    if isinstance(data, (str, PathLike)):
        return LabelFile(Path(data), memory_budget)
    if isinstance(data, Mapping):
        ids, labels = list(map(str, data)), list(data.values())
        table = pa.table({"external_id": pa.array(ids, pa.string()), "label": _label_column(labels)})
        return LabelTable(name or "labels", table, memory_budget)
    arrow = _arrow(data)
    return LabelTable(name or "labels", arrow if isinstance(arrow, pa.Table) else arrow.read_all(), memory_budget)


def vector_of(values: Any, dimension: int | None, name: str = "vector") -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return a vector r, (D,) float32, or logits f, (C,) float32; name: what messages call it.

    dimension: the length that it must have; None if a flow refuses it whatever its length.

    Raises:
        InvalidInputError: It has another length, or holds what float32 cannot.
    """
    with np.errstate(over="ignore"):
        vector = np.asarray(_floats(values), dtype=np.float32)
    if dimension is not None and vector.shape != (dimension,):
        raise InvalidInputError(f"{name}: expected shape ({dimension},), got {vector.shape}")
    if not np.isfinite(vector).all():
        position = int(np.isfinite(vector).argmin())
        raise InvalidInputError(f"{name}[{position}]: expected a finite number that float32 can hold")
    return vector


def _arrow(data: Any) -> pa.Table | pa.RecordBatchReader:
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


def _floats(values: Any) -> np.ndarray[Any, Any]:
    """Return an array; of a tensor, its values on the CPU."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.numpy() if str(values.dtype) != "torch.bfloat16" else values.float().numpy()
    return np.asarray(values)


def _column(values: Any) -> Sequence[Any]:
    """Return a column of values as a list, or as an array of numbers."""
    if hasattr(values, "detach"):
        values = _floats(values)
    if isinstance(values, np.ndarray) and values.dtype.kind in "iuf":
        return values  # type: ignore[return-value]
    return values.tolist() if hasattr(values, "tolist") else list(values)


def _attributes(values: Any) -> Mapping[str, Sequence[Any]]:
    """Return columns as lists of plain values, from a DataFrame, a table or a mapping of columns."""
    if isinstance(values, Mapping):
        return {str(name): _column(column) for name, column in values.items()}
    arrow = _arrow(values)
    table = arrow if isinstance(arrow, pa.Table) else arrow.read_all()
    return {name: table.column(name).to_pylist() for name in table.column_names}


def _label_column(labels: Iterable[Any]) -> pa.Array:
    """Return labels as Arrow has them; class names and numbers mixed become text."""
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels]
    if any(isinstance(label, str) for label in plain):
        return pa.array([None if label is None else str(label) for label in plain], pa.string())
    try:
        return pa.array(plain)
    except pa.ArrowException as error:
        raise InvalidInputError(f"labels: expected class numbers or class names: {error}") from error
