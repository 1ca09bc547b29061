"""The version of the extractor that vectors come from: how files and tables state it, and what is no version."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.files.samples import CLASS_COUNT, DIMENSION, ROWS, SUFFIXES, read, read_one, sample, write, write_parquet
from venn_admit.errors import InvalidInputError
from venn_admit.files import read_exemplars
from venn_admit.files.received import ReceivedFile
from venn_admit.files.records import Stated
from venn_admit.files.sources import ArraySource, ArrowSource, ExemplarSource, FileSource

VERSION = "sha256:9f2c é"


def stating(folder: Path, suffix: str, version: str | bytes) -> Path:
    """The sample in a file that states an extractor."""
    path = folder / f"sample{suffix}"
    if suffix == ".npz":
        return write(path, sample() | {"extractor": np.array(version)})
    write_parquet(path, sample())
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"venn_admit.extractor": version}), path)
    return path


def extractor_of(source: ExemplarSource) -> str | None:
    (batch,) = source.batches(dimension=DIMENSION, class_count=CLASS_COUNT, class_names=())
    return batch.extractor


@pytest.mark.parametrize("suffix", SUFFIXES)
class TestFiles:
    def test_a_file_states_it(self, tmp_path: Path, suffix: str) -> None:
        batch = read_one(stating(tmp_path, suffix, VERSION))
        assert batch.extractor == VERSION
        assert batch.attributes == [{"group": row} for row in range(ROWS)]

    def test_every_batch_has_it(self, tmp_path: Path, suffix: str) -> None:
        batches = list(read(stating(tmp_path, suffix, VERSION), batch_rows=3))
        assert [batch.extractor for batch in batches] == [VERSION] * 3

    def test_a_file_that_does_not(self, tmp_path: Path, suffix: str) -> None:
        path = write(tmp_path / f"sample{suffix}", sample())
        assert read_one(path).extractor is None
        assert extractor_of(FileSource(path, stated=Stated("v1"))) == "v1"

    def test_both_must_agree(self, tmp_path: Path, suffix: str) -> None:
        path = stating(tmp_path, suffix, "v1")
        assert extractor_of(FileSource(path, stated=Stated("v1"))) == "v1"
        with pytest.raises(InvalidInputError, match="expected 'v2', as was stated for it, got 'v1'"):
            extractor_of(FileSource(path, stated=Stated("v2")))

    @pytest.mark.parametrize("version", [" v1", "v\x01", "", "x" * 201, "x" * 5000])
    def test_what_is_no_version(self, tmp_path: Path, suffix: str, version: str) -> None:
        with pytest.raises(InvalidInputError, match="expected 1 to 200 printable characters"):
            read_one(stating(tmp_path, suffix, version))


def test_metadata_that_is_no_text(tmp_path: Path) -> None:
    assert read_one(stating(tmp_path, ".parquet", b"v\xff")).extractor == "v�"


@pytest.mark.parametrize(
    "values", [np.array([f"v{row}" for row in range(ROWS)]), np.arange(ROWS)], ids=["texts", "numbers"]
)
def test_another_array_of_that_name_is_an_attribute(tmp_path: Path, values: "np.ndarray[tuple[int], np.dtype]") -> None:
    batch = read_one(write(tmp_path / "sample.npz", sample() | {"extractor": values}))
    assert batch.extractor is None
    assert [row["extractor"] for row in batch.attributes] == values.tolist()


def test_an_array_of_one_text(tmp_path: Path) -> None:
    assert read_one(write(tmp_path / "sample.npz", sample() | {"extractor": np.array(["v1"])})).extractor == "v1"


def test_other_sources(tmp_path: Path) -> None:
    table = pq.read_table(stating(tmp_path, ".parquet", "v1"))
    assert extractor_of(ArrowSource("table", table)) == "v1"
    assert extractor_of(ArrowSource("table", table.replace_schema_metadata(None), stated=Stated("v2"))) == "v2"
    columns = sample()
    arrays = ArraySource("arrays", columns["vector"], columns["logits"], stated=Stated("v3"))
    assert extractor_of(arrays) == "v3"
    stream = tmp_path / "sample.arrows"
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    assert extractor_of(ReceivedFile(stream, "http", "the body")) == "v1"
    with pytest.raises(InvalidInputError, match=r"the body: metadata venn_admit\.extractor: expected 'v2'"):
        extractor_of(ReceivedFile(stream, "http", "the body", stated=Stated("v2")))


def test_it_is_read_by_the_plain_function(tmp_path: Path) -> None:
    path = write(tmp_path / "sample.parquet", sample())
    (batch,) = read_exemplars(path, dimension=DIMENSION, class_count=CLASS_COUNT, stated=Stated("v1"))
    assert batch.extractor == "v1"
