"""Exemplars from Parquet, in record batches: the columns are those of `venn_admit.files.arrow.batches`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.files.arrow.batches import check_schema, to_batch, with_extractor
from venn_admit.files.arrow.types import COLUMN_LIMIT, DAMAGE, affordable_batches, to_list, valid_batches
from venn_admit.files.inputs import batch_bytes, input_error, reading, too_large
from venn_admit.files.parquet.footer import Footer, read_footer
from venn_admit.files.parquet.limits import affordable_rows, dictionary_columns
from venn_admit.files.records import ExemplarBatch, Layout

_STREAM_BYTES = 1 << 20


def read_batches(path: Path, layout: Layout, batch_rows: int) -> Iterator[ExemplarBatch]:
    """Read a Parquet file in batches; see `venn_admit.files.read_exemplars`.

    Columns are read through buffers, so that it takes the memory of a batch and some pages, whatever the row groups.
    """
    budget = layout.memory_budget
    footer = read_footer(path, budget)
    check_schema(layout, footer.schema)
    layout = with_extractor(layout, footer.schema)
    if not footer.row_count:
        raise input_error(path, "table", "at least one row", 0)
    row_bytes = ((layout.dimension or 0) + layout.class_count) * np.dtype(np.float64).itemsize * 2
    if row_bytes > batch_bytes(budget):
        raise too_large(path, "a row", batch_bytes(budget), row_bytes, "use shorter vectors")
    batch_rows = min(batch_rows, batch_bytes(budget) // row_bytes)
    first_row = 0
    for batch in batches_within(path, footer, footer.schema.names, batch_rows, budget):
        yield to_batch(layout, first_row, batch)
        first_row += batch.num_rows


def count_rows(path: Path) -> int:
    """Return the number of rows of a Parquet file, from its footer."""
    return read_footer(path, DEFAULT_MEMORY_BUDGET).row_count


def batches_within(
    path: Path, footer: Footer, columns: Sequence[str], batch_rows: int, memory_budget: int
) -> Iterator[pa.RecordBatch]:
    """Yield some columns of a file in batches of at most `batch_rows` rows that fit into memory.

    Texts that are stored in dictionaries stay there, where each is held once. Raises InvalidInputError for content that
    does not fit, and for a file with fewer rows than its footer names.
    """
    with reading(path, "parquet file", *DAMAGE):
        as_dictionaries = dictionary_columns(path, footer)
        rows = affordable_rows(path, footer, columns, as_dictionaries, batch_rows, memory_budget)
        source = pq.ParquetFile(
            path,
            metadata=footer.metadata,
            read_dictionary=as_dictionaries,
            buffer_size=_STREAM_BYTES,
            pre_buffer=False,
            page_checksum_verification=True,
        )
    with source:
        read = 0
        for batch in valid_batches(path, "parquet file", source.iter_batches(rows, columns=list(columns))):
            yield from affordable_batches(path, batch, read, batch_bytes(memory_budget))
            read += batch.num_rows
    if read != footer.row_count:
        raise input_error(path, "table", f"the {footer.row_count:,} rows that its footer names", f"{read:,}")


def read_rows(path: Path, batch_rows: int, memory_budget: int) -> Iterator[dict[str, Any]]:
    """Yield the values of each row by column, read in batches of at most `batch_rows` rows.

    Raises InvalidInputError for a file that cannot be read, or whose columns `check_columns` refuses.
    """
    footer = read_footer(path, memory_budget)
    names = footer.schema.names
    check_columns(path, names)
    for batch in batches_within(path, footer, names, batch_rows, memory_budget):
        with reading(path, "parquet file", *DAMAGE):
            columns = [to_list(column) for column in batch.columns]
        for values in zip(*columns, strict=True):
            yield dict(zip(names, values, strict=True))


def check_columns(path: Path, names: Sequence[str]) -> None:
    """Raise InvalidInputError if a table has too many columns, or two of one name."""
    if len(set(names)) < len(names) or len(names) > COLUMN_LIMIT:
        shown = ", ".join(map(repr, names[:20]))
        raise input_error(path, "columns", f"at most {COLUMN_LIMIT:,}, every name once", shown)
