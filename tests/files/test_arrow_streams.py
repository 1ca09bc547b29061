"""Arrow streams: read as a table is, and checked before anything of them is decompressed."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.files.hostile import CLASS_NAMES, DIMENSION, columns, write_stream
from venn_admit.errors import InvalidInputError
from venn_admit.files.arrow.streams import decompressed_bytes
from venn_admit.files.received import ReceivedFile
from venn_admit.files.records import ExemplarBatch
from venn_admit.files.sources import ArrowSource

ROWS = 300


def table() -> pa.Table:
    generator = np.random.default_rng(3)
    vectors = generator.normal(size=(ROWS, DIMENSION)).astype(np.float32)
    return pa.table(
        columns(
            ROWS,
            vector=pa.array(list(vectors), pa.list_(pa.float32())),
            external_id=[f"näme {row}" for row in range(ROWS)],
            label=pa.array([CLASS_NAMES[row % 2] for row in range(ROWS)]).dictionary_encode(),
            text=["a text" * 20] * ROWS,
        )
    )


def read(source: ReceivedFile | ArrowSource) -> list[ExemplarBatch]:
    return list(source.batches(dimension=DIMENSION, class_count=len(CLASS_NAMES), class_names=CLASS_NAMES))


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_it_is_read_as_the_table_is(tmp_path: Path, compression: str | None) -> None:
    path = tmp_path / "sent.arrows"
    write_stream(path, table(), compression=compression)
    (found,), (expected,) = read(ReceivedFile(path, "sent", "the body")), read(ArrowSource("sent", table()))
    assert found.external_ids == expected.external_ids
    assert found.attributes == expected.attributes
    assert found.vectors is not None
    assert expected.vectors is not None
    np.testing.assert_array_equal(found.vectors, expected.vectors)
    np.testing.assert_array_equal(found.labels, expected.labels)


def test_messages_name_the_rows_of_the_whole_stream_and_not_the_file(tmp_path: Path) -> None:
    path = tmp_path / "sent.arrows"
    good, bad = table(), table().to_pydict()
    bad["vector"][7] = [1.0, 2.0, float("nan"), 3.0]
    with pa.ipc.new_stream(str(path), good.schema) as writer:
        writer.write_table(good, max_chunksize=100)
        writer.write_table(pa.table(bad, schema=good.schema))
    with pytest.raises(InvalidInputError) as caught:
        read(ReceivedFile(path, "sent", "the body"))
    assert str(caught.value).startswith(f"the body: row {ROWS + 7}, vector[2]: expected a finite number")


def test_what_is_compressed_is_measured_by_what_it_claims(tmp_path: Path) -> None:
    path = tmp_path / "sent.arrows"
    claimed = {}
    for compression in (None, "zstd"):
        write_stream(path, table(), compression=compression)
        with pa.memory_map(str(path)) as source:
            claimed[compression] = [
                decompressed_bytes(memoryview(message.metadata), memoryview(message.body or b""))
                for message in pa.ipc.MessageReader.open_stream(source)
            ]
    assert claimed[None] == [0, 0, 0], "schema, dictionary and batch"
    schema, dictionary, batch = claimed["zstd"]
    assert schema == 0
    assert 0 < dictionary < 100
    assert ROWS * (DIMENSION * 4 + 120) < batch < table().nbytes * 2


def test_damaged_streams_are_refused_or_read_and_never_crash(tmp_path: Path) -> None:
    """A bit of the metadata or the offsets is another one, wherever it lies."""
    path, generator, refused = tmp_path / "sent.arrows", np.random.default_rng(11), 0
    for compression in (None, "zstd"):
        write_stream(path, table(), compression=compression)
        good = path.read_bytes()
        for place in generator.integers(len(good), size=400).tolist():
            damaged = bytearray(good)
            damaged[place] ^= 1 << int(generator.integers(8))
            path.write_bytes(damaged)
            try:
                read(ReceivedFile(path, "sent", "the body", 32 << 20))
            except InvalidInputError:
                refused += 1
    assert refused > 100
