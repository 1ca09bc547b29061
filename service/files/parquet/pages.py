"""The memory that a column of a Parquet file takes once it is decoded, from the headers of its pages and dictionaries.

The footer says how large a column is, but decoders do not rely on it: a page is as large as its own header says. The
header is a Thrift structure in compact protocol (parquet.thrift, PageHeader); the few fields needed are read here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa

_DICTIONARY_ENCODINGS, _DELTA_BYTE_ARRAY = (2, 8), 7  # enum Encoding
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3  # enum PageType
_DETAILS = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}  # the field that describes a page of the type
_HEADER_BYTES = 1 << 13
_LONG_HEADER_BYTES = 1 << 20  # of a header with statistics of long texts
_DEPTH_LIMIT = 8
# Of a dictionary whose texts are looked at; writers begin another encoding after 1 MiB, unless they are told otherwise.
_DICTIONARY_BYTES = 1 << 21
_LENGTH_BYTES = 4
_CODECS = {"LZ4": "lz4_raw"}  # what is framed as by Hadoop cannot be read with it


@dataclass(frozen=True, slots=True)
class Page:
    """A page as its header describes it.

    size: bytes once decompressed. value_count: values, nulls included, or entries of a dictionary. encoding: a number
    of parquet.thrift's enum, None if the header names none. place, stored: where its content begins in the file, and
    its bytes there.
    """

    is_dictionary: bool
    size: int
    value_count: int
    encoding: int | None
    place: int
    stored: int

    def text_bytes(self, rows: int, longest_text: int) -> int:
        """Return the bytes that the texts of this many of its rows take at most once decoded, if it holds texts.

        longest_text: bytes of the longest one in the dictionary that they refer to.
        """
        if self.encoding in _DICTIONARY_ENCODINGS:
            return min(self.value_count, rows) * longest_text
        # In DELTA_BYTE_ARRAY a text repeats the start of the one before, so that each may be as long as the page.
        return min(self.value_count, rows) * self.size if self.encoding == _DELTA_BYTE_ARRAY else self.size


def read_pages(file: IO[bytes], start: int, length: int, value_count: int) -> Iterator[Page]:
    """Yield the pages of a column chunk of `length` bytes at `start`, up to the one with its last value.

    Raises ValueError if there is no page header.
    """
    end, place, seen = start + length, start, 0
    while place < end and seen < value_count:
        fields, header_bytes = _read_header(file, place)
        size, stored = fields.get(2), fields.get(3)
        if not isinstance(size, int) or not isinstance(stored, int) or size < 0 or stored < 0:
            raise ValueError(f"the page header at byte {place:,} names no size")
        content = place + header_bytes
        place = content + stored
        kind = fields.get(1)
        details = fields.get(_DETAILS[kind], {}) if kind in _DETAILS else {}
        count = details.get(1, 0)
        if count < 0:
            raise ValueError(f"the page header before byte {place:,} names {count:,} values")
        if kind in (_DATA, _DATA_V2):
            seen += count
            yield Page(False, size, count, details.get(2 if kind == _DATA else 4), content, stored)
        elif kind == _DICTIONARY:
            yield Page(True, size, count, None, content, stored)


def longest_text(file: IO[bytes], dictionary: Page, compression: str) -> int:
    """Return the bytes of the longest text of a dictionary; of a large or damaged one, those of all its texts.

    compression: as the footer names that of the column.
    """
    if dictionary.size > _DICTIONARY_BYTES:
        return dictionary.size
    file.seek(dictionary.place)
    content, place, longest = file.read(dictionary.stored), 0, 0
    try:
        if compression != "UNCOMPRESSED":
            content = pa.decompress(
                content, dictionary.size, codec=_CODECS.get(compression, compression.lower()), asbytes=True
            )
    except (pa.ArrowException, OSError, ValueError):
        return dictionary.size
    while place < len(content):  # each text comes after its length
        length = int.from_bytes(content[place : place + _LENGTH_BYTES], "little")
        longest, place = max(longest, length), place + _LENGTH_BYTES + length
    return min(longest, dictionary.size)


def _read_header(file: IO[bytes], place: int) -> tuple[dict[int, Any], int]:
    """The fields of the page header at a place, by number, and the length of the header."""
    for limit in (_HEADER_BYTES, _LONG_HEADER_BYTES):
        file.seek(place)
        reader = _CompactReader(file.read(limit))
        try:
            return reader.struct(0), reader.place
        except IndexError:
            continue
    raise ValueError(f"no page header at byte {place:,}")


class _CompactReader:
    """Thrift's compact protocol; raises IndexError if the data end too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.place = 0

    def struct(self, depth: int) -> dict[int, Any]:
        if depth > _DEPTH_LIMIT:
            raise ValueError("a page header is nested too deep")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._integer()
            fields[number] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        match kind:
            case 1 | 2:  # true, false
                return kind == 1
            case 3:
                return self._byte()
            case 4 | 5 | 6:
                return self._integer()
            case 7:  # double
                self.place += 8
            case 8:  # binary
                length = self._varint()
                self.place += length
            case 9 | 10:  # list, set
                return self._list(depth)
            case 12:
                return self.struct(depth + 1)
            case _:
                raise ValueError(f"a page header has a field of unknown type {kind}")
        return None

    def _list(self, depth: int) -> None:
        head = self._byte()
        length = self._varint() if head >> 4 == 15 else head >> 4
        for _ in range(length):
            if head & 15 in (1, 2):
                self._byte()
            else:
                self._value(head & 15, depth + 1)

    def _byte(self) -> int:
        self.place += 1
        return self._data[self.place - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
