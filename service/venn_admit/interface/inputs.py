"""Exemplars and labels in whatever form a caller has them, as the sources that flows take."""

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from venn_admit.core.names import check_source, refused_as
from venn_admit.errors import InvalidInputError
from venn_admit.files.label_sources import LabelFile, LabelSource, LabelTable
from venn_admit.files.records import Stated
from venn_admit.files.sources import ArraySource, ArrowSource, ExemplarSource, FileSource
from venn_admit.interface.arrays import UNREADABLE, array_of, arrow_of, attributes_of, column_of
from venn_admit.interface.hooks.outputs import HookedBatches
from venn_admit_client.arrays import is_missing
from venn_admit_client.interface import Rows

ARRAYS = "arrays"
TABLE = "table"


COLUMNS = ("vectors", "logits", "labels", "ids", "documents", "attributes")


def exemplar_source(rows: Rows, *, memory_budget: int) -> ExemplarSource:
    """Return exemplars as a source, which is called as `rows.source` says, or after the file or the model.

    Args:
        rows: Its `data` are a path, a table of Arrow, a reader of record batches, a DataFrame, or what a hook returns;
            None if there are arrays instead.
        memory_budget: Bytes that reading may take.

    Raises:
        InvalidInputError: Both or neither were given, something of another type, or what no array or table can be; or
            the source is no name.
    """
    columns = {name: getattr(rows, name) for name in COLUMNS}
    data, name, stated = rows.data, _checked(rows.source), Stated(rows.extractor, rows.probabilities)
    given = [column for column, values in columns.items() if values is not None]
    if data is not None:
        if given:
            raise InvalidInputError(f"expected either data or arrays, got both: data and {', '.join(given)}")
        if isinstance(data, (str, PathLike)):
            return FileSource(Path(data), memory_budget, stated)
        if isinstance(data, HookedBatches):
            return data.source(name, memory_budget=memory_budget, stated=stated)
        return ArrowSource(name or TABLE, arrow_of(data), memory_budget, stated)
    if "logits" not in given:
        raise InvalidInputError("expected data, or vectors and logits, or logits only; logits are missing")
    return ArraySource(
        name or ARRAYS,
        vectors=None if columns["vectors"] is None else array_of(columns["vectors"], "vectors"),
        logits=array_of(columns["logits"], "logits"),
        labels=None if columns["labels"] is None else column_of(columns["labels"], "labels"),
        ids=None if columns["ids"] is None else column_of(columns["ids"], "ids"),
        documents=None if columns["documents"] is None else column_of(columns["documents"], "documents"),
        attributes=None if columns["attributes"] is None else attributes_of(columns["attributes"]),
        memory_budget=memory_budget,
        stated=stated,
    )


def label_source(data: Any, *, name: str | None, memory_budget: int) -> LabelSource:
    """Return labels as a source: a path, a table of Arrow, a DataFrame, or a mapping of ids to labels.

    Raises:
        InvalidInputError: It is of another type, or cannot be read as a table; or the source is no name.
    """
    name = _checked(name)
    if isinstance(data, (str, PathLike)):
        return LabelFile(Path(data), memory_budget)
    if isinstance(data, Mapping):
        try:
            ids = pa.array(list(map(str, data)), pa.string())
        except UNREADABLE as error:
            raise InvalidInputError(f"labels: expected ids of exemplars: {error}") from error
        table = pa.table({"external_id": ids, "label": _label_column(data.values())})
        return LabelTable(name or "labels", table, memory_budget)
    arrow = arrow_of(data, expected="labels by ids, a path, a pyarrow Table or a DataFrame")
    return LabelTable(name or "labels", arrow if isinstance(arrow, pa.Table) else arrow.read_all(), memory_budget)


def _checked(source: str | None) -> str | None:
    if source is not None:
        with refused_as("source"):
            check_source(source)
    return source


def vector_of(values: Any, dimension: int | None, name: str = "vector") -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return a vector r, (D,) float32, or logits f, (C,) float32; name: what messages call it.

    dimension: the length that it must have; None if a flow refuses it whatever its length.

    Raises:
        InvalidInputError: It has another length, is not of numbers, or holds what float32 cannot.
    """
    given = array_of(values, name)
    if given.dtype.kind not in "fiu":
        raise InvalidInputError(f"{name}: expected an array of floats, got {given.dtype}; cast it")
    with np.errstate(over="ignore"):
        vector = given.astype(np.float32)
    if dimension is not None and vector.shape != (dimension,):
        raise InvalidInputError(f"{name}: expected shape ({dimension},), got {vector.shape}")
    if not np.isfinite(vector).all():
        position = int(np.isfinite(vector).argmin())
        raise InvalidInputError(f"{name}[{position}]: expected a finite number that float32 can hold")
    return vector


def _label_column(labels: Iterable[Any]) -> pa.Array:
    """Return labels as Arrow has them; class names and numbers mixed become text."""
    scalars = (label.item() if getattr(label, "ndim", None) == 0 else label for label in labels)
    plain = [None if is_missing(label) else label for label in scalars]
    if any(isinstance(label, str) for label in plain):
        plain = [None if label is None else str(label) for label in plain]
    try:
        return pa.array(plain)
    except UNREADABLE as error:
        raise InvalidInputError(f"labels: expected class numbers or class names: {error}") from error
