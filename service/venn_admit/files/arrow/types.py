"""The types that columns of Parquet may have, and their values as Python objects.

The values take more memory while they are checked than Arrow's own do, so that this is computed first.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from venn_admit.files.inputs import OBJECT_BYTES, Place, reading, too_large

# ArithmeticError: a decimal that is no number. KeyError: an unknown time zone.
DAMAGE = (pa.ArrowException, ArithmeticError, KeyError, ValueError)
COLUMN_LIMIT = 1000
"""At most this many columns of a file are read."""
# A value in a list: itself and its two levels, in buffers that double as they grow.
LISTED_VALUE_BYTES = 16
# A text of one byte per character takes four per character if a single one of them needs four.
TEXT_FACTOR = 5


def check_column_count(count: int) -> None:
    """Raise ValueError if a file has more columns than are read."""
    if count > COLUMN_LIMIT:
        raise ValueError(f"it has {count:,} columns, expected at most {COLUMN_LIMIT:,}")


def is_text(kind: pa.DataType) -> bool:
    """Return whether values are texts, including those of a dictionary."""
    return _is(kind.value_type if _is(kind, "dictionary") else kind, "string", "large_string", "string_view")


def is_name(kind: pa.DataType) -> bool:
    """Return whether values can name an exemplar or a document."""
    return is_text(kind) or _is(kind, "integer")


def is_label(kind: pa.DataType) -> bool:
    """Return whether values can name a class; a column that holds only nulls has a type of its own."""
    return is_text(kind) or _is(kind, "integer", "floating", "null")


def to_list(column: pa.Array) -> list[Any]:
    """Return the values as Python objects; times are cut to whole microseconds."""
    if _is(column.type, "dictionary"):
        column = pa.DictionaryArray.from_arrays(column.indices, _without_views(column.dictionary)).dictionary_decode()
    kind = _in_microseconds(column.type)
    values: list[Any] = (column if kind == column.type else column.cast(kind, safe=False)).to_pylist()
    return values


def _without_views(values: pa.Array) -> pa.Array:
    """Return values with texts as Arrow can compute with them: it only holds those that are views, as polars has."""
    return values.cast(pa.large_string()) if _is(values.type, "string_view") else values


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    """The type with its times in microseconds, the unit of Python's."""
    if _is(kind, "timestamp") and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if _is(kind, "time64"):
        return pa.time64("us")
    if _is(kind, "struct"):
        return pa.struct([field.with_type(_in_microseconds(field.type)) for field in kind])
    if _is(kind, "list"):
        return pa.list_(kind.value_field.with_type(_in_microseconds(kind.value_type)))
    return kind


def _is(kind: pa.DataType, *names: str) -> bool:
    return any(getattr(pa.types, f"is_{name}")(kind) for name in names)


def _is_list(kind: pa.DataType) -> bool:
    return _is(kind, "list", "large_list", "fixed_size_list")


def _is_float_list(kind: pa.DataType) -> bool:
    return _is_list(kind) and _is(kind.value_type, "floating")


def _is_attributes(kind: pa.DataType) -> bool:
    if _is(kind, "map"):
        return is_text(kind.key_type) and _is_attribute(kind.item_type)
    return is_text(kind) or _is(kind, "null") or (_is(kind, "struct") and _is_attribute(kind))


def _is_attribute(kind: pa.DataType) -> bool:
    if _is(kind, "struct"):
        return all(_is_attribute(field.type) for field in kind)
    if _is(kind, "dictionary") or _is_list(kind):
        return _is_attribute(kind.value_type)
    return is_text(kind) or _is(kind, "boolean", "integer", "floating", "decimal", "date", "time", "timestamp", "null")


# The types that each column may have, and how a message names them.
_Accepts = Callable[[pa.DataType], bool]

TYPES: dict[str, tuple[_Accepts, str]] = {
    "external_id": (is_name, "string or an integer type"),
    "document_id": (lambda kind: is_name(kind) or _is(kind, "null"), "string or an integer type"),
    "vector": (_is_float_list, "a list of floats"),
    "logits": (_is_float_list, "a list of floats"),
    "label": (is_label, "class numbers or class names"),
    "attributes": (_is_attributes, "a struct or map of booleans, numbers, dates and strings, or a string of JSON"),
}

OTHER_TYPES: tuple[_Accepts, str] = (_is_attribute, "booleans, numbers, dates, strings, or lists or structs of them")


def valid_batches(place: Place, kind: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches whose arrays are valid; InvalidInputError at another, of an input of this kind.

    Arrow does not check offsets, or an index against its dictionary, when it reads a message or decodes a page.
    """
    while True:
        with reading(place, kind, *DAMAGE):
            batch = next(batches, None)
            if batch is not None:
                batch.validate(full=True)
        if batch is None:
            return
        yield batch


def affordable_batches(place: Place, batch: pa.RecordBatch, first_row: int, limit: int) -> Iterator[pa.RecordBatch]:
    """Yield the batch, in parts if its values would take more than the limit; InvalidInputError at a larger row."""
    taken = sum(map(_checked_bytes, batch.schema.names, batch.columns))
    if taken <= limit:
        yield batch
    elif batch.num_rows == 1:
        raise too_large(place, f"row {first_row}", limit, taken, "shorten its texts and lists")
    else:
        half = batch.num_rows // 2
        yield from affordable_batches(place, batch.slice(0, half), first_row, limit)
        yield from affordable_batches(place, batch.slice(half), first_row + half, limit)


def _checked_bytes(name: str, column: pa.Array) -> int:
    """The bytes that a column takes while it is checked; vectors and logits never become Python objects."""
    return len(column.flatten()) * LISTED_VALUE_BYTES if name in ("vector", "logits") else object_bytes(column)


def object_bytes(array: pa.Array) -> int:
    """Return the bytes that the values take as Python objects."""
    kind = array.type
    taken = len(array) * OBJECT_BYTES
    if pa.types.is_dictionary(kind) and is_text(kind):
        return taken + (pc.sum(_text_bytes(array.dictionary).take(array.indices)).as_py() or 0)
    if is_text(kind):
        return taken + (pc.sum(_text_bytes(array)).as_py() or 0)
    if pa.types.is_map(kind):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return taken + sum(object_bytes(part.slice(first, last - first)) for part in (array.keys, array.items))
    if pa.types.is_struct(kind):
        return taken + sum(map(object_bytes, array.flatten()))
    if _is_list(kind):
        return taken + object_bytes(array.flatten())
    return taken


def _text_bytes(texts: pa.Array) -> pa.Array:
    """The bytes of each text besides itself as an object; JSON makes an object for each bracket and comma, twice."""
    texts = _without_views(texts)
    marks = pc.multiply(pc.count_substring_regex(texts, r"[\[{,]").cast(pa.int64()), 2 * OBJECT_BYTES)
    return pc.add(pc.multiply(pc.binary_length(texts).cast(pa.int64()), TEXT_FACTOR), marks)
