"""The memory that the values of record batches take while they are checked, which is more than Arrow's own."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from venn_admit.files.arrow.types import is_text
from venn_admit.files.budget import OBJECT_BYTES, Place, too_large

# A value in a list: itself and its two levels, in buffers that double as they grow.
LISTED_VALUE_BYTES = 16
# A text of one byte per character takes four per character if a single one of them needs four.
TEXT_FACTOR = 5


def affordable_batches(place: Place, batch: pa.RecordBatch, first_row: int, limit: int) -> Iterator[pa.RecordBatch]:
    """Yield the batch, in parts if its values would take more than the limit; InvalidInputError at a larger row."""
    taken = sum(map(_checked_bytes, batch.schema.names, batch.columns))
    if taken <= limit:
        yield batch
    elif batch.num_rows == 1:
        raise too_large(place, f"row {first_row}", limit, taken, "shorten its texts and lists")
    else:
        half = batch.num_rows // 2
        yield from affordable_batches(place, batch.slice(0, half), first_row, limit)
        yield from affordable_batches(place, batch.slice(half), first_row + half, limit)


def _checked_bytes(name: str, column: pa.Array) -> int:
    """The bytes that a column takes while it is checked; vectors and logits never become Python objects."""
    return len(column.flatten()) * LISTED_VALUE_BYTES if name in ("vector", "logits") else object_bytes(column)


def object_bytes(array: pa.Array) -> int:
    """Return the bytes that the values take as Python objects."""
    kind = array.type
    taken = len(array) * OBJECT_BYTES
    if pa.types.is_dictionary(kind) and is_text(kind):
        return taken + (pc.sum(_text_bytes(array.dictionary).take(array.indices)).as_py() or 0)
    if is_text(kind):
        return taken + (pc.sum(_text_bytes(array)).as_py() or 0)
    if pa.types.is_map(kind):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        return taken + sum(object_bytes(part.slice(first, last - first)) for part in (array.keys, array.items))
    if pa.types.is_struct(kind):
        return taken + sum(map(object_bytes, array.flatten()))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return taken + object_bytes(array.flatten())
    return taken


def _text_bytes(texts: pa.Array) -> pa.Array:
    """The bytes of each text besides itself as an object; JSON makes an object for each bracket and comma, twice."""
    marks = pc.multiply(pc.count_substring_regex(texts, r"[\[{,]").cast(pa.int64()), 2 * OBJECT_BYTES)
    return pc.add(pc.multiply(pc.binary_length(texts).cast(pa.int64()), TEXT_FACTOR), marks)
