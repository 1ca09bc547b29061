"""Thrift's compact protocol, in which the footer and the page headers of a Parquet file are written.

A structure is read by the types that its fields must have. Fields that nobody asks for are skipped; the others are also
kept as they were written, so that Arrow can be given a structure that consists of them alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

# The types of the protocol; a truth value has no content, because its type tells it. Parquet has no maps, type 11.
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12

_BITS = {I16: 16, I32: 32, I64: 64}
_DOUBLE_BYTES = 8
_VARINT_BITS = 70  # in ten bytes, the most that 64 bits take
_LONG_LIST = 15
_DEPTH_LIMIT = 16


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list. most: how many items it may have."""

    kind: ClassVar[int] = LIST
    item: "Type"
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Struct:
    """A structure, by the types of the fields that are asked for; it is damaged without those that are required."""

    kind: ClassVar[int] = STRUCT
    required: "Mapping[int, Type]" = field(default_factory=dict)
    optional: "Mapping[int, Type]" = field(default_factory=dict)


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
