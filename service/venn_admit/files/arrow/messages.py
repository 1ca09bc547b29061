"""What a message of an Arrow stream takes once it is decompressed, from its metadata alone.

The metadata are a FlatBuffers table (Message.fbs of the Arrow format), of which the few fields needed are read here: a
table begins with the distance to its list of fields, which has the place of each field within the table, or 0.
"""

import struct

_HEADER_TYPE, _HEADER = 1, 2  # fields of Message
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3  # union MessageHeader
_BUFFERS, _COMPRESSION = 2, 3  # fields of RecordBatch
_DATA = 1  # field of DictionaryBatch: a RecordBatch
_BUFFER = struct.Struct("<qq")  # offset in the body, length
_LENGTH = struct.Struct("<q")  # before each compressed buffer: its length once decompressed, -1 if it is not compressed


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
