"""The types that columns of Parquet may have, and their values as Python objects."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa


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
        column = column.dictionary_decode()
    kind = _in_microseconds(column.type)
    values: list[Any] = (column if kind == column.type else column.cast(kind, safe=False)).to_pylist()
    return values


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
    "attributes": (
        _is_attributes,
        "a struct or map of booleans, numbers, dates and strings, or a string of JSON",
    ),
}
OTHER_TYPES: tuple[_Accepts, str] = (_is_attribute, "booleans, numbers, dates, strings, or lists or structs of them")
