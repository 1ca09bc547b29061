"""Exemplars from Parquet, in record batches.

The columns: `vector` and `logits`, lists of float32 or float16 (lists of any kind, fixed size included);
optional `external_id`, string; `document_id`, string or integer, null where unknown; `label`, integer, null
or -1 where unknown; `attributes`, a struct, a map with string keys, or a string that holds a JSON object,
null where there are none. Any other column is kept as an attribute of that name.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from service.core.types import UNKNOWN_LABEL, Float32Array
from service.files.records import Attributes, ExemplarBatch, Layout, check_is_file, fault, make_batch, reading

_DAMAGE = (pa.ArrowException, ValueError)
_STREAM_BYTES = 1 << 20


def read_batches(path: Path, layout: Layout, batch_rows: int) -> Iterator[ExemplarBatch]:
    """Read a Parquet file in batches; see `service.files.read_exemplars`.

    Columns are read through buffers, so memory is that of a batch and some pages, whatever the row groups.
    """
    with _open_file(path) as file:
        with reading(path, "parquet", *_DAMAGE):
            schema = file.schema_arrow
        _check_schema(layout, schema, file.metadata.num_rows)
        batches = file.iter_batches(batch_rows)
        first_row = 0
        while (batch := _next_batch(path, batches)) is not None:
            yield _to_batch(layout, first_row, batch)
            first_row += batch.num_rows


def count_rows(path: Path) -> int:
    """Return the number of rows of a Parquet file, from its footer."""
    with _open_file(path) as file:
        return int(file.metadata.num_rows)


@contextmanager
def _open_file(path: Path) -> Iterator[pq.ParquetFile]:
    check_is_file(path)
    with reading(path, "parquet", *_DAMAGE):
        file = pq.ParquetFile(path, buffer_size=_STREAM_BYTES, pre_buffer=False, page_checksum_verification=True)
    with file:
        yield file


def _next_batch(path: Path, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    with reading(path, "parquet", *_DAMAGE):
        return next(batches, None)


def _check_schema(layout: Layout, schema: pa.Schema, row_count: int) -> None:
    """Raise InvalidInputError where the columns are not what the module describes, or there are no rows."""
    for name in ("vector", "logits"):
        if name not in schema.names:
            raise fault(layout.path, "columns", f"one named {name!r}", ", ".join(map(ascii, schema.names)))
    for field in schema:
        where = f"column {field.name!a}"
        accepts, expected = _TYPES.get(field.name, _OTHER_TYPES)
        if schema.names.count(field.name) > 1:
            raise fault(layout.path, where, "one of this name", schema.names.count(field.name))
        if not accepts(field.type):
            raise fault(layout.path, where, expected, field.type, "cast it or leave it out")
    for name, width in (("vector", layout.dimension), ("logits", layout.class_count)):
        kind = schema.field(name).type
        if _is(kind, "fixed_size_list") and kind.list_size != width:
            raise fault(layout.path, f"column {name!r}", f"{width} values a row", kind.list_size)
    if row_count < 1:
        raise fault(layout.path, "table", "at least one row", row_count)


def _is(kind: pa.DataType, *names: str) -> bool:
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names)


def _is_text(kind: pa.DataType) -> bool:
    return _is(kind.value_type if _is(kind, "dictionary") else kind, "string", "large_string", "string_view")


def _is_list(kind: pa.DataType) -> bool:
    return _is(kind, "list", "large_list", "fixed_size_list")


def _is_float_list(kind: pa.DataType) -> bool:
    return _is_list(kind) and _is(kind.value_type, "float16", "float32")


def _is_integer(kind: pa.DataType) -> bool:
    return _is(kind, "integer", "null")  # a column of nothing but nulls has a type of its own


def _is_document_id(kind: pa.DataType) -> bool:
    return _is_text(kind) or _is_integer(kind)


def _is_attributes(kind: pa.DataType) -> bool:
    if _is(kind, "map"):
        return _is_text(kind.key_type) and _is_json(kind.item_type)
    return _is_text(kind) or _is(kind, "null") or (_is(kind, "struct") and _is_json(kind))


def _is_json(kind: pa.DataType) -> bool:
    if _is(kind, "struct"):
        return all(_is_json(field.type) for field in kind)
    if _is(kind, "dictionary") or _is_list(kind):
        return _is_json(kind.value_type)
    return _is_integer(kind) or _is_text(kind) or _is(kind, "boolean", "floating")


# The types each column may have, and how a message names them.
_Accepts = Callable[[pa.DataType], bool]
_TYPES: dict[str, tuple[_Accepts, str]] = {
    "external_id": (_is_text, "string"),
    "document_id": (_is_document_id, "string or an integer type"),
    "vector": (_is_float_list, "list<float> or list<halffloat>"),
    "logits": (_is_float_list, "list<float> or list<halffloat>"),
    "label": (_is_integer, "an integer type"),
    "attributes": (_is_attributes, "a struct or map of booleans, numbers and strings, or a string of JSON"),
}
_OTHER_TYPES: tuple[_Accepts, str] = (_is_json, "booleans, numbers, strings, or lists or structs of them")


def _to_batch(layout: Layout, first_row: int, batch: pa.RecordBatch) -> ExemplarBatch:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    return make_batch(
        layout,
        first_row,
        vectors=_matrix(layout, first_row, "vector", columns["vector"], layout.dimension),
        logits=_matrix(layout, first_row, "logits", columns["logits"], layout.class_count),
        labels=_labels(columns.get("label")),
        external_ids=_texts(layout, columns.get("external_id")),
        document_ids=_texts(layout, columns.get("document_id")),
        attributes=_attributes(layout, first_row, columns),
    )


def _matrix(layout: Layout, first_row: int, name: str, lists: pa.Array, width: int) -> Float32Array:
    """Return the lists as rows, (n, width); raise InvalidInputError at a list of another length or a null."""
    lengths = pc.list_value_length(lists)
    other = pc.not_equal(lengths, width).fill_null(True).to_numpy(zero_copy_only=False)
    if other.any():
        row = int(other.argmax())
        got = "null" if lengths[row].as_py() is None else lengths[row].as_py()
        raise fault(layout.path, f"row {first_row + row}, {name}", f"{width} values", got)
    values = lists.flatten()
    if values.null_count:
        row, position = divmod(int(values.is_null().to_numpy(zero_copy_only=False).argmax()), width)
        raise fault(layout.path, f"row {first_row + row}, {name}[{position}]", "a finite number", "null")
    numbers: Float32Array = values.to_numpy(zero_copy_only=False).astype(np.float32)
    return numbers.reshape(-1, width)  # (n, width)


def _labels(labels: pa.Array | None) -> npt.NDArray[np.integer[Any]] | None:
    if labels is None or pa.types.is_null(labels.type):
        return None
    if pa.types.is_uint64(labels.type):
        # Beyond int64 a label is out of range anyway; as the largest int64 it is refused as such.
        labels = pc.min_element_wise(labels, pa.scalar(np.iinfo(np.int64).max, pa.uint64()), skip_nulls=False)
    filled: npt.NDArray[np.integer[Any]] = (
        labels.cast(pa.int64()).fill_null(UNKNOWN_LABEL).to_numpy(zero_copy_only=False)
    )
    return filled


def _texts(layout: Layout, column: pa.Array | None) -> list[str | None] | None:
    if column is None:
        return None
    return [value if value is None else str(value) for value in _to_list(layout, column)]


def _attributes(layout: Layout, first_row: int, columns: dict[str, pa.Array]) -> list[Attributes]:
    """Return what `attributes` and the columns of other names hold of each row."""
    others = {name: _to_list(layout, column) for name, column in columns.items() if name not in _TYPES}
    row_count = len(columns["vector"])
    rows: list[Attributes] = [{name: values[row] for name, values in others.items()} for row in range(row_count)]
    if "attributes" not in columns:
        return rows
    for row, value in enumerate(_to_list(layout, columns["attributes"])):
        where = f"row {first_row + row}, attributes"
        own = _object(layout, where, value)
        if twice := own.keys() & rows[row].keys():
            raise fault(layout.path, where, "names that no column has", ascii(min(twice)))
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
            raise fault(layout.path, where, "a JSON object", ascii(value[:80]))
        return parsed
    if isinstance(value, list) and len(dict(value)) < len(value):
        raise fault(layout.path, where, "every key once", ascii(sorted(key for key, _ in value)))
    return dict(value or {})


def _to_list(layout: Layout, column: pa.Array) -> list[Any]:
    with reading(layout.path, "parquet", *_DAMAGE):
        values: list[Any] = column.to_pylist()
        return values
