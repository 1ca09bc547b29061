"""The memory that a Parquet file would take, determined before any of it is decoded.

Texts are read as dictionaries, so what remains to be bounded are pages, dictionaries, and texts outside of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self

import numpy as np
import pyarrow.parquet as pq

from venn_admit.files.arrow.sizes import LISTED_VALUE_BYTES
from venn_admit.files.budget import too_large
from venn_admit.files.parquet.footer import Chunk, Footer
from venn_admit.files.parquet.pages import Page, longest_text, read_pages

# A column of lists that does not fit into memory is considered a trap beyond this compression.
_COMPRESSION_LIMIT = 100


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
        where = f"column {column.path!a}, a row group"
        raise too_large(path, where, budget // 4, held, "write smaller row groups")
