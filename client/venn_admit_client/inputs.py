"""Arrays, tensors and lists as the rows of requests."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from math import isinf
from typing import Any

import numpy as np

from .arrays import Array, array_of, is_missing, is_tensor, values_of
from .bodies import ATTRIBUTE_NESTING
from .errors import InvalidInputError
from .given import encoded, encoded_members
from .naming import type_text

# The service reads requests of 32 MiB.
_MOST_BYTES = 24 << 20


def floats(values: Any, name: str, width: int | None, *, ndim: int = 2) -> Array | None:
    """Return an array or a tensor as float32, which the service computes with; None stays None.

    Args:
        values: (n, width) floats, or (width,) floats or integers.
        name: What messages call it.
        width: The length that a row must have; None: any, because the service refuses it.
        ndim: 2, or 1 for a single row.

    Raises:
        InvalidInputError: It has another shape or type, some of it is masked, or it holds what float32 cannot.
    """
    if values is None:
        return None
    given = array_of(values, name, InvalidInputError)
    if given.dtype.kind not in ("f" if ndim == 2 else "fiu"):
        raise InvalidInputError(f"{name}: expected an array of floats, got {given.dtype}; cast it")
    with np.errstate(over="ignore"):
        array: Array = given.astype(np.float32)
    if array.ndim != ndim or (width is not None and array.shape[-1] != width):
        shape = f"{'(n, ' if ndim == 2 else '('}{'any' if width is None else width}{')' if ndim == 2 else ',)'}"
        raise InvalidInputError(f"{name}: expected shape {shape}, got {array.shape}")
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        place = ", ".join(map(str, wrong[0]))
        raise InvalidInputError(f"{name}[{place}]: expected a finite number that float32 can hold")
    return array


def column(values: Any, name: str = "column") -> list[Any] | None:
    """Return a column of any kind as a list of plain values, None for what is masked; None stays None.

    name: what messages call it.

    Raises:
        InvalidInputError: It is a text, a mapping or a single value.
    """
    if values is None:
        return None
    values = values_of(values, name, InvalidInputError)
    if is_tensor(values):
        values = values.detach().cpu()
    has_times = isinstance(values, np.ndarray) and values.dtype.kind in "mM"  # of which `tolist` may make integers
    listed = values.tolist() if hasattr(values, "tolist") and not has_times else values
    return [_scalar(value) for value in listed]


def _scalar(value: Any) -> Any:
    """Return a scalar of NumPy, or a tensor of one value, as Python has it; anything else stays.

    A date and time that is finer than Python has it becomes text.
    """
    if getattr(value, "ndim", None) != 0:
        return value
    if isinstance(value, np.timedelta64):
        value = value.astype("m8[us]")
    if isinstance(value, np.datetime64):
        in_microseconds = value.astype("M8[us]")
        return in_microseconds.item() if np.isnat(value) or in_microseconds == value else str(value)
    return None if value is np.ma.masked else value.item()


def labels_of(values: Any) -> list[Any] | None:
    """Return labels as `column` does, with None for unknown ones, which are -1, NaN or null.

    Raises:
        InvalidInputError: They are no column, or there are several values in a row.
    """
    shape = getattr(values, "shape", None)
    if shape is not None and len(shape) != 1:
        raise InvalidInputError(f"labels: expected shape (n,), got {tuple(shape)}")
    listed = column(values, "labels")
    if listed is None:
        return None
    for row in listed:
        if isinstance(row, (list, tuple)) or hasattr(row, "shape"):
            raise InvalidInputError(f"labels: expected shape (n,), got ({len(listed)}, {len(row)})")
    return [None if is_missing(value) or value == -1 else value for value in listed]


def texts(values: Any, name: str = "ids") -> list[str | None] | None:
    """Return ids as texts; None stays None, and is returned for each missing one of documents, such as NaN.

    name: `ids` or `documents`, what messages call them.

    Raises:
        InvalidInputError: They are no column, or one is neither a text nor an integer.
    """
    listed = column(values, name)
    if listed is None:
        return None
    if name == "documents":
        listed = [None if is_missing(value) else value for value in listed]
    for row, value in enumerate(listed):
        if not (value is None or isinstance(value, (str, int))) or isinstance(value, bool):
            raise InvalidInputError(f"row {row}, {name}: expected a text or an integer, got {value!r}")
    return [None if value is None else str(value) for value in listed]


def as_rows(columns: Mapping[str, Any], attributes: Any = None) -> list[dict[str, Any]]:
    """Return a mapping for each row, of the columns that are not None.

    Args:
        columns: Arrays and lists of n rows each, by their names.
        attributes: Columns of n values each, which each row has under `attributes`: a mapping, a DataFrame or a table
            of Arrow. Missing values and infinities become null, dates their text in ISO 8601.

    Raises:
        InvalidInputError: Columns have different lengths, or an attribute has a value that JSON has not.
    """
    given = {name: values for name, values in columns.items() if values is not None}
    extra = {} if attributes is None else attribute_columns(attributes)
    lengths = {name: len(values) for name, values in {**given, **extra}.items()}
    if len(set(lengths.values())) != 1:
        found = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InvalidInputError(f"expected columns of one length, got {found or 'none'}")
    plain = {name: values.tolist() if isinstance(values, np.ndarray) else values for name, values in given.items()}
    made = [dict(zip(plain, row, strict=True)) for row in zip(*plain.values(), strict=True)]
    if extra:
        for row, values in zip(made, zip(*extra.values(), strict=True), strict=True):
            row["attributes"] = dict(zip(extra, values, strict=True))
    return made


def attribute_columns(attributes: Any) -> dict[str, list[Any]]:
    """Return attributes as lists of values that JSON has, by their names."""
    if hasattr(attributes, "to_pydict"):  # a table of Arrow
        attributes = attributes.to_pydict()
    elif hasattr(attributes, "columns"):  # a DataFrame
        attributes = {name: attributes[name] for name in attributes.columns}
    elif not isinstance(attributes, Mapping):
        raise InvalidInputError(
            f"attributes: expected a mapping of columns, a DataFrame or a table of Arrow, got {type_text(attributes)}"
        )
    return {
        str(name): [
            _json_value(value, f"row {row}, attribute {str(name)!a}")
            for row, value in enumerate(column(values, f"attribute {name!r}") or [])
        ]
        for name, values in attributes.items()
    }


def _json_value(value: Any, where: str, depth: int = 0) -> Any:
    """Return a value as JSON has it, in the form in which the service keeps attributes of a table."""
    if depth > ATTRIBUTE_NESTING:
        raise InvalidInputError(f"{where}: expected a value nested at most {ATTRIBUTE_NESTING} deep, got a deeper one")
    value = _scalar(value)
    if is_missing(value) or (isinstance(value, float) and isinf(value)):
        return None
    match value:
        case str() | int() | float():
            return value
        case list():
            return [_json_value(item, where, depth + 1) for item in value]
        case dict():
            return {_json_value(key, where): _json_value(item, where, depth + 1) for key, item in value.items()}
        case Decimal():
            return str(value)
        case date() | time():  # a date may have a time
            return value.isoformat()
    raise InvalidInputError(
        f"{where}: expected numbers, texts, dates, booleans, or lists and dictionaries of them, got "
        f"{type_text(value)}; cast it to text or leave it out"
    )


def bodies(
    member: str, given: Sequence[Mapping[str, Any]], rest: Mapping[str, Any], *, most_rows: int
) -> Iterator[tuple[int, bytes]]:
    """Divide rows into requests that the service takes.

    Args:
        member: The member of a body that holds the rows.
        given: The rows.
        rest: The other members, the same in each body; those that are None are left out.
        most_rows: How many rows a request may have.

    Yields:
        How many rows a body has, and the body.

    Raises:
        InvalidInputError: A row, or another member, holds what JSON cannot.

    >>> list(bodies("points", [{"x": 1}, {"x": 2}, {"x": 3}], {"split": "train", "source": None}, most_rows=2))
    [(2, b'{"split": "train", "points": [{"x": 1},{"x": 2}]}'), (1, b'{"split": "train", "points": [{"x": 3}]}')]
    """
    others = encoded_members({name: value for name, value in rest.items() if value is not None}, InvalidInputError)
    begin = b"{" + others + (b", " if others else b"") + f'"{member}": ['.encode()
    block: list[bytes] = []
    size = 0
    for number, row in enumerate(given):
        sent = encoded(f"{member}[{number}]", row, InvalidInputError)
        if block and (len(block) == most_rows or size + len(sent) > _MOST_BYTES):
            yield len(block), begin + b",".join(block) + b"]}"
            block, size = [], 0
        block.append(sent)
        size += len(sent) + 1
    if block:
        yield len(block), begin + b",".join(block) + b"]}"
