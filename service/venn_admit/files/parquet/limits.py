"""The memory that a Parquet file would take, determined before any of it is decoded.

Texts are read as dictionaries, so what remains to be bounded are pages, dictionaries, and texts outside of them.

The footer says how large a column is, but decoders do not rely on it: a page is as large as its own header says. The
header is a Thrift structure (parquet.thrift, PageHeader), of which the few fields needed are read here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from venn_admit.files.arrow.types import LISTED_VALUE_BYTES
from venn_admit.files.inputs import too_large
from venn_admit.files.parquet.footer import I32, LENGTH_BYTES, Chunk, CompactReader, Footer, Struct

# A column of lists that does not fit into memory is considered a trap beyond this compression.
_COMPRESSION_LIMIT = 100
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
_CODECS = {1: "snappy", 2: "gzip", 4: "brotli", 5: "lz4_raw", 6: "zstd", 7: "lz4_raw"}  # enum CompressionCodec


def dictionary_columns(path: Path, footer: Footer) -> list[str]:
    """Return the paths of the text columns, nested ones included, all of whose values are in dictionaries.

    Other columns must not be read as dictionaries: Arrow would collect all values outside dictionaries in a new one.
    """
    all_in_dictionaries: dict[str, bool] = {}
    with path.open("rb") as stream:
        for row_group in footer.row_groups:
            for column, chunk in zip(footer.metadata.schema, row_group, strict=True):
                if column.physical_type == "BYTE_ARRAY":
                    pages = _Pages.read(stream, chunk, texts=False)
                    every = all_in_dictionaries.get(column.path, True)
                    all_in_dictionaries[column.path] = every and not sum(pages.text_bytes(1))
    return [name for name, every in all_in_dictionaries.items() if every]


def affordable_rows(
    path: Path, footer: Footer, columns: Sequence[str], as_dictionaries: Sequence[str], batch_rows: int, budget: int
) -> int:
    """Return how many rows, at most `batch_rows`, can be decoded at a time; InvalidInputError if not even one can.

    columns: names of the columns to read. as_dictionaries: paths of the columns whose texts stay in dictionaries.
    """
    rows = batch_rows
    # A name may have a dot itself; it then is the whole path, or the start of it.
    starts = tuple(f"{name}." for name in columns)
    with path.open("rb") as stream:
        for group, row_group in enumerate(footer.row_groups):
            held = 0
            for column, chunk in zip(footer.metadata.schema, row_group, strict=True):
                if not f"{column.path}.".startswith(starts):
                    continue
                holds_texts = column.physical_type == "BYTE_ARRAY"
                pages = _Pages.read(stream, chunk, texts=holds_texts and column.path not in as_dictionaries)
                held += pages.held
                if column.max_repetition_level:
                    _check_list(path, column, chunk, pages, budget)
                elif holds_texts:
                    rows = pages.rows_within(rows, budget // 4)  # a few pages of text, or batches would be single rows
            if held > budget // 4:
                where = f"row group {group}, its dictionaries and a page of each column"
                raise too_large(path, where, budget // 4, held, "write smaller pages, or leave long texts out")
    return rows


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
        length = int.from_bytes(content[place : place + LENGTH_BYTES], "little")
        longest, place = max(longest, length), place + LENGTH_BYTES + length
    return min(longest, dictionary.size)


@dataclass(frozen=True, slots=True)
class _Pages:
    """The pages of a column chunk.

    held: bytes of its dictionary and its largest page, which are held at once. data: its other pages. longest_text: of
    the dictionary if texts are decoded without one, in bytes; 0 if they stay in theirs.
    """

    held: int
    data: list[Page]
    longest_text: int

    @classmethod
    def read(cls, stream: IO[bytes], chunk: Chunk, *, texts: bool) -> Self:
        """Read the headers. texts: whether its dictionary is of texts, which are decoded without it."""
        pages = list(read_pages(stream, chunk.start, chunk.length, chunk.value_count))
        dictionaries = [page for page in pages if page.is_dictionary]
        data = [page for page in pages if not page.is_dictionary]
        held = sum(max((max(one.size, one.stored) for one in part), default=0) for part in (dictionaries, data))
        expanded = dictionaries if texts else []
        longest = max((longest_text(stream, page, chunk.codec) for page in expanded), default=0)
        return cls(held, data, longest)

    @property
    def value_count(self) -> int:
        return sum(page.value_count for page in self.data)

    def text_bytes(self, rows: int) -> list[int]:
        """The bytes that the texts of this many rows of each page take at most."""
        return [page.text_bytes(rows, self.longest_text) for page in self.data]

    def rows_within(self, rows: int, limit: int) -> int:
        """The number of rows, 1 to `rows`, that never hold more text than the limit, wherever they begin."""
        counts = np.array([page.value_count for page in self.data], dtype=np.int64)
        ends = np.cumsum(counts)
        starts = ends - counts
        while rows > 1:
            held = np.concatenate(([0.0], np.cumsum(self.text_bytes(rows), dtype=np.float64)))
            # A batch that begins with the last row of a page reaches all pages that begin before its own end.
            reached = np.searchsorted(starts, ends + rows - 1)
            if (held[reached] - held[:-1]).max(initial=0) <= limit:
                break
            rows //= 2
        return rows


def _check_list(path: Path, column: pq.ColumnSchema, chunk: Chunk, pages: _Pages, budget: int) -> None:
    """Refuse a list column that is too large; only decoding tells whether one row holds its whole row group."""
    held = pages.value_count * LISTED_VALUE_BYTES
    if column.physical_type == "BYTE_ARRAY":
        held += sum(pages.text_bytes(pages.value_count))
    if held > budget // 4 and held > _COMPRESSION_LIMIT * chunk.length:
        where = f"column {column.path!r}, a row group"
        raise too_large(path, where, budget // 4, held, "write smaller row groups")


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
