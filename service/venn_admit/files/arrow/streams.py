"""Arrow IPC streams in files, which are checked message by message before any of it is decompressed.

A file is mapped into memory, so that what is not compressed is read where it lies: a message that claims to be longer
than the file is refused, and allocates nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from venn_admit.files.arrow.batches import DAMAGE
from venn_admit.files.arrow.messages import decompressed_bytes
from venn_admit.files.budget import Place, too_large
from venn_admit.files.records import reading

KIND = "Arrow stream"
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_METADATA_SHARE = 128  # they grow by this factor when they are read
_COLUMN_LIMIT = 1000


@dataclass(frozen=True, slots=True, eq=False)
class ArrowStream:
    """A stream that is open. batches: of valid arrays, to be read once; InvalidInputError at one that is not."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


@contextmanager
def open_stream(path: Path, place: Place, memory_budget: int) -> Iterator[ArrowStream]:
    """Open a file that holds an Arrow IPC stream.

    Args:
        path: The file.
        place: What messages call it.
        memory_budget: Bytes that reading it may take.

    Raises:
        InvalidInputError: The stream is damaged, has no end, or would take too much memory.
    """
    with reading(place, KIND, *DAMAGE):
        _check_end(path)
        _check_messages(path, place, memory_budget)
        source = pa.memory_map(str(path))
    with source:
        with reading(place, KIND, *DAMAGE):
            reader = pa.ipc.open_stream(source)
            columns = len(reader.schema.names)  # of which one that is no text is refused
            if columns > _COLUMN_LIMIT:
                raise ValueError(f"it has {columns:,} columns, expected at most {_COLUMN_LIMIT:,}")
        with reader:
            yield ArrowStream(reader.schema, _valid_batches(reader, place))


def _valid_batches(reader: pa.RecordBatchReader, place: Place) -> Iterator[pa.RecordBatch]:
    while (batch := _next_batch(reader, place)) is not None:
        yield batch


def _next_batch(reader: pa.RecordBatchReader, place: Place) -> pa.RecordBatch | None:
    with reading(place, KIND, *DAMAGE):
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return None
        # Offsets are not checked when a message is read, and would lead beyond it.
        batch.validate(full=True)
        return batch


def _check_end(path: Path) -> None:
    """Raise ValueError unless the file ends like a stream, because one that was cut between batches reads well."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - len(_END), 0))
        if file.read() != _END:
            raise ValueError("it lacks the mark of its end")


def _check_messages(path: Path, place: Place, memory_budget: int) -> None:
    """Raise InvalidInputError for a message that would take too much memory, and ValueError for a damaged one."""
    metadata_limit, limit = memory_budget // _METADATA_SHARE, memory_budget // 4
    dictionaries = 0
    with pa.memory_map(str(path)) as source:
        for number, message in enumerate(pa.ipc.MessageReader.open_stream(source)):
            where = f"message {number}"
            if message.metadata.size > metadata_limit:
                taken = message.metadata.size
                raise too_large(place, f"{where}, its metadata", metadata_limit, taken, "use fewer columns")
            body = memoryview(message.body if message.body is not None else b"")
            claimed = decompressed_bytes(memoryview(message.metadata), body)
            if message.type == "dictionary":  # they are all kept
                dictionaries += claimed
            held = dictionaries if message.type == "dictionary" else dictionaries + claimed
            if held > limit:
                raise too_large(
                    place, f"{where}, decompressed", limit, held, "write smaller batches, or do not compress them"
                )
