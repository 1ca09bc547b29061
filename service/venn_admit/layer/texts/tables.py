"""Rows of CSV, JSONL and Parquet as dictionaries, one at a time."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from venn_admit.errors import InvalidInputError
from venn_admit.files.parquet import rows as parquet_rows
from venn_admit.files.records import input_error
from venn_admit.layer.texts.lines import LINE_CHARACTERS, read_lines

TABLE_ENDINGS = (".csv", ".jsonl", ".parquet")

_BATCH_ROWS = 1024


def read_rows(path: Path, memory_budget: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield where each row is, and its values by column; CSV has texts only, None for an empty one.

    Raises InvalidInputError for a file that cannot be read, names a column twice, or has no rows.
    """
    match path.suffix.lower():
        case ".csv":
            rows = _csv_rows(path)
        case ".jsonl":
            rows = _json_rows(path)
        case ".parquet":
            rows = parquet_rows.read_rows(path, _BATCH_ROWS, memory_budget)
        case other:
            got = repr(other) if other else "no ending"
            endings = ", ".join(TABLE_ENDINGS)
            raise InvalidInputError(f"{path}: expected a name ending in {endings}, got {got}")
    number = -1
    for number, row in enumerate(rows):
        yield f"row {number}", row
    if number < 0:
        raise input_error(path, "table", "at least one row", 0)


def _csv_rows(path: Path) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(LINE_CHARACTERS)  # of the process: the module has no other
    rows = csv.reader(read_lines(path), strict=True)
    names = _next(path, rows, "the line of names")
    if names is None:
        raise input_error(path, "table", "a first line with the names of the columns", "an empty file")
    parquet_rows.check_columns(path, names)
    number = 0
    while (values := _next(path, rows, f"row {number}")) is not None:
        if not values:  # an empty line
            continue
        if len(values) != len(names):
            advice = "put texts with commas, quotation marks or line breaks into quotation marks"
            raise input_error(path, f"row {number}", f"{len(names)} values", len(values), advice)
        yield {name: value or None for name, value in zip(names, values, strict=True)}
        number += 1


def _next(path: Path, rows: Iterator[list[str]], where: str) -> list[str] | None:
    try:
        return next(rows, None)
    except csv.Error as error:
        advice = "double each quotation mark within a text, and close every text"
        raise input_error(path, where, "values of CSV", error, advice) from None


def _json_rows(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(read_lines(path)):
        if not line.strip():
            continue
        try:
            row = json.loads(line, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise input_error(path, f"line {number + 1}", "a JSON object", ascii(line[:80]))
        yield row
