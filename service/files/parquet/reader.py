"""Exemplars from Parquet, in record batches.

The columns are `vector` and `logits`, lists of floats (lists of any kind, floats of any width); optionally
`external_id` and `document_id`, string or integer, null for an unknown document; `label`, class numbers as integers or
whole floats, or class names, null or -1 if unknown; and `attributes`, a struct, a map with string keys, or a string
that holds a JSON object, null if there are none. Any other column is kept as an attribute of that name; dates and times
become ISO text, decimals their digits.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from venn_admit.service.core.memory import DEFAULT_MEMORY_BUDGET
from venn_admit.service.core.types import UNKNOWN_LABEL
from venn_admit.service.files.budget import batch_bytes, too_large
from venn_admit.service.files.parquet.limits import (
    affordable_batches,
    affordable_rows,
    check_counts,
    check_footer,
    dictionary_columns,
)
from venn_admit.service.files.parquet.types import OTHER_TYPES, TYPES, is_text, to_list
from venn_admit.service.files.records import (
    Attributes,
    ExemplarBatch,
    Layout,
    check_is_file,
    input_error,
    make_batch,
    reading,
)

_DAMAGE = (pa.ArrowException, KeyError, OverflowError, ValueError)  # KeyError: an unknown time zone
_STREAM_BYTES = 1 << 20


def read_batches(path: Path, layout: Layout, batch_rows: int) -> Iterator[ExemplarBatch]:
    """Read a Parquet file in batches; see `venn_admit.service.files.read_exemplars`.

    Columns are read through buffers, so that it takes the memory of a batch and some pages, whatever the row groups.
    """
    budget = layout.memory_budget
    with open_file(path, budget) as file:
        with reading(path, "parquet", *_DAMAGE):
            schema = file.schema_arrow
        _check_schema(layout, schema, file.metadata.num_rows)
        row_bytes = (layout.dimension + layout.class_count) * np.dtype(np.float64).itemsize * 2
        if row_bytes > batch_bytes(budget):
            raise too_large(path, "a row", batch_bytes(budget), row_bytes, "use shorter vectors")
        batch_rows = min(batch_rows, batch_bytes(budget) // row_bytes)
        first_row = 0
        for batch in batches_within(path, file, schema.names, batch_rows, budget):
            yield _to_batch(layout, first_row, batch)
            first_row += batch.num_rows


def count_rows(path: Path) -> int:
    """Return the number of rows of a Parquet file, from its footer."""
    with open_file(path, DEFAULT_MEMORY_BUDGET) as file:
        return int(file.metadata.num_rows)


@contextmanager
def open_file(path: Path, memory_budget: int) -> Iterator[pq.ParquetFile]:
    """Open a file whose footer is complete and of a size that can be read."""
    check_is_file(path)
    with reading(path, "parquet", *_DAMAGE):
        check_footer(path, memory_budget)
        file = pq.ParquetFile(path)
    with file:
        with reading(path, "parquet", *_DAMAGE):
            check_counts(file.metadata)
        yield file


def batches_within(
    path: Path, file: pq.ParquetFile, columns: Sequence[str], batch_rows: int, memory_budget: int
) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a file in batches of at most `batch_rows` rows that fit into memory.

    Texts that are stored in dictionaries stay there, where each is held once. Raises InvalidInputError for content that
    does not fit, and for a file with fewer rows than its footer names.
    """
    with reading(path, "parquet", *_DAMAGE):
        as_dictionaries = dictionary_columns(path, file.metadata)
        rows = affordable_rows(path, file, columns, as_dictionaries, batch_rows, memory_budget)
        source = pq.ParquetFile(
            path,
            metadata=file.metadata,
            read_dictionary=as_dictionaries,
            buffer_size=_STREAM_BYTES,
            pre_buffer=False,
            page_checksum_verification=True,
        )
    with source:
        read = 0
        batches = source.iter_batches(rows, columns=list(columns))
        while (batch := _next_batch(path, batches)) is not None:
            yield from affordable_batches(path, batch, read, batch_bytes(memory_budget))
            read += batch.num_rows
    if read != file.metadata.num_rows:
        raise input_error(path, "table", f"the {file.metadata.num_rows:,} rows that its footer names", f"{read:,}")


def _next_batch(path: Path, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    with reading(path, "parquet", *_DAMAGE):
        return next(batches, None)


def _check_schema(layout: Layout, schema: pa.Schema, row_count: int) -> None:
    """Raise InvalidInputError if the columns are not as the module describes them, or there are no rows."""
    for name in ("vector", "logits"):
        if name not in schema.names:
            raise input_error(layout.path, "columns", f"one named {name!r}", ", ".join(map(ascii, schema.names)))
    for field in schema:
        where = f"column {field.name!a}"
        accepts, expected = TYPES.get(field.name, OTHER_TYPES)
        if schema.names.count(field.name) > 1:
            raise input_error(layout.path, where, "one of this name", schema.names.count(field.name))
        if not accepts(field.type):
            raise input_error(layout.path, where, expected, field.type, "cast it or leave it out")
    for name, width in (("vector", layout.dimension), ("logits", layout.class_count)):
        kind = schema.field(name).type
        if pa.types.is_fixed_size_list(kind) and kind.list_size != width:
            raise input_error(layout.path, f"column {name!r}", f"{width} values per row", kind.list_size)
    if row_count < 1:
        raise input_error(layout.path, "table", "at least one row", row_count)


def _to_batch(layout: Layout, first_row: int, batch: pa.RecordBatch) -> ExemplarBatch:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    return make_batch(
        layout,
        first_row,
        vectors=_matrix(layout, first_row, "vector", columns["vector"], layout.dimension),
        logits=_matrix(layout, first_row, "logits", columns["logits"], layout.class_count),
        labels=_labels(layout, columns.get("label")),
        external_ids=_texts(layout, columns.get("external_id")),
        document_ids=_texts(layout, columns.get("document_id")),
        attributes=_attributes(layout, first_row, columns),
    )


def _matrix(layout: Layout, first_row: int, name: str, lists: pa.Array, width: int) -> npt.NDArray[np.floating[Any]]:
    """Return the lists as rows, (n, width); raise InvalidInputError at a list of another length or a null."""
    lengths = pc.list_value_length(lists)
    other = pc.not_equal(lengths, width).fill_null(True).to_numpy(zero_copy_only=False)
    if other.any():
        row = int(other.argmax())
        got = "null" if lengths[row].as_py() is None else lengths[row].as_py()
        raise input_error(layout.path, f"row {first_row + row}, {name}", f"{width} values", got)
    values = lists.flatten()
    if values.null_count:
        row, position = divmod(int(values.is_null().to_numpy(zero_copy_only=False).argmax()), width)
        raise input_error(layout.path, f"row {first_row + row}, {name}[{position}]", "a finite number", "null")
    numbers: npt.NDArray[np.floating[Any]] = values.to_numpy(zero_copy_only=False)
    return numbers.reshape(-1, width)  # (n, width)


def _labels(layout: Layout, labels: pa.Array | None) -> npt.NDArray[Any] | list[Any] | None:
    if labels is None or pa.types.is_null(labels.type):
        return None
    if is_text(labels.type):
        return _to_list(layout, labels)
    if pa.types.is_floating(labels.type):
        floats: npt.NDArray[Any] = labels.fill_null(float("nan")).to_numpy(zero_copy_only=False)
        return floats
    if pa.types.is_uint64(labels.type):
        # A label beyond int64 is out of range in any case, and is refused as the largest int64.
        labels = pc.min_element_wise(labels, pa.scalar(np.iinfo(np.int64).max, pa.uint64()), skip_nulls=False)
    filled: npt.NDArray[Any] = labels.cast(pa.int64()).fill_null(UNKNOWN_LABEL).to_numpy(zero_copy_only=False)
    return filled


def _texts(layout: Layout, column: pa.Array | None) -> list[str | None] | None:
    if column is None:
        return None
    return [value if value is None else str(value) for value in _to_list(layout, column)]


def _attributes(layout: Layout, first_row: int, columns: dict[str, pa.Array]) -> list[Attributes]:
    """Return the values of `attributes` and of the columns of other names for each row."""
    others = {name: _to_list(layout, column) for name, column in columns.items() if name not in TYPES}
    row_count = len(columns["vector"])
    rows: list[Attributes] = [{name: values[row] for name, values in others.items()} for row in range(row_count)]
    if "attributes" not in columns:
        return rows
    for row, value in enumerate(_to_list(layout, columns["attributes"])):
        where = f"row {first_row + row}, attributes"
        own = _object(layout, where, value)
        if twice := own.keys() & rows[row].keys():
            raise input_error(layout.path, where, "names that no column has", ascii(min(twice)))
        rows[row] |= own
    return rows


def _object(layout: Layout, where: str, value: Any) -> Attributes:
    """Return one row's attributes, which come as null, a dictionary, a map's list of pairs, or JSON."""
    if isinstance(value, str):
        try:
            parsed = json.loads(value, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            parsed = None
        if not isinstance(parsed, dict):
            raise input_error(layout.path, where, "a JSON object", ascii(value[:80]))
        return parsed
    if isinstance(value, list) and len(dict(value)) < len(value):
        raise input_error(layout.path, where, "every key once", ascii(sorted(key for key, _ in value)))
    return dict(value or {})


def _to_list(layout: Layout, column: pa.Array) -> list[Any]:
    with reading(layout.path, "parquet", *_DAMAGE):
        return to_list(column)
