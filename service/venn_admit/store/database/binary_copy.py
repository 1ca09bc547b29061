"""Binary COPY of whole arrays, in both directions.

Each column knows its wire format (PostgreSQL documentation, COPY, "Binary Format", and the send functions of the types;
pgvector's `vector_send`). Rows of columns of fixed size are one array, encoded without a Python loop; rows with nulls
or texts are joined from their fields.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg.abc import Buffer
from psycopg.generators import fetch_many
from psycopg.pq import ExecStatus
from sqlalchemy import Connection

from venn_admit.core.content import bytes_of_rows
from venn_admit.errors import DatabaseError
from venn_admit.store.database.engine import Cursor, driver_cursor
from venn_admit.store.database.statements import copy_query

_HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
_TRAILER = b"\xff\xff"
_NULL = b"\xff\xff\xff\xff"
# The rows that are encoded at a time, while the server processes those before; it waits for the first of them.
_SENT_ROWS = 1024
_READ_ROWS = 8192
# The bytes of columns of fixed size that are encoded or decoded at a time.
_BLOCK_BYTES = 1 << 20
_OID = {np.dtype(">i4"): 23, np.dtype(">i8"): 20, np.dtype(">f4"): 700, np.dtype(">f8"): 701}


@dataclass(frozen=True, slots=True)
class Scalar:
    """int4, int8, float8 or bool, converted from and to (n,) `of`."""

    dtype: str
    of: type[np.generic]

    @property
    def wire(self) -> np.dtype[np.void]:
        return np.dtype([("value", self.dtype)])

    def fill(self, wire: npt.NDArray[np.void], values: npt.NDArray[np.generic]) -> None:
        wire["value"] = values

    def take(self, wire: npt.NDArray[np.void]) -> npt.NDArray[np.generic]:
        return wire["value"].astype(self.of)


INT4 = Scalar(">i4", np.int64)
INT8 = Scalar(">i8", np.int64)
FLOAT8 = Scalar(">f8", np.float64)
BOOL = Scalar("?", np.bool_)


@dataclass(frozen=True, slots=True)
class Array:
    """A one-dimensional array of fixed length, without nulls, converted from and to (n, length)."""

    dtype: str
    length: int

    @property
    def wire(self) -> np.dtype[np.void]:
        element = np.dtype([("size", ">i4"), ("value", self.dtype)])
        head = [(name, ">i4") for name in ("dimensions", "has_null", "oid", "length", "lower_bound")]
        return np.dtype([*head, ("elements", element, (self.length,))])

    def fill(self, wire: npt.NDArray[np.void], values: npt.NDArray[np.generic]) -> None:
        dtype = np.dtype(self.dtype)
        wire["dimensions"], wire["has_null"], wire["oid"] = 1, 0, _OID[dtype]
        wire["length"], wire["lower_bound"] = self.length, 1
        wire["elements"]["size"], wire["elements"]["value"] = dtype.itemsize, values

    def take(self, wire: npt.NDArray[np.void]) -> npt.NDArray[np.generic]:
        return wire["elements"]["value"].astype(np.dtype(self.dtype).newbyteorder("="))


@dataclass(frozen=True, slots=True)
class Vector:
    """pgvector's `vector` of a fixed dimension, converted from and to (n, dimension) float32."""

    dimension: int

    @property
    def wire(self) -> np.dtype[np.void]:
        return np.dtype([("dimension", ">i2"), ("unused", ">i2"), ("value", ">f4", (self.dimension,))])

    def fill(self, wire: npt.NDArray[np.void], values: npt.NDArray[np.generic]) -> None:
        wire["dimension"], wire["unused"], wire["value"] = self.dimension, 0, values

    def take(self, wire: npt.NDArray[np.void]) -> npt.NDArray[np.generic]:
        return wire["value"].astype(np.float32)


@dataclass(frozen=True, slots=True)
class Bits:
    """`bit varying` of a fixed length, converted from and to (n, length) bool."""

    length: int

    @property
    def wire(self) -> np.dtype[np.void]:
        return np.dtype([("length", ">i4"), ("value", "u1", ((self.length + 7) // 8,))])

    def fill(self, wire: npt.NDArray[np.void], values: npt.NDArray[np.generic]) -> None:
        wire["length"], wire["value"] = self.length, np.packbits(values.astype(np.bool_), axis=1)

    def take(self, wire: npt.NDArray[np.void]) -> npt.NDArray[np.generic]:
        return np.unpackbits(wire["value"], axis=1, count=self.length).astype(np.bool_)


@dataclass(frozen=True, slots=True)
class PackedBits:
    """`bit varying` of a fixed length, converted from and to (n, ceil(length / 8)) uint8 as `np.packbits` packs it."""

    length: int

    @property
    def wire(self) -> np.dtype[np.void]:
        return Bits(self.length).wire

    def fill(self, wire: npt.NDArray[np.void], values: npt.NDArray[np.generic]) -> None:
        wire["length"], wire["value"] = self.length, values

    def take(self, wire: npt.NDArray[np.void]) -> npt.NDArray[np.generic]:
        return wire["value"].copy()


@dataclass(frozen=True, slots=True)
class Bytes:
    """text, jsonb or bytea, from a sequence of n bytes or None, each as its type is sent. Write only."""


TEXT = Bytes()
BYTEA = Bytes()
JSONB = Bytes()  # each value starts with the version byte 1


FixedColumn = Scalar | Array | Vector | Bits | PackedBits
Column = FixedColumn | Bytes
Values = npt.NDArray[np.generic] | Sequence[bytes | None]
FilledColumns = Mapping[str, tuple[Column, Values]]
"""The format and the n values of each column by its name: an array (n, ...) or, for `Bytes`, a sequence."""


def _encode_fixed(columns: Mapping[str, FixedColumn], values: Mapping[str, Values]) -> bytes:
    """Encode rows of columns of fixed size without nulls, filled in place."""
    rows = np.empty(len(next(iter(values.values()))), dtype=_row_type(columns))
    rows["fields"] = len(columns)
    for name, column in columns.items():
        rows[f"{name} size"] = column.wire.itemsize
        column.fill(rows[name], np.asarray(values[name]))
    return rows.tobytes()


def _fields(column: Column, values: Values, nulls: npt.NDArray[np.bool_] | None) -> list[bytes]:
    """Return each value of a column behind its size, or the size alone that stands for a null."""
    if isinstance(column, Bytes):
        return [_NULL if value is None else len(value).to_bytes(4, "big") + value for value in values]
    rows = np.empty(len(values), dtype=[("size", ">i4"), ("value", column.wire)])
    rows["size"] = column.wire.itemsize
    column.fill(rows["value"], np.asarray(values))
    fields = bytes_of_rows(rows)
    return fields if nulls is None else [_NULL if null else field for field, null in zip(fields, nulls, strict=True)]


def _row_type(columns: Mapping[str, FixedColumn]) -> np.dtype[np.void]:
    """The type of a row of a COPY: the number of its fields, and each field behind its size."""
    fields: list[tuple[str, Any]] = [("fields", ">i2")]
    for name, column in columns.items():
        fields += [(f"{name} size", ">i4"), (name, column.wire)]
    return np.dtype(fields)


def _record_type(columns: Mapping[str, FixedColumn]) -> np.dtype[np.void]:
    """The type of a row by `record_send`: the number of its fields, and each field behind its type and size."""
    fields: list[tuple[str, Any]] = [("fields", ">i4")]
    for name, column in columns.items():
        fields += [(f"{name} type", ">i4"), (f"{name} size", ">i4"), (name, column.wire)]
    return np.dtype(fields)


def encode_rows(
    columns: Mapping[str, Column], values: Mapping[str, Values], nulls: Mapping[str, npt.NDArray[np.bool_]]
) -> bytes:
    """Return the rows in the binary COPY format, without header and trailer."""
    fixed = {name: column for name, column in columns.items() if not isinstance(column, Bytes)}
    if len(fixed) == len(columns) and not any(mask.any() for mask in nulls.values()):
        return _encode_fixed(fixed, values)
    count = itertools.repeat(len(columns).to_bytes(2, "big"), len(next(iter(values.values()))))
    fields = [_fields(column, values[name], nulls.get(name)) for name, column in columns.items()]
    return b"".join(itertools.chain.from_iterable(zip(count, *fields, strict=True)))


def copy_in(
    cursor: Cursor,
    table: str,
    columns: FilledColumns,
    nulls: Mapping[str, npt.NDArray[np.bool_]] | None = None,
    block_rows: int = _SENT_ROWS,
) -> None:
    """Append n rows to `table`, at most `block_rows` at a time.

    nulls: (n,) bool by name, true if a column of fixed size is null.
    """
    formats = {name: column for name, (column, _) in columns.items()}
    n = len(next(iter(columns.values()))[1])
    width = sum(column.wire.itemsize for column in formats.values() if not isinstance(column, Bytes))
    block_rows = min(block_rows, max(1, _BLOCK_BYTES // max(1, width)))
    with cursor.copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT binary)".encode()) as copy:
        copy.write(_HEADER)
        for start in range(0, n, block_rows):
            rows = slice(start, start + block_rows)
            block = {name: values[rows] for name, (_, values) in columns.items()}
            copy.write(encode_rows(formats, block, {name: mask[rows] for name, mask in (nulls or {}).items()}))
        copy.write(_TRAILER)


def copy_out(
    cursor: Cursor, query: str, parameters: Mapping[str, object], columns: Mapping[str, FixedColumn], block_rows: int
) -> Iterator[dict[str, npt.NDArray[Any]]]:
    """Yield the rows of `query`, which must return `columns` without nulls, in blocks of at most `block_rows`."""
    row = _row_type(columns)
    enough = block_rows * row.itemsize + len(_TRAILER)
    with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT binary)".encode(), dict(parameters)) as copy:
        messages = _messages(copy)
        pending = bytearray(next(messages)[len(_HEADER) :])
        for data in messages:
            pending += data
            if len(pending) >= enough:
                yield _decode(pending[: block_rows * row.itemsize], row, columns)
                del pending[: block_rows * row.itemsize]
    del pending[-len(_TRAILER) :]
    while pending:
        yield _decode(pending[: block_rows * row.itemsize], row, columns)
        del pending[: block_rows * row.itemsize]


def _messages(copy: psycopg.Copy) -> Iterator[Buffer]:
    """Yield what a COPY sends, a row each.

    The driver waits for the first of those that arrive together, and the others are taken from libpq at once: to the
    driver each is a wait of its own, which takes ten times as long as the row.
    """
    received = copy.connection.pgconn
    while data := copy.read():
        size = len(data)
        while size > 0:
            yield data
            size, data = received.get_copy_data(1)
        if size < 0:  # it has ended, well or not, which the driver has not seen
            for result in copy.connection.wait(fetch_many(received)):
                if result.status != ExecStatus.COMMAND_OK:
                    raise psycopg.errors.error_from_result(result, encoding=copy.connection.info.encoding)
            return


def copy_out_packed(
    cursor: Cursor, query: str, parameters: Mapping[str, object], columns: Mapping[str, FixedColumn]
) -> Iterator[dict[str, npt.NDArray[Any]]]:
    """Yield the rows of `query` as blocks: each is `string_agg(record_send(row), '')` of rows of `columns`.

    The driver hands over single rows, which costs more than reading them; packed, hundreds cost as little as one.
    """
    row = _record_type(columns)
    with cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT binary)".encode(), dict(parameters)) as copy:
        copy.set_types(["bytea"])
        for (packed,) in copy.rows():
            yield _decode(packed, row, columns)


def read_columns(
    connection: Connection, name: str, columns: Mapping[str, FixedColumn], /, **parameters: object
) -> dict[str, npt.NDArray[Any]]:
    """Return all rows of the statement `file.name`, which must return `columns` without nulls, in its order."""
    none = {name: column.take(np.zeros(0, dtype=column.wire)) for name, column in columns.items()}
    block_rows = max(1, min(_READ_ROWS, _BLOCK_BYTES // _row_type(columns).itemsize))
    blocks = [none, *copy_out(driver_cursor(connection), copy_query(name), parameters, columns, block_rows)]
    return {column: np.concatenate([block[column] for block in blocks]) for column in columns}


def _decode(
    data: bytes | bytearray, row: np.dtype[np.void], columns: Mapping[str, FixedColumn]
) -> dict[str, npt.NDArray[Any]]:
    if len(data) % row.itemsize:
        raise DatabaseError(_unexpected(columns))
    table = np.frombuffer(data, dtype=row)
    sizes_right = all((table[f"{name} size"] == row[name].itemsize).all() for name in columns)
    if not sizes_right or (table["fields"] != len(columns)).any():
        raise DatabaseError(_unexpected(columns))
    return {name: column.take(table[name]) for name, column in columns.items()}


def _unexpected(columns: Mapping[str, FixedColumn]) -> str:
    return (
        f"the database sent rows of an unexpected shape for columns {', '.join(columns)}: "
        "a null or an array of another length is stored; the schema and this program do not match"
    )
