"""Rows of a Parquet file as dictionaries, one at a time."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from venn_admit.files.arrow.batches import DAMAGE
from venn_admit.files.arrow.types import to_list
from venn_admit.files.parquet.footer import read_footer
from venn_admit.files.parquet.reader import batches_within
from venn_admit.files.records import input_error, reading

_COLUMN_LIMIT = 1000


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
    if len(set(names)) < len(names) or len(names) > _COLUMN_LIMIT:
        shown = ", ".join(map(ascii, names[:20]))
        raise input_error(path, "columns", f"at most {_COLUMN_LIMIT:,}, every name once", shown)
