"""Exemplars from record batches of Arrow, which is also how Parquet is read.

The columns are `logits` and, unless the classifier has logits only, `vector`, lists of floats (lists of any kind,
floats of any width); optionally `external_id` and `document_id`, string or integer, null for an unknown document;
`label`, class numbers as integers or whole floats, or class names, null or -1 if unknown; and `attributes`, a struct, a
map with string keys, or a string that holds a JSON object, null if there are none. Any other column is kept as an
attribute of that name; dates and times become ISO text, decimals their digits. The metadata of the schema may state the
version of the extractor that the vectors come from, as `venn_admit.extractor`.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from venn_admit.core.types import UNKNOWN_LABEL
from venn_admit.files.arrow.types import DAMAGE, OTHER_TYPES, TYPES, affordable_batches, is_text, to_list
from venn_admit.files.inputs import OF_NETWORK, batch_bytes, input_error, reading
from venn_admit.files.records import (
    Attributes,
    ExemplarBatch,
    Layout,
    check_names,
    make_batch,
    stating,
    unwanted_vectors,
)

EXTRACTOR_KEY = b"venn_admit.extractor"
_BATCH_ROWS = 8192


def exemplar_batches(layout: Layout, schema: pa.Schema, parts: Iterable[pa.RecordBatch]) -> Iterator[ExemplarBatch]:
    """Yield the rows of record batches, checked; each has the schema. Raises InvalidInputError."""
    check_schema(layout, schema)
    layout = with_extractor(layout, schema)
    limit = batch_bytes(layout.memory_budget)
    first_row = 0
    for part in parts:
        for start in range(0, part.num_rows, _BATCH_ROWS):
            for batch in affordable_batches(layout.place, part.slice(start, _BATCH_ROWS), first_row, limit):
                yield to_batch(layout, first_row, batch)
                first_row += batch.num_rows
    if not first_row:
        raise input_error(layout.place, "table", "at least one row", 0)


def check_schema(layout: Layout, schema: pa.Schema) -> None:
    """Raise InvalidInputError if the columns are not as the module describes them."""
    widths = {"logits": layout.class_count}
    if layout.dimension is not None:
        widths = {"vector": layout.dimension, **widths}
    elif "vector" in schema.names:
        raise unwanted_vectors(layout.place, "column 'vector'", schema.field("vector").type)
    for name in widths:
        if name not in schema.names:
            raise input_error(layout.place, "columns", f"one named {name!r}", ", ".join(map(repr, schema.names)))
    check_names(layout.place, "column", schema.names, TYPES)
    for field in schema:
        where = f"column {field.name!r}"
        accepts, expected = TYPES.get(field.name, OTHER_TYPES)
        if schema.names.count(field.name) > 1:
            raise input_error(layout.place, where, "one of this name", schema.names.count(field.name))
        if not accepts(field.type):
            raise input_error(layout.place, where, expected, field.type, "cast it or leave it out")
    for name, width in widths.items():
        kind = schema.field(name).type
        if pa.types.is_fixed_size_list(kind) and kind.list_size != width:
            expected = f"{width} values per row"
            raise input_error(layout.place, f"column {name!r}", expected, kind.list_size, OF_NETWORK)


def with_extractor(layout: Layout, schema: pa.Schema) -> Layout:
    """Return a layout with the extractor that the schema states, if it does. Raises InvalidInputError."""
    stated = (schema.metadata or {}).get(EXTRACTOR_KEY)
    where = f"metadata {EXTRACTOR_KEY.decode()}"
    return stating(layout, where, None if stated is None else stated.decode(errors="replace"))


def to_batch(layout: Layout, first_row: int, batch: pa.RecordBatch) -> ExemplarBatch:
    """Return the rows of a record batch whose schema was checked; InvalidInputError at one that is wrong."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    dimension = layout.dimension
    return make_batch(
        layout,
        first_row,
        vectors=None if dimension is None else _matrix(layout, first_row, "vector", columns["vector"], dimension),
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
        raise input_error(layout.place, f"row {first_row + row}, {name}", f"{width} values", got, OF_NETWORK)
    values = lists.flatten()
    if values.null_count:
        row, position = divmod(int(values.is_null().to_numpy(zero_copy_only=False).argmax()), width)
        raise input_error(layout.place, f"row {first_row + row}, {name}[{position}]", "a finite number", "null")
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


def _attributes(layout: Layout, first_row: int, columns: dict[str, pa.Array]) -> list[Attributes] | None:
    """Return the values of `attributes` and of the columns of other names for each row; None without such columns."""
    others = {name: _to_list(layout, column) for name, column in columns.items() if name not in TYPES}
    if not others and "attributes" not in columns:
        return None
    row_count = len(columns["logits"])
    rows: list[Attributes] = [{name: values[row] for name, values in others.items()} for row in range(row_count)]
    if "attributes" not in columns:
        return rows
    for row, value in enumerate(_to_list(layout, columns["attributes"])):
        where = f"row {first_row + row}, attributes"
        own = _object(layout, where, value)
        if twice := own.keys() & rows[row].keys():
            raise input_error(layout.place, where, "names that no column has", repr(min(twice)))
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
            raise input_error(layout.place, where, "a JSON object", ascii(value[:80]))
        return parsed
    if isinstance(value, list) and len(dict(value)) < len(value):
        raise input_error(layout.place, where, "every key once", ascii(sorted(key for key, _ in value)))
    return dict(value or {})


def _to_list(layout: Layout, column: pa.Array) -> list[Any]:
    with reading(layout.place, "parquet file" if isinstance(layout.place, Path) else "table", *DAMAGE):
        return to_list(column)
