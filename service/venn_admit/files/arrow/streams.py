"""Arrow IPC streams in files, which are checked message by message before any of it is decompressed.

A file is mapped into memory, so that what is not compressed is read where it lies: a message that claims to be longer
than the file is refused, and allocates nothing.

Arrow allocates what a message claims before it decompresses it, so that the claim is read from the metadata first. The
metadata are a FlatBuffers table (Message.fbs of the Arrow format), of which the few fields needed are read here: a
table begins with the distance to its list of fields, which has the place of each field within the table, or 0.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from venn_admit.files.arrow.types import DAMAGE, check_column_count, valid_batches
from venn_admit.files.inputs import Place, reading, too_large

KIND = "Arrow stream"
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_METADATA_SHARE = 128  # they grow by this factor when they are read
_HEADER_TYPE, _HEADER = 1, 2  # fields of Message
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3  # union MessageHeader
_BUFFERS, _COMPRESSION = 2, 3  # fields of RecordBatch
_DATA = 1  # field of DictionaryBatch: a RecordBatch
_BUFFER = struct.Struct("<qq")  # offset in the body, length
_LENGTH = struct.Struct("<q")  # before each compressed buffer: its length once decompressed, -1 if it is not compressed


@contextmanager
def open_stream(path: Path, place: Place, memory_budget: int) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
    """Open a file that holds an Arrow IPC stream: its schema, and batches of valid arrays, to be read once.

    Args:
        place: What messages call it.
        memory_budget: Bytes that reading it may take.

    Raises:
        InvalidInputError: The stream is damaged, has no end, or would take too much memory; or so is a batch.
    """
    with reading(place, KIND, *DAMAGE):
        _check_end(path)
        _check_messages(path, place, memory_budget)
        source = pa.memory_map(str(path))
    with source:
        with reading(place, KIND, *DAMAGE):
            reader = pa.ipc.open_stream(source)
            check_column_count(len(reader.schema.names))  # of which one that is no text is refused
        with reader:
            yield reader.schema, valid_batches(place, KIND, iter(reader))


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


def decompressed_bytes(metadata: memoryview, body: memoryview) -> int:
    """Return the bytes that the compressed buffers of a message claim to have once they are decompressed.

    Arrow allocates as much before it decompresses. Returns 0 for a message without compression, whose buffers are used
    where they lie. Raises ValueError if the metadata contradict themselves.
    """
    try:
        return _decompressed_bytes(metadata, body)
    except struct.error as error:
        raise ValueError(f"the metadata of a message are damaged: {error}") from error


def _decompressed_bytes(metadata: memoryview, body: memoryview) -> int:
    message = _at(metadata, 0)
    kind, header = _field(metadata, message, _HEADER_TYPE), _field(metadata, message, _HEADER)
    if kind is None or header is None:
        raise ValueError("a message has no header")
    if metadata[kind] not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return 0
    batch = _at(metadata, header)
    if metadata[kind] == _DICTIONARY_BATCH:
        data = _field(metadata, batch, _DATA)
        if data is None:
            return 0
        batch = _at(metadata, data)
    buffers = _field(metadata, batch, _BUFFERS)
    if buffers is None or _field(metadata, batch, _COMPRESSION) is None:
        return 0
    first = _at(metadata, buffers)
    (count,) = struct.unpack_from("<I", metadata, first)
    claimed = 0
    for number in range(count):
        start, length = _BUFFER.unpack_from(metadata, first + 4 + number * _BUFFER.size)
        if length:
            if start < 0 or start + _LENGTH.size > len(body):
                raise ValueError("a buffer lies beyond its message")
            (decompressed,) = _LENGTH.unpack_from(body, start)
            claimed += max(decompressed, 0)
    return claimed


def _at(metadata: memoryview, place: int) -> int:
    """The place that a distance, which stands at a place, leads to."""
    (distance,) = struct.unpack_from("<I", metadata, place)
    return int(place + distance)


def _field(metadata: memoryview, table: int, number: int) -> int | None:
    """The place of a field of a table; None if the table lacks it."""
    (distance,) = struct.unpack_from("<i", metadata, table)
    fields = table - distance
    if fields < 0:
        raise ValueError("a table lies beyond its message")
    (size,) = struct.unpack_from("<H", metadata, fields)
    place = 4 + 2 * number
    if place + 2 > size:
        return None
    (offset,) = struct.unpack_from("<H", metadata, fields + place)
    return int(table + offset) if offset else None
