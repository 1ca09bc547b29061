"""Labels for stored exemplars, from CSV, Parquet or Arrow: external_id, label[, selection]."""

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.names import check_stored_id
from venn_admit.core.types import UNKNOWN_LABEL, IntArray
from venn_admit.errors import Code, InvalidInputError
from venn_admit.files.arrow.types import DAMAGE, is_label, is_name, is_text, object_bytes, to_list
from venn_admit.files.inputs import OBJECT_BYTES, Place, check_is_file, input_error, reading, too_large
from venn_admit.files.label_values import ClassNumbers
from venn_admit.files.parquet.footer import read_footer
from venn_admit.files.parquet.reader import batches_within
from venn_admit.files.records import duplicate_ids

SELECTIONS = ("random", "review", "selected")
SELECTION_NAMES = f"{', '.join(SELECTIONS[:-1])} or {SELECTIONS[-1]}"
COLUMNS = ("external_id", "label", "selection")

_TYPES = {
    "external_id": (is_name, "string or an integer type"),
    "label": (is_label, "class numbers or class names"),
    "selection": (is_text, "string"),
}
_BATCH_ROWS = 8192
_CSV_BLOCK_BYTES = 1 << 20
_CSV_HEADER_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class LabelRows:
    """A file of labels, checked.

    external_ids: n strings, each once. labels: (n,) int64 in [0, C), -1 if the label is retracted. selections: n of
    `SELECTIONS`. ignored: names of columns that mean nothing here.
    """

    external_ids: list[str]
    labels: IntArray
    selections: list[str]
    ignored: list[str]


@dataclass(frozen=True, slots=True)
class LabelRules:
    """How the rows of labels are read.

    Attributes:
        class_names: The C classes, which labels name, or number 0..C-1.
        selection: The selection of all rows if there is no such column; one of `SELECTIONS`.
        retract: Whether an empty label retracts the stored one; otherwise it is refused.
    """

    class_names: Sequence[str]
    selection: str
    retract: bool = False

    def __post_init__(self) -> None:
        """Raise InvalidInputError at an unknown selection."""
        if self.selection not in SELECTIONS:
            raise InvalidInputError(f"selection: expected {SELECTION_NAMES}, got {self.selection!r}")


def read_labels(path: Path, rules: LabelRules, memory_budget: int = DEFAULT_MEMORY_BUDGET) -> LabelRows:
    """Read a whole file of labels, .csv or .parquet.

    The columns are `external_id`, text or integer; `label`, a class or its number; and optionally `selection`. Other
    columns are ignored. In CSV, the first line names the columns.

    Raises:
        InvalidInputError: The file is invalid. The message names the row (counted from 0) and column, what
            was expected and received.
    """
    check_is_file(path)
    match path.suffix.lower():
        case ".csv":
            names = _csv_names(path)
            batches = _csv_batches(path, _wanted(path, names))
        case ".parquet":
            footer = read_footer(path, memory_budget)
            names = footer.schema.names
            batches = batches_within(path, footer, _wanted(path, names, footer.schema), _BATCH_ROWS, memory_budget)
        case other:
            got = repr(other) if other else "no ending"
            raise InvalidInputError(f"{path}: expected a name ending in .csv or .parquet, got {got}")
    return _checked(path, names, _collect(path, batches, memory_budget), rules)


def read_label_batches(
    place: Place, schema: pa.Schema, batches: Iterable[pa.RecordBatch], rules: LabelRules, memory_budget: int
) -> LabelRows:
    """Take labels from record batches with the columns that a file of labels has; see `read_labels`."""
    wanted = _wanted(place, schema.names, schema)
    parts = (
        batch.slice(start, _BATCH_ROWS).select(wanted)
        for batch in batches
        for start in range(0, batch.num_rows, _BATCH_ROWS)
    )
    return _checked(place, schema.names, _collect(place, parts, memory_budget), rules)


def _checked(place: Place, names: list[str], columns: dict[str, list[Any]], rules: LabelRules) -> LabelRows:
    external_ids = _external_ids(place, columns["external_id"])
    return LabelRows(
        external_ids,
        _labels(place, columns["label"], rules),
        _selections(place, columns["selection"]) if "selection" in columns else [rules.selection] * len(external_ids),
        [name for name in names if name not in COLUMNS],
    )


def _csv_names(path: Path) -> list[str]:
    """The names in the first line."""
    with reading(path, "CSV file", ValueError, csv.Error), path.open(encoding="utf-8-sig", newline="") as file:
        line = file.readline(_CSV_HEADER_BYTES)
        if len(line) == _CSV_HEADER_BYTES:
            raise ValueError(f"its first line has more than {_CSV_HEADER_BYTES:,} characters")
        return next(csv.reader([line]), [])


def _csv_batches(path: Path, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    # Read as text: an id of digits keeps its leading zeros, and a bad label is refused below, with its row.
    convert = pa_csv.ConvertOptions(
        column_types=dict.fromkeys(COLUMNS, pa.string()),
        include_columns=wanted,
        strings_can_be_null=True,
        null_values=[""],
    )
    options = pa_csv.ReadOptions(block_size=_CSV_BLOCK_BYTES, use_threads=False)
    refused: list[pa_csv.InvalidRow] = []

    def refuse(row: pa_csv.InvalidRow) -> str:
        refused.append(row)
        return "error"

    with reading(path, "CSV file", pa.ArrowException, ValueError):
        try:
            parse = pa_csv.ParseOptions(invalid_row_handler=refuse)
            with pa_csv.open_csv(path, read_options=options, parse_options=parse, convert_options=convert) as batches:
                yield from batches
        except pa.ArrowInvalid as error:
            if not refused:
                raise
            row = refused[0]  # Arrow counts from 1, and the line of names too
            expected = f"{row.expected_columns} values"
            raise input_error(path, f"row {row.number - 2}", expected, row.actual_columns) from error


def _wanted(place: Place, names: list[str], schema: pa.Schema | None = None) -> list[str]:
    """The names of the columns to read; InvalidInputError if one is missing, occurs twice or is of a wrong type."""
    wanted = [name for name in names if name in COLUMNS]
    if sorted(set(wanted)) != sorted(wanted) or not {"external_id", "label"} <= set(wanted):
        expected = "external_id, label and optionally selection, each once"
        advice = "separate them by commas" if {";", "\t"} & set("".join(names)) else ""
        raise input_error(place, "columns", expected, ", ".join(map(repr, names)) or "none", advice)
    if schema is not None:
        for name in wanted:
            accepts, expected = _TYPES[name]
            if not accepts(schema.field(name).type):
                raise input_error(place, f"column {name!r}", expected, schema.field(name).type, "cast it")
    return wanted


def _collect(place: Place, batches: Iterator[pa.RecordBatch], memory_budget: int) -> dict[str, list[Any]]:
    """The values of all rows, as long as they fit into half of the memory; storing them takes the other half."""
    columns: dict[str, list[Any]] = {}
    held = row_count = 0
    for batch in batches:
        held += sum(map(object_bytes, batch.columns)) + batch.num_rows * OBJECT_BYTES
        if held > memory_budget // 2:
            where = f"rows 0 to {row_count + batch.num_rows - 1:,}"
            raise too_large(place, where, memory_budget // 2, held, "divide the file into several")
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            with reading(place, "label file", *DAMAGE):
                columns.setdefault(name, []).extend(to_list(column))
        row_count += batch.num_rows
    if not row_count:
        raise input_error(place, "table", "at least one row", 0)
    return columns


def _external_ids(place: Place, values: list[Any]) -> list[str]:
    ids = []
    for row, value in enumerate(values):
        where = f"row {row}, external_id"
        if value is None:
            raise input_error(place, where, "text", "nothing", "name the exemplar that the label belongs to")
        ids.append(str(value))
        try:
            check_stored_id(ids[-1])
        except ValueError as error:
            raise input_error(place, where, *error.args) from None
    for external_id, rows in duplicate_ids(ids).items():
        raise input_error(
            place, f"rows {rows[0]} and {rows[1]}, external_id", "every id once", f"{external_id!r} twice"
        )
    return ids


def _selections(place: Place, values: list[Any]) -> list[str]:
    for row, value in enumerate(values):
        if value not in SELECTIONS:
            raise input_error(place, f"row {row}, selection", SELECTION_NAMES, repr(value or ""))
    return values


def _labels(place: Place, values: list[Any], rules: LabelRules) -> IntArray:
    classes = ClassNumbers(len(rules.class_names), rules.class_names)
    labels = np.empty(len(values), dtype=np.int64)
    for row, value in enumerate(values):
        is_blank = value is None or (isinstance(value, str) and not value.strip())
        if is_blank or (isinstance(value, float) and math.isnan(value)):  # pandas writes a missing label as NaN
            if not rules.retract:
                remedy = "leave the row out, or ask for such labels to be retracted"
                raise input_error(place, f"row {row}, label", "a label", "nothing", remedy, Code.LABEL_MISSING)
            labels[row] = UNKNOWN_LABEL
            continue
        try:
            labels[row] = classes.of(value)
        except ValueError as error:
            raise input_error(place, f"row {row}, label", *error.args) from None
    return labels
