"""The footer of a Parquet file, of which Arrow is given what it needs to read rows, and nothing else.

A footer is a Thrift structure (parquet.thrift, FileMetaData). Arrow's reader ends the process at some damage in what it
does not need, such as the statistics of sizes that come with each column, so that all of it is left out beforehand.
"""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from venn_admit.files.arrow.batches import DAMAGE
from venn_admit.files.budget import too_large
from venn_admit.files.parquet.thrift import BINARY, I32, I64, STRUCT, CompactReader, ListOf, Struct
from venn_admit.files.records import check_is_file, reading

_MAGIC = b"PAR1"
_LENGTH_BYTES = 4
_FOOTER_SHARE = 128  # it grows by this factor when it is read
_COLUMN_LIMIT = 1000
_ITEM_LIMIT = 10 * _COLUMN_LIMIT  # of short items, which grow by more; a column may consist of several of them

# What is read of the structures of parquet.thrift, by the numbers of their fields.
_SCHEMA_ELEMENT = Struct({4: BINARY}, {1: I32, 2: I32, 3: I32, 5: I32, 6: I32, 7: I32, 8: I32, 10: STRUCT})
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
        length = len(reader.kept).to_bytes(_LENGTH_BYTES, "little")
        metadata = pq.read_metadata(pa.BufferReader(_MAGIC + reader.kept + length + _MAGIC))
        schema = metadata.schema.to_arrow_schema()
        columns = max(metadata.num_columns, len(schema.names))  # of which a name that is no text is refused
        if columns > _COLUMN_LIMIT:
            raise ValueError(f"it has {columns:,} columns, expected at most {_COLUMN_LIMIT:,}")
        if any(len(group) != metadata.num_columns for group in row_groups):
            raise ValueError(f"its footer names {metadata.num_columns:,} columns, but row groups of others")
    return Footer(row_count, row_groups, metadata, schema)


def _footer_bytes(path: Path, limit: int) -> bytes:
    with path.open("rb") as file:
        file_bytes = file.seek(0, 2)
        end = max(file_bytes - _LENGTH_BYTES - len(_MAGIC), 0)
        file.seek(end)
        length, magic = int.from_bytes(file.read(_LENGTH_BYTES), "little"), file.read(len(_MAGIC))
        if magic != _MAGIC or length > end:
            raise ValueError("it does not end like a Parquet file")
        if length > limit:
            raise too_large(path, "footer", limit, length, "write fewer columns and larger row groups")
        file.seek(end - length)
        return file.read(length)


def _chunk(column: dict[int, int]) -> Chunk:
    start = min((offset for offset in (column[9], column.get(11, 0)) if offset), default=0)
    return Chunk(start, column[7], column[5], column[4])
