"""Logits that are all probabilities are refused; if that is stated, their logarithms are taken."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.files.samples import CLASS_COUNT, DIMENSION, Columns, sample, write
from venn_admit.core.probabilities import logs
from venn_admit.core.types import Float32Array
from venn_admit.errors import Code, InvalidInputError
from venn_admit.files.received import ReceivedFile
from venn_admit.files.records import Stated
from venn_admit.files.sources import ArraySource, ArrowSource, ExemplarSource, FileSource


def softmaxed() -> Columns:
    columns = sample()
    raised = np.exp(columns["logits"].astype(np.float64))
    return columns | {"logits": (raised / raised.sum(axis=1, keepdims=True)).astype(np.float32)}


def sources(folder: Path, columns: Columns, probabilities: bool | None) -> list[ExemplarSource]:
    stated = Stated(probabilities=probabilities)
    parquet = write(folder / "sample.parquet", columns)
    table = pq.read_table(parquet)
    with pa.ipc.new_stream(folder / "sample.arrows", table.schema) as writer:
        writer.write_table(table)
    return [
        FileSource(write(folder / "sample.npz", columns), stated=stated),
        FileSource(parquet, stated=stated),
        ArrowSource("table", table, stated=stated),
        ReceivedFile(folder / "sample.arrows", "http", "the body", stated=stated),
        ArraySource("arrays", columns["vector"], columns["logits"], stated=stated),
    ]


def logits_of(source: ExemplarSource) -> Float32Array:
    batches = source.batches(dimension=DIMENSION, class_count=CLASS_COUNT, class_names=())
    return np.concatenate([batch.logits for batch in batches])


def test_they_are_refused_from_every_source(tmp_path: Path) -> None:
    for source in sources(tmp_path, softmaxed(), None):
        with pytest.raises(InvalidInputError, match=r"logits.*: expected logits, got numbers that lie") as refusal:
            logits_of(source)
        assert refusal.value.code is Code.PROBABILITIES


def test_their_logarithms_are_taken_if_that_is_stated(tmp_path: Path) -> None:
    columns = softmaxed()
    for source in sources(tmp_path, columns, True):
        assert np.array_equal(logits_of(source), logs(columns["logits"]).astype(np.float32))


def test_they_are_logits_if_that_is_stated(tmp_path: Path) -> None:
    columns = softmaxed()
    for source in sources(tmp_path, columns, False):
        assert np.array_equal(logits_of(source), columns["logits"])


def test_one_row_that_is_none_makes_them_logits(tmp_path: Path) -> None:
    columns = softmaxed()
    columns["logits"][-1, 0] += 1
    for source in sources(tmp_path, columns, None):
        assert np.array_equal(logits_of(source), columns["logits"])
    for source in sources(tmp_path, columns, True):
        row = len(columns["logits"]) - 1
        with pytest.raises(InvalidInputError, match=f"row {row}: expected probabilities, as is stated"):
            logits_of(source)
