"""Arrays, tensors and lists as the rows of requests."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .errors import InvalidInputError

Array = np.ndarray[Any, np.dtype[Any]]

# The service reads requests of 32 MiB.
_MOST_BYTES = 24 << 20


def floats(values: Any, name: str, width: int | None, *, ndim: int = 2) -> Array | None:
    """Return an array or a tensor as float32, which the service computes with; None stays None.

    Args:
        values: (n, width), or (width,).
        name: What messages call it.
        width: The length that a row must have; None: any, because the service refuses it.
        ndim: 2, or 1 for a single row.

    Raises:
        InvalidInputError: It has another shape, or holds what float32 cannot.
    """
    if values is None:
        return None
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float().numpy()  # bfloat16 too
    try:
        with np.errstate(over="ignore"):
            array: Array = np.asarray(values).astype(np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{name}: expected numbers: {error}") from error
    if array.ndim != ndim or (width is not None and array.shape[-1] != width):
        shape = f"{'(n, ' if ndim == 2 else '('}{'any' if width is None else width}{')' if ndim == 2 else ',)'}"
        raise InvalidInputError(f"{name}: expected shape {shape}, got {array.shape}")
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        place = ", ".join(map(str, wrong[0]))
        raise InvalidInputError(f"{name}[{place}]: expected a finite number that float32 can hold")
    return array


def column(values: Any) -> list[Any] | None:
    """Return a column of any kind as a list of plain values; None stays None."""
    if values is None:
        return None
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    listed = values.tolist() if hasattr(values, "tolist") else list(values)
    return [value.item() if isinstance(value, np.generic) else value for value in listed]


def texts(values: Any) -> list[str | None] | None:
    """Return ids as texts; None stays None."""
    listed = column(values)
    return None if listed is None else [None if value is None else str(value) for value in listed]


def as_rows(columns: Mapping[str, Any], attributes: Mapping[str, Sequence[Any]] | None = None) -> list[dict[str, Any]]:
    """Return a mapping for each row, of the columns that are not None.

    Args:
        columns: Arrays and lists of n rows each, by their names.
        attributes: Columns of n values each, which each row has under `attributes`.

    Raises:
        InvalidInputError: Columns have different lengths.
    """
    given = {name: values for name, values in columns.items() if values is not None}
    extra = {str(name): column(values) or [] for name, values in (attributes or {}).items()}
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
        InvalidInputError: A row holds what JSON cannot.

    >>> list(bodies("points", [{"x": 1}, {"x": 2}, {"x": 3}], {"split": "train", "source": None}, most_rows=2))
    [(2, b'{"split": "train", "points": [{"x": 1},{"x": 2}]}'), (1, b'{"split": "train", "points": [{"x": 3}]}')]
    """
    head = json.dumps({name: value for name, value in rest.items() if value is not None})[:-1]
    begin = f'{head}{", " if len(head) > 1 else ""}"{member}": ['.encode()
    block: list[bytes] = []
    size = 0
    for number, row in enumerate(given):
        encoded = _encoded(row, member, number)
        if block and (len(block) == most_rows or size + len(encoded) > _MOST_BYTES):
            yield len(block), begin + b",".join(block) + b"]}"
            block, size = [], 0
        block.append(encoded)
        size += len(encoded) + 1
    if block:
        yield len(block), begin + b",".join(block) + b"]}"


def _encoded(row: Mapping[str, Any], member: str, number: int) -> bytes:
    try:
        return json.dumps(row, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"{member}[{number}]: expected what JSON can hold: {error}") from error
