"""Exemplars without vectors: from files of both formats, tables and arrays, and what is refused."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.files.samples import CLASS_COUNT, ROWS, Columns, sample, write
from venn_admit.errors import Code, InvalidInputError
from venn_admit.files import count_rows, read_exemplars
from venn_admit.files.records import ExemplarBatch
from venn_admit.files.sources import ArraySource, ArrowSource, ExemplarSource, FileSource


def bare() -> Columns:
    return {name: values for name, values in sample().items() if name != "vector"}


def arrays(columns: Columns) -> ArraySource:
    return ArraySource(
        "arrays",
        vectors=columns.get("vector"),
        logits=columns["logits"],
        labels=columns["label"],
        ids=columns["external_id"].tolist(),
        documents=columns["document_id"].tolist(),
        attributes={"group": columns["group"]},
    )


def source(form: str, folder: Path, columns: Columns) -> ExemplarSource:
    if form == "arrays":
        return arrays(columns)
    path = write(folder / f"rows.{'npz' if form == 'npz' else 'parquet'}", columns)
    return ArrowSource("table", pq.read_table(path)) if form == "table" else FileSource(path)


def batches(given: ExemplarSource, dimension: int | None = None) -> Iterator[ExemplarBatch]:
    return given.batches(dimension=dimension, class_count=CLASS_COUNT, class_names=())


FORMS = ["npz", "parquet", "table", "arrays"]


@pytest.mark.parametrize("form", FORMS)
def test_everything_else_is_read(form: str, tmp_path: Path) -> None:
    columns = bare()
    given = source(form, tmp_path, columns)
    assert given.count_rows() == ROWS
    (batch,) = batches(given)
    assert batch.vectors is None
    np.testing.assert_array_equal(batch.logits, columns["logits"])
    assert batch.external_ids == columns["external_id"].tolist()
    assert batch.document_ids == columns["document_id"].tolist()
    assert batch.labels.tolist() == columns["label"].tolist()
    assert batch.attributes == [{"group": row} for row in range(ROWS)]


@pytest.mark.parametrize(
    ("form", "where"),
    [("npz", "array 'r'"), ("parquet", "column 'vector'"), ("table", "column 'vector'"), ("arrays", "vectors")],
)
def test_vectors_are_refused(form: str, where: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as refused:
        next(batches(source(form, tmp_path, sample())))
    assert f"{where}: expected none, because the classifier has logits only, got " in str(refused.value)
    assert str(refused.value).endswith("leave the vectors out")
    assert refused.value.code == Code.VECTORS_UNWANTED


def test_vectors_of_an_npz_under_the_name_of_a_table_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", f=sample()["logits"], vector=sample()["vector"])
    with pytest.raises(InvalidInputError, match="array 'vector': expected none, because the classifier has logits"):
        next(batches(FileSource(tmp_path / "rows.npz")))


@pytest.mark.parametrize(
    ("form", "saying"),
    [
        ("npz", "arrays: expected one named 'r'"),
        ("parquet", "columns: expected one named 'vector'"),
        ("table", "columns: expected one named 'vector'"),
        ("arrays", r"vectors: expected shape \(n, 4\), got none; give them with the logits"),
    ],
)
def test_a_classifier_with_vectors_asks_for_them(form: str, saying: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=saying):
        next(batches(source(form, tmp_path, bare()), dimension=4))


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_it_is_read_in_batches(suffix: str, tmp_path: Path) -> None:
    columns = bare()
    path = write(tmp_path / f"rows{suffix}", columns)
    read = list(read_exemplars(path, dimension=None, class_count=CLASS_COUNT, batch_rows=3))
    assert [len(batch.logits) for batch in read] == [3] * (ROWS // 3) + ([ROWS % 3] if ROWS % 3 else [])
    assert [batch.first_row for batch in read] == list(range(0, ROWS, 3))
    np.testing.assert_array_equal(np.concatenate([batch.logits for batch in read]), columns["logits"])
    assert count_rows(path) == ROWS


@pytest.mark.parametrize("form", FORMS)
def test_rows_without_ids_are_known_by_what_they_have(form: str, tmp_path: Path) -> None:
    """The same in each form, and other than with a vector."""
    columns: dict[str, Any] = {name: values for name, values in bare().items() if name != "external_id"}
    given = replace(arrays(bare()), ids=None) if form == "arrays" else source(form, tmp_path, columns)
    (batch,) = batches(given)
    (plain,) = batches(replace(arrays(bare()), ids=None))
    assert batch.external_ids == plain.external_ids
    assert len(set(batch.external_ids)) == ROWS
    (seen,) = batches(replace(arrays(sample()), ids=None), dimension=sample()["vector"].shape[1])
    assert not set(seen.external_ids) & set(batch.external_ids)


@pytest.mark.parametrize("form", FORMS)
def test_logits_are_checked_as_ever(form: str, tmp_path: Path) -> None:
    columns = bare()
    columns["logits"] = columns["logits"].copy()
    columns["logits"][2, 1] = np.nan
    with pytest.raises(InvalidInputError, match=r"row 2, logits.*\[1\]: expected a finite number, got nan"):
        list(batches(source(form, tmp_path, columns)))
    narrow = bare() | {"logits": bare()["logits"][:, :1]}
    with pytest.raises(InvalidInputError, match=r"logits.*expected (3 values|shape \(n, 3\))"):
        list(batches(source(form, tmp_path, narrow)))


def test_no_rows_are_refused() -> None:
    none = {name: values[:0] for name, values in bare().items()}
    with pytest.raises(InvalidInputError, match="arrays: logits: expected at least one row, got 0"):
        next(batches(arrays(none)))
    table = pa.table({"logits": pa.array([], pa.list_(pa.float32()))})
    with pytest.raises(InvalidInputError, match="table: table: expected at least one row, got 0"):
        next(batches(ArrowSource("table", table)))
