"""Labels that came for stored exemplars, from CSV or Parquet: external_id, label[, selection]."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from service.core.types import UNKNOWN_LABEL, IntArray
from service.errors import InvalidInputError
from service.files.records import check_is_file, duplicate_ids, fault, reading

SELECTIONS = ("random", "selected")
COLUMNS = ("external_id", "label", "selection")


@dataclass(frozen=True, slots=True, eq=False)
class LabelRows:
    """A file of labels, checked.

    external_ids: n strings, each once. labels: (n,) int64 in [0, C), -1 where the label is taken back.
    selections: n of `SELECTIONS`.
    """

    external_ids: list[str]
    labels: IntArray
    selections: list[str]


def read_labels(path: Path, *, class_count: int, selection: str, retract: bool) -> LabelRows:
    """Read a file of labels, .csv or .parquet, whole.

    The columns: `external_id`, text; `label`, a class number 0..C-1; optional `selection`, one of `SELECTIONS`.
    selection: of all rows, where the file has no such column. retract: whether an empty label takes the stored
    one back; it is refused otherwise. In CSV the first line names the columns.

    Raises InvalidInputError naming the row (counted from 0) and column, what was expected and what came.
    """
    if selection not in SELECTIONS:
        raise InvalidInputError(f"selection: expected {' or '.join(SELECTIONS)}, got {selection!r}")
    check_is_file(path)
    table = _reader(path)(path)
    _check_columns(path, table)
    external_ids = _external_ids(path, table.column("external_id"))
    selections = (
        _selections(path, table.column("selection")) if "selection" in table.column_names else [selection] * len(table)
    )
    return LabelRows(external_ids, _labels(path, table.column("label"), class_count, retract), selections)


def _reader(path: Path) -> Callable[[Path], pa.Table]:
    match path.suffix.lower():
        case ".csv":
            return _read_csv
        case ".parquet":
            return _read_parquet
        case other:
            got = repr(other) if other else "no ending"
            raise InvalidInputError(f"{path}: expected a name ending in .csv or .parquet, got {got}")


def _read_csv(path: Path) -> pa.Table:
    # As text: an id of digits keeps its leading zeros, and what is no number is refused below, with its row.
    types = dict.fromkeys(COLUMNS, pa.string())
    convert = pa_csv.ConvertOptions(column_types=types, strings_can_be_null=True, null_values=[""])
    with reading(path, "CSV", pa.ArrowException, ValueError):
        return pa_csv.read_csv(path, convert_options=convert)


def _read_parquet(path: Path) -> pa.Table:
    with reading(path, "parquet", pa.ArrowException, ValueError), pq.ParquetFile(path) as file:
        return file.read()


def _check_columns(path: Path, table: pa.Table) -> None:
    names = table.column_names
    if sorted(set(names)) != sorted(names) or not {"external_id", "label"} <= set(names) <= set(COLUMNS):
        expected = "external_id, label and, if you like, selection, each once"
        raise fault(path, "columns", expected, ", ".join(map(ascii, names)))
    if not len(table):
        raise fault(path, "table", "at least one row", 0)


def _external_ids(path: Path, column: pa.ChunkedArray) -> list[str]:
    values = _texts(path, "external_id", column)
    for row, value in enumerate(values):
        if value is None:
            raise fault(path, f"row {row}, external_id", "text", "nothing", "say which exemplar the label is of")
    ids = [str(value) for value in values]
    for external_id, rows in duplicate_ids(ids).items():
        raise fault(path, f"rows {rows[0]} and {rows[1]}, external_id", "every id once", f"{external_id!r} twice")
    return ids


def _selections(path: Path, column: pa.ChunkedArray) -> list[str]:
    values = _texts(path, "selection", column)
    for row, value in enumerate(values):
        if value not in SELECTIONS:
            raise fault(path, f"row {row}, selection", " or ".join(SELECTIONS), repr(value or ""))
    return [str(value) for value in values]


def _texts(path: Path, name: str, column: pa.ChunkedArray) -> list[str | None]:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not any(is_kind(kind) for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_null)):
        raise fault(path, f"column {name!r}", "string", column.type, "cast it")
    values: list[str | None] = column.to_pylist()
    return values


def _labels(path: Path, column: pa.ChunkedArray, class_count: int, retract: bool) -> IntArray:
    labels = np.empty(len(column), dtype=np.int64)
    for row, value in enumerate(_label_values(path, column)):
        where = f"row {row}, label"
        if value is None:
            if not retract:
                raise fault(path, where, "a label", "nothing", "to take labels back, ask for that")
            labels[row] = UNKNOWN_LABEL
            continue
        number = _whole_number(value)
        if number is None or not 0 <= number < class_count:
            raise fault(path, where, f"a class number 0..{class_count - 1}", repr(value))
        labels[row] = number
    return labels


def _label_values(path: Path, column: pa.ChunkedArray) -> list[Any]:
    kinds = (pa.types.is_integer, pa.types.is_string, pa.types.is_null)
    if not any(is_kind(column.type) for is_kind in kinds):
        raise fault(path, "column 'label'", "an integer type", column.type, "cast it")
    values: list[Any] = (
        pc.utf8_trim_whitespace(column).to_pylist() if column.type == pa.string() else column.to_pylist()
    )
    return values


def _whole_number(value: object) -> int | None:
    if isinstance(value, str):
        return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else None
    return value if isinstance(value, int) else None
