"""Small files of every type of column with some bytes changed, each the same whenever it is made."""

import io
import random
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.files.hostile import DIMENSION, ROWS
from venn_admit.files.parquet.footer import STRUCT, CompactReader, ListOf, Struct

OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"row_group_size": 3, "write_page_index": True, "compression": "zstd", "write_page_checksum": True},
    {"store_schema": False, "use_dictionary": False, "data_page_version": "2.0", "compression": "none"},
)
TELLING = (0, 1, 0x15, 0x16, 0x18, 0x19, 0x1C, 0x2C, 0x7F, 0x80, 0xFF)
"""Bytes that begin fields of Thrift, or numbers that are long."""


def table() -> pa.Table:
    return pa.table(
        {
            "vector": pa.array([[1.0] * DIMENSION] * ROWS, pa.list_(pa.float32())),
            "logits": pa.array([[1.0, -1.0]] * ROWS, pa.list_(pa.float32(), 2)),
            "external_id": [f"e{row}" for row in range(ROWS)],
            "label": [0, 1] * (ROWS // 2),
            "attributes": [{"a": 1, "b": "x", "c": ["p", None]}] * ROWS,
            "when": pa.array([datetime(2022, 1, 2)] * ROWS, pa.timestamp("ns", "Europe/Paris")),  # noqa: DTZ001
            "price": [Decimal("12.50")] * ROWS,
            "kind": pa.array(["u", "v"] * (ROWS // 2)).dictionary_encode(),
            "half": np.ones(ROWS, np.float16),
            "tags": [["a", "b"], None] * (ROWS // 2),
        }
    )


@cache
def parquet_file(number: int) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table(), stream, **OPTIONS[number])
    return stream.getvalue()


@cache
def arrow_stream() -> bytes:
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table().schema) as writer:
        writer.write_table(table(), max_chunksize=5)
    return stream.getvalue()


class _Statistics(CompactReader):
    """Notes where the structures are that a column of a row group has besides what it needs."""

    DEPTH = 3
    COLUMNS = Struct({4: ListOf(Struct({1: ListOf(Struct({3: Struct()}))}))})

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.places: list[int] = []

    def _skip(self, kind: int, depth: int) -> int | bytes | None:
        start = self.place
        value = super()._skip(kind, depth)
        if kind == STRUCT and depth == self.DEPTH:
            self.places.extend(range(start, self.place))
        return value


@cache
def statistics(number: int) -> list[int]:
    """The places of statistics in a footer, counted from where it begins; those of sizes are among them."""
    reader = _Statistics(footer(parquet_file(number)))
    reader.struct(reader.COLUMNS)
    return reader.places


def footer(data: bytes) -> bytes:
    return data[-8 - int.from_bytes(data[-8:-4], "little") : -8]


def parquet_mutant(seed: int) -> bytes:
    """A file with bytes changed in its footer, in the statistics of half the files; of every eighth, anywhere."""
    generator = random.Random(seed)
    number = generator.randrange(len(OPTIONS))
    data = parquet_file(number)
    if seed % 8 == 0:
        return _changed(data, range(4, len(data) - 8), generator)
    old = footer(data)
    places = statistics(number) if seed % 2 else range(len(old))
    new = _changed(old, places, generator)
    if generator.random() < 0.2:
        place = generator.choice(places)
        new = new[:place] + generator.randbytes(generator.randrange(4)) + new[place + generator.randrange(3) :]
    return data[: -8 - len(old)] + new + len(new).to_bytes(4, "little") + b"PAR1"


def stream_mutant(seed: int) -> bytes:
    generator = random.Random(seed)
    data = arrow_stream()
    return _changed(data, range(len(data) - 8), generator)


def _changed(data: bytes, places: list[int] | range, generator: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(generator.choice((1, 1, 1, 2, 3, 8))):
        place = generator.choice(places)
        other = generator.choice((generator.randrange(256), changed[place] ^ 1 << generator.randrange(8)))
        changed[place] = generator.choice((other, other, generator.choice(TELLING)))
    return bytes(changed)
