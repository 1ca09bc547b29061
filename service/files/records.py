"""What every reader of exemplars hands on, and the checks that hold whatever the file format."""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard, cast

import numpy as np
import numpy.typing as npt

from service.core.types import UNKNOWN_LABEL, Float32Array, IntArray
from service.errors import InvalidInputError

ID_LENGTH_LIMIT = 1000
NESTING_LIMIT = 100

Attributes = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class ExemplarBatch:
    """Consecutive rows of a file, checked.

    first_row: row of the first record in the file, counted from 0. external_ids: n strings, 1 to 1,000
    characters. document_ids: n strings, or None where the file names no document. vectors: (n, D) float32,
    r, finite. logits: (n, C) float32, f(x), finite. labels: (n,) int64, y in [0, C), -1 where unknown.
    attributes: n dictionaries of JSON values, empty where the file has none.
    """

    first_row: int
    external_ids: list[str]
    document_ids: list[str | None]
    vectors: Float32Array
    logits: Float32Array
    labels: IntArray
    attributes: list[Attributes]


@dataclass(frozen=True, slots=True)
class Layout:
    """A file of exemplars: the sizes its rows must have, and what its format calls their columns."""

    path: Path
    dimension: int
    class_count: int
    vector: str = "vector"
    logits: str = "logits"
    label: str = "label"
    external_id: str = "external_id"
    document_id: str = "document_id"


def fault(path: Path, where: str, expected: str, got: object, advice: str = "") -> InvalidInputError:
    """Return the error for one place in a file, ready to be raised."""
    return InvalidInputError(f"{path}: {where}: expected {expected}, got {got}{advice and '; '}{advice}")


def make_batch(
    layout: Layout,
    first_row: int,
    *,
    vectors: Float32Array,
    logits: Float32Array,
    labels: npt.NDArray[np.integer[Any]] | None = None,
    external_ids: Sequence[str | None] | None = None,
    document_ids: Sequence[str | None] | None = None,
    attributes: Iterable[Attributes] | None = None,
) -> ExemplarBatch:
    """Check the values of consecutive rows and return them as a batch.

    vectors: (n, D), logits: (n, C), labels: (n,) of any integer type; columns the file lacks are None, and
    then ids are file name and row number, labels and documents unknown, attributes empty.

    Raises InvalidInputError naming the first row and column at fault.
    """
    row_count = len(vectors)
    if external_ids is None:
        external_ids = [f"{layout.path.name}:{first_row + row}" for row in range(row_count)]
    if document_ids is None:
        document_ids = [None] * row_count
    _check_finite(layout, first_row, layout.vector, vectors)
    _check_finite(layout, first_row, layout.logits, logits)
    return ExemplarBatch(
        first_row=first_row,
        external_ids=_checked_ids(layout, first_row, external_ids),
        document_ids=_checked_document_ids(layout, first_row, document_ids),
        vectors=vectors,
        logits=logits,
        labels=_checked_labels(layout, first_row, labels, row_count),
        attributes=[{} for _ in range(row_count)]
        if attributes is None
        else [_plain_attributes(layout, row, values) for row, values in enumerate(attributes, start=first_row)],
    )


def duplicate_ids(external_ids: Iterable[str]) -> dict[str, list[int]]:
    """Return the rows, counted from 0, of every id that occurs more than once, by id.

    >>> duplicate_ids(["a", "b", "a"])
    {'a': [0, 2]}
    """
    rows_of: dict[str, list[int]] = {}
    for row, external_id in enumerate(external_ids):
        rows_of.setdefault(external_id, []).append(row)
    return {external_id: rows for external_id, rows in rows_of.items() if len(rows) > 1}


@contextmanager
def reading(path: Path, kind: str, *damage: type[Exception]) -> Iterator[None]:
    """Turn what a library raises on a damaged or unreadable file of this kind into InvalidInputError."""
    unreadable: tuple[type[Exception], ...] = (OSError, *damage)
    try:
        yield
    except unreadable as error:
        raise InvalidInputError(
            f"{path}: expected a readable {kind} file, got {type(error).__name__}: {error}; "
            "it may be truncated or damaged, write or copy it again"
        ) from error


def check_is_file(path: Path) -> None:
    """Raise InvalidInputError unless the path is a regular file."""
    with reading(path, "exemplar"):
        if path.is_file():
            return
        found = "a directory" if path.is_dir() else "something else" if path.exists() else "no such file"
    raise InvalidInputError(f"{path}: expected a file, got {found}; check the path")


def _check_finite(layout: Layout, first_row: int, column: str, values: Float32Array) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        row, position = (int(index) for index in np.argwhere(~finite)[0])
        where = f"row {first_row + row}, {column}[{position}]"
        raise fault(layout.path, where, "a finite number", float(values[row, position]))


def _checked_labels(
    layout: Layout, first_row: int, labels: npt.NDArray[np.integer[Any]] | None, row_count: int
) -> IntArray:
    if labels is None:
        return np.full(row_count, UNKNOWN_LABEL, dtype=np.int64)
    outside = (labels < UNKNOWN_LABEL) | (labels >= layout.class_count)  # before the cast: uint64 would wrap
    if outside.any():
        row = int(outside.argmax())
        expected = f"{UNKNOWN_LABEL} (unknown) or 0..{layout.class_count - 1}"
        raise fault(layout.path, f"row {first_row + row}, {layout.label}", expected, int(labels[row]))
    return labels.astype(np.int64)


def _checked_ids(layout: Layout, first_row: int, values: Sequence[str | None]) -> list[str]:
    if _are_storable(values):
        return list(values)
    checked = []
    for row, value in enumerate(values, start=first_row):
        where = f"row {row}, {layout.external_id}"
        if value is None:
            raise fault(layout.path, where, "text", "null", "give every row an id, or leave the column out")
        checked.append(_checked_id(layout, where, value))
    return checked


def _are_storable(values: Sequence[str | None]) -> TypeGuard[Sequence[str]]:
    """Whether `_checked_id` would take them all: looked at together, which is several times as fast as one by one."""
    if None in values:
        return False
    texts = cast(Sequence[str], values)
    lengths = set(map(len, texts))
    if not 1 <= min(lengths, default=1) <= max(lengths, default=1) <= ID_LENGTH_LIMIT:
        return False
    try:
        _check_text("".join(texts))
    except ValueError:
        return False
    return True


def _checked_document_ids(layout: Layout, first_row: int, values: Sequence[str | None]) -> list[str | None]:
    return [
        None if value is None else _checked_id(layout, f"row {row}, {layout.document_id}", value)
        for row, value in enumerate(values, start=first_row)
    ]


def _checked_id(layout: Layout, where: str, value: str) -> str:
    if not 1 <= len(value) <= ID_LENGTH_LIMIT:
        expected = f"1 to {ID_LENGTH_LIMIT:,} characters"
        raise fault(layout.path, where, expected, f"{len(value):,}")
    try:
        _check_text(value)
    except ValueError as error:
        raise fault(layout.path, where, *error.args) from None
    return value


def _check_text(value: str) -> None:
    """Raise ValueError(expected, got) where Postgres could not keep the text."""
    if "\0" in value:
        raise ValueError("text without NUL characters", ascii(value[:80]))
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("text that UTF-8 can encode", ascii(value[:80])) from None


def _plain_attributes(layout: Layout, row: int, attributes: Attributes) -> Attributes:
    plain = {}
    for name, value in attributes.items():
        where = f"row {row}, attribute {name!a}"
        try:
            plain[_plain(name)] = _plain(value)
        except ValueError as error:
            raise fault(layout.path, where, *error.args) from None
    return plain


def _plain(value: Any, depth: int = 0) -> Any:
    """Return the value as JSON knows it; NaN and infinities, which JSON lacks, become None.

    Raises ValueError(expected, got[, advice]) where JSON has no such value.
    """
    if depth > NESTING_LIMIT:
        raise ValueError(f"a value nested at most {NESTING_LIMIT} deep", "a deeper one")
    match value:
        case None | bool() | int():
            return value
        case float() | np.floating():
            return float(value) if math.isfinite(value) else None
        case str():
            _check_text(value)
            return value
        case list():
            return [_plain(item, depth + 1) for item in value]
        case dict():
            return {_plain(key): _plain(item, depth + 1) for key, item in value.items()}
    expected = "numbers, texts, booleans, or lists and dictionaries of them"
    raise ValueError(expected, f"a {type(value).__name__}", "cast it to text or leave it out")
