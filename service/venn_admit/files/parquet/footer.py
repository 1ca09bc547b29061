"""The footer of a Parquet file, of which Arrow is given what it needs to read rows, and nothing else.

A footer is a Thrift structure (parquet.thrift, FileMetaData). Arrow's reader ends the process at some damage in what it
does not need, such as the statistics of sizes that come with each column, so that all of it is left out beforehand.

Footer and page headers are written in Thrift's compact protocol. A structure is read by the types that its fields must
have. Other fields are skipped; those that are read are also kept as they were written, so that Arrow can be given a
structure that consists of them alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from venn_admit.files.arrow.types import COLUMN_LIMIT, DAMAGE, check_column_count
from venn_admit.files.inputs import check_is_file, reading, too_large

_MAGIC = b"PAR1"
LENGTH_BYTES = 4
_FOOTER_SHARE = 128  # it grows by this factor when it is read
_ITEM_LIMIT = 10 * COLUMN_LIMIT  # of short items, which grow by more; a column may consist of several of them
# The types of the protocol; a truth value has no content, because its type tells it. Parquet has no maps, type 11.
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12
_BITS = {I16: 16, I32: 32, I64: 64}
_DOUBLE_BYTES = 8
_VARINT_BITS = 70  # in ten bytes, the most that 64 bits take
_LONG_LIST = 15
_DEPTH_LIMIT = 16


@dataclass(frozen=True, slots=True)
class Struct:
    """A structure, by the types of the fields that are asked for; it is damaged without those that are required."""

    kind: ClassVar[int] = STRUCT
    required: "Mapping[int, Type]" = field(default_factory=dict)
    optional: "Mapping[int, Type]" = field(default_factory=dict)


# What is read of the structures of parquet.thrift, by the numbers of their fields.
_SCHEMA_ELEMENT = Struct({4: BINARY}, {1: I32, 2: I32, 3: I32, 5: I32, 6: I32, 7: I32, 8: I32, 10: STRUCT})


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list. most: how many items it may have."""

    kind: ClassVar[int] = LIST
    item: "Type"
    most: int | None = None


_COLUMN = Struct({1: I32, 2: ListOf(I32), 3: ListOf(BINARY), 4: I32, 5: I64, 6: I64, 7: I64, 9: I64}, {11: I64})

_ROW_GROUP = Struct({1: ListOf(Struct({2: I64, 3: _COLUMN})), 2: I64, 3: I64})

_KEY_VALUE = Struct({1: BINARY}, {2: BINARY})

_FOOTER = Struct(
    {1: I32, 2: ListOf(_SCHEMA_ELEMENT, _ITEM_LIMIT), 3: I64, 4: ListOf(_ROW_GROUP)},
    {5: ListOf(_KEY_VALUE, _ITEM_LIMIT), 6: BINARY},
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column of a row group: `length` bytes at `start`. codec: a number of parquet.thrift's CompressionCodec."""

    start: int
    length: int
    value_count: int
    codec: int


@dataclass(frozen=True, slots=True, eq=False)
class Footer:
    """A footer, checked. row_groups: their columns, in the order of the schema of `metadata`."""

    row_count: int
    row_groups: list[list[Chunk]]
    metadata: pq.FileMetaData
    schema: pa.Schema


def read_footer(path: Path, memory_budget: int) -> Footer:
    """Read the footer of a Parquet file.

    Raises InvalidInputError for one that is damaged, contradicts itself, or would take too much memory.
    """
    check_is_file(path)
    with reading(path, "parquet file", *DAMAGE):
        reader = CompactReader(_footer_bytes(path, memory_budget // _FOOTER_SHARE))
        try:
            fields = reader.struct(_FOOTER)
        except IndexError:
            raise ValueError("its footer ends too early") from None
        row_count, counts = fields[3], [group[3] for group in fields[4]]
        row_groups = [[_chunk(column[3]) for column in group[1]] for group in fields.pop(4)]
        if min(counts, default=0) < 0 or sum(counts) != row_count:
            raise ValueError(f"its footer names {row_count:,} rows, but row groups of {sum(counts):,}")
        length = len(reader.kept).to_bytes(LENGTH_BYTES, "little")
        metadata = pq.read_metadata(pa.BufferReader(_MAGIC + reader.kept + length + _MAGIC))
        schema = metadata.schema.to_arrow_schema()
        check_column_count(max(metadata.num_columns, len(schema.names)))  # of which a name that is no text is refused
        if any(len(group) != metadata.num_columns for group in row_groups):
            raise ValueError(f"its footer names {metadata.num_columns:,} columns, but row groups of others")
    return Footer(row_count, row_groups, metadata, schema)


def _footer_bytes(path: Path, limit: int) -> bytes:
    with path.open("rb") as file:
        file_bytes = file.seek(0, 2)
        end = max(file_bytes - LENGTH_BYTES - len(_MAGIC), 0)
        file.seek(end)
        length, magic = int.from_bytes(file.read(LENGTH_BYTES), "little"), file.read(len(_MAGIC))
        if magic != _MAGIC or length > end:
            raise ValueError("it does not end like a Parquet file")
        if length > limit:
            raise too_large(path, "footer", limit, length, "write fewer columns and larger row groups")
        file.seek(end - length)
        return file.read(length)


def _chunk(column: dict[int, int]) -> Chunk:
    start = min((offset for offset in (column[9], column.get(11, 0)) if offset), default=0)
    return Chunk(start, column[7], column[5], column[4])


# A number is that of a type, whose content is kept as it is; integers and texts, as bytes, are also returned.
Type = int | ListOf | Struct


class CompactReader:
    """Reads structures; raises IndexError if the data end too early, and ValueError if they are otherwise damaged.

    Attributes:
        place: Where the next byte is.
        kept: What was asked for, as it was written.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.place = 0
        self.kept = bytearray()

    def struct(self, wanted: Struct, depth: int = 0) -> dict[int, Any]:
        """Return the values of the fields that are asked for, as far as they are there, by their numbers.

        Readers differ in what they make of a field that is there twice or has another type, so that it is refused.
        """
        found: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer(I16)
            kind = head & 15
            if number >> 15:
                raise ValueError(f"a structure has a field {number:,}")
            expected = wanted.required.get(number) or wanted.optional.get(number)
            if expected is None:
                self._skip(kind, depth)
                continue
            if number in found or kind != _kind_of(expected):
                raise ValueError(f"field {number} of a structure is there twice, or of type {kind}")
            self.kept += bytes((kind, number << 1))
            found[number] = self._value(expected, depth)
        if missing := wanted.required.keys() - found.keys():
            raise ValueError(f"a structure lacks its field {min(missing)}")
        self.kept.append(0)
        return found

    def _value(self, expected: Type, depth: int) -> Any:
        if isinstance(expected, Struct):
            return self.struct(expected, depth + 1)
        start = self.place
        if isinstance(expected, int):
            value = self._skip(expected, depth)
            self.kept += self._data[start : self.place]
            return value
        kind, length = self._list_head()
        if length and kind != _kind_of(expected.item):
            raise ValueError(f"a list has items of type {kind}")
        if expected.most is not None and length > expected.most:
            raise ValueError(f"a list has {length:,} items, expected at most {expected.most:,}")
        self.kept += self._data[start : self.place]
        return [self._value(expected.item, depth) for _ in range(length)]

    def _skip(self, kind: int, depth: int) -> int | bytes | None:
        """Read a value of any type, keep nothing of it, and return it if it is a number or a text."""
        if depth > _DEPTH_LIMIT:
            raise ValueError("a structure is nested too deep")
        match kind:
            case 1 | 2:
                return None
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._integer(kind)
            case 7:
                self._bytes(_DOUBLE_BYTES)
            case 8:
                return self._bytes(self._varint())
            case 9 | 10:
                item, length = self._list_head()
                for _ in range(length):
                    self._skip(BYTE if item in (TRUE, FALSE) else item, depth + 1)
            case 12:
                kept = len(self.kept)
                self.struct(_NOTHING, depth + 1)
                del self.kept[kept:]
            case _:
                raise ValueError(f"a structure has a field of unknown type {kind}")
        return None

    def _list_head(self) -> tuple[int, int]:
        """The type of a list's items, and how many there are; each takes a byte at least."""
        head = self._byte()
        return head & 15, self._varint() if head >> 4 == _LONG_LIST else head >> 4

    def _byte(self) -> int:
        self.place += 1
        return self._data[self.place - 1]

    def _bytes(self, length: int) -> bytes:
        start, self.place = self.place, self.place + length
        if self.place > len(self._data):
            raise IndexError
        return self._data[start : self.place]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, _VARINT_BITS, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number has more than ten bytes")

    def _integer(self, kind: int) -> int:
        value = self._varint()
        if value >> _BITS[kind]:
            raise ValueError(f"a number has more than {_BITS[kind]} bits")
        return (value >> 1) ^ -(value & 1)


_NOTHING = Struct()


def _kind_of(expected: Type) -> int:
    return expected if isinstance(expected, int) else expected.kind
