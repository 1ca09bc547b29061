"""The memory that a column of a Parquet file takes once it is decoded, from the headers of its pages and dictionaries.

The footer says how large a column is, but decoders do not rely on it: a page is as large as its own header says. The
header is a Thrift structure (parquet.thrift, PageHeader), of which the few fields needed are read here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import pyarrow as pa

from venn_admit.files.parquet.thrift import I32, CompactReader, Struct

_DICTIONARY_ENCODINGS, _DELTA_BYTE_ARRAY = (2, 8), 7  # enum Encoding
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3  # enum PageType
_DETAILS = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}  # the field that describes a page of the type
_HEADER = Struct(
    {1: I32, 2: I32, 3: I32}, {5: Struct({1: I32, 2: I32}), 7: Struct({1: I32}), 8: Struct({1: I32, 4: I32})}
)
_HEADER_BYTES = 1 << 13
_LONG_HEADER_BYTES = 1 << 20  # of a header with statistics of long texts
# The size of a dictionary whose texts are looked at; writers begin another encoding after 1 MiB, unless they are told
# otherwise.
_DICTIONARY_BYTES = 1 << 21
_LENGTH_BYTES = 4
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 5: "lz4_raw", 6: "zstd", 7: "lz4_raw"}  # enum CompressionCodec


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

    Raises ValueError if there is no page header, or one that no page can have.
    """
    end, place, seen = min(start + length, file.seek(0, 2)), start, 0
    while place < end and seen < value_count:
        fields, header_bytes = _read_header(file, place)
        kind, size, stored = fields[1], fields[2], fields[3]
        content = place + header_bytes
        details = fields.get(_DETAILS.get(kind, 0))
        if details is None or size < 0 or stored < 0 or details[1] < 0 or content + stored > end:
            raise ValueError(f"the page header at byte {place:,} is that of no page")
        place = content + stored
        if kind == _DICTIONARY:
            yield Page(True, size, details[1], None, content, stored)
        else:
            seen += details[1]
            yield Page(False, size, details[1], details[2 if kind == _DATA else 4], content, stored)


def longest_text(file: IO[bytes], dictionary: Page, codec: int) -> int:
    """Return the bytes of the longest text of a dictionary; of a large or damaged one, those of all its texts.

    codec: a number of parquet.thrift's enum, by which the column is compressed.
    """
    if dictionary.size > _DICTIONARY_BYTES:
        return dictionary.size
    file.seek(dictionary.place)
    content, place, longest = file.read(dictionary.stored), 0, 0
    try:
        if codec:  # 5 is LZ4 as Hadoop frames it, which cannot be read with it
            content = pa.decompress(content, dictionary.size, codec=_CODECS[codec], asbytes=True)
    except (pa.ArrowException, KeyError, OSError, ValueError):
        return dictionary.size
    while place < len(content):  # each text comes after its length
        length = int.from_bytes(content[place : place + _LENGTH_BYTES], "little")
        longest, place = max(longest, length), place + _LENGTH_BYTES + length
    return min(longest, dictionary.size)


def _read_header(file: IO[bytes], place: int) -> tuple[dict[int, Any], int]:
    """The fields of the page header at a place, by number, and the length of the header."""
    for limit in (_HEADER_BYTES, _LONG_HEADER_BYTES):
        file.seek(place)
        reader = CompactReader(file.read(limit))
        try:
            return reader.struct(_HEADER), reader.place
        except IndexError:
            continue
    raise ValueError(f"no page header at byte {place:,}")
