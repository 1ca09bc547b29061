"""The memory that a Parquet file would take, determined before any of it is decoded.

Texts are read as dictionaries, so what remains to be bounded are pages, dictionaries, and texts outside of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

import numpy as np
import pyarrow.parquet as pq

from venn_admit.service.files.arrow.sizes import LISTED_VALUE_BYTES
from venn_admit.service.files.budget import too_large
from venn_admit.service.files.parquet.pages import Page, longest_text, read_pages

_FOOTER_SHARE = 128  # it grows by this factor when it is read
_COLUMN_LIMIT = 1000
# A column of lists that does not fit into memory is considered a trap beyond this compression.
_COMPRESSION_LIMIT = 100


def check_footer(path: Path, memory_budget: int) -> None:
    """Raise InvalidInputError if a footer is too long to be read, and ValueError if there is none."""
    limit = memory_budget // _FOOTER_SHARE
    with path.open("rb") as file:
        file_bytes = file.seek(0, 2)
        file.seek(max(file_bytes - 8, 0))
        length, magic = int.from_bytes(file.read(4), "little"), file.read(4)
    if magic != b"PAR1" or length > file_bytes:
        raise ValueError("it does not end like a Parquet file")
    if length > limit:
        raise too_large(path, "footer", limit, length, "write fewer columns and larger row groups")


def check_counts(metadata: pq.FileMetaData) -> None:
    """Raise ValueError if the footer contradicts itself, or describes too many columns."""
    if metadata.num_columns > _COLUMN_LIMIT:
        raise ValueError(f"it has {metadata.num_columns:,} columns, expected at most {_COLUMN_LIMIT:,}")
    counts = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    if min(counts, default=0) < 0 or sum(counts) != metadata.num_rows:
        raise ValueError(f"its footer names {metadata.num_rows:,} rows, but row groups of {sum(counts):,}")


def dictionary_columns(path: Path, metadata: pq.FileMetaData) -> list[str]:
    """Return the paths of the text columns, nested ones included, all of whose values are in dictionaries.

    Other columns must not be read as dictionaries: Arrow would collect all values outside dictionaries in a new one.
    """
    all_in_dictionaries: dict[str, bool] = {}
    with path.open("rb") as stream:
        for group in range(metadata.num_row_groups):
            for number in range(metadata.num_columns):
                column = metadata.row_group(group).column(number)
                if column.physical_type == "BYTE_ARRAY":
                    name, pages = column.path_in_schema, _Pages.read(stream, column, expanded=False)
                    all_in_dictionaries[name] = all_in_dictionaries.get(name, True) and not sum(pages.text_bytes(1))
    return [name for name, every in all_in_dictionaries.items() if every]


def affordable_rows(
    path: Path,
    file: pq.ParquetFile,
    columns: Sequence[str],
    as_dictionaries: Sequence[str],
    batch_rows: int,
    budget: int,
) -> int:
    """Return how many rows, at most `batch_rows`, can be decoded at a time; InvalidInputError if not even one can.

    columns: names of the columns to read. as_dictionaries: paths of the columns whose texts stay in dictionaries.
    """
    rows = batch_rows
    with path.open("rb") as stream:
        for group in range(file.metadata.num_row_groups):
            held = 0
            for number in range(file.metadata.num_columns):
                column = file.metadata.row_group(group).column(number)
                if column.path_in_schema.partition(".")[0] not in columns:
                    continue
                pages = _Pages.read(stream, column, expanded=column.path_in_schema not in as_dictionaries)
                held += pages.held
                if file.schema.column(number).max_repetition_level:
                    _check_list(path, column, pages, budget)
                elif column.physical_type == "BYTE_ARRAY":
                    rows = pages.rows_within(rows, budget // 4)  # a few pages of text, or batches would be single rows
            if held > budget // 4:
                where = f"row group {group}, its dictionaries and a page of each column"
                raise too_large(path, where, budget // 4, held, "write smaller pages, or leave long texts out")
    return rows


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
    def read(cls, stream: IO[bytes], column: pq.ColumnChunkMetaData, *, expanded: bool) -> Self:
        start = min(offset for offset in (column.dictionary_page_offset, column.data_page_offset) if offset)
        pages = list(read_pages(stream, start, column.total_compressed_size, column.num_values))
        dictionaries = [page for page in pages if page.is_dictionary]
        data = [page for page in pages if not page.is_dictionary]
        held = max((page.size for page in dictionaries), default=0) + max((page.size for page in data), default=0)
        texts = dictionaries if expanded and column.physical_type == "BYTE_ARRAY" else []
        longest = max((longest_text(stream, page, column.compression) for page in texts), default=0)
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


def _check_list(path: Path, column: pq.ColumnChunkMetaData, pages: _Pages, budget: int) -> None:
    """Refuse a list column that is too large; only decoding tells whether one row holds its whole row group."""
    held = pages.value_count * LISTED_VALUE_BYTES
    if column.physical_type == "BYTE_ARRAY":
        held += sum(pages.text_bytes(pages.value_count))
    if held > budget // 4 and held > _COMPRESSION_LIMIT * column.total_compressed_size:
        where = f"column {column.path_in_schema!a}, a row group"
        raise too_large(path, where, budget // 4, held, "write smaller row groups")
