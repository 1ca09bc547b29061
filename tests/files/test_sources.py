"""Exemplars and labels from a table or from arrays are those that a file would give."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.files.samples import CLASS_COUNT, DIMENSION, ROWS, Columns, sample, write_parquet
from venn_admit.errors import InvalidInputError
from venn_admit.files.label_sources import LabelFile, LabelSource, LabelTable
from venn_admit.files.labels import LabelRules
from venn_admit.files.records import ExemplarBatch
from venn_admit.files.sources import ArraySource, ArrowSource, ExemplarSource, FileSource

CLASS_NAMES = ("red", "green", "blue")


def batches(source: ExemplarSource) -> list[ExemplarBatch]:
    return list(source.batches(dimension=DIMENSION, class_count=CLASS_COUNT, class_names=CLASS_NAMES))


def array_source(columns: Columns, **changes: Any) -> ArraySource:
    given: dict[str, Any] = {
        "vectors": columns["vector"],
        "logits": columns["logits"],
        "labels": columns["label"],
        "ids": columns["external_id"],
        "documents": columns["document_id"],
        "attributes": {"group": columns["group"]},
    }
    return ArraySource("arrays", **given | changes)


def rows_of(found: list[ExemplarBatch]) -> list[tuple[object, ...]]:
    """Every row's content, whatever the batches."""
    return [
        (
            batch.external_ids[row],
            batch.document_ids[row],
            None if batch.vectors is None else batch.vectors[row].tobytes(),
            batch.logits[row].tobytes(),
            int(batch.labels[row]),
            batch.attributes[row],
        )
        for batch in found
        for row in range(len(batch.external_ids))
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_parquet(tmp_path / "exemplars.parquet", sample())


class TestExemplars:
    @pytest.mark.parametrize(("column", "argument"), [("external_id", "ids"), ("document_id", "documents")])
    def test_a_new_id_has_no_control_characters(self, column: str, argument: str) -> None:
        columns = sample()
        columns[column] = np.array([*columns[column][:-1], "a\x07b"])
        saying = "row 6, {}: expected text without control characters, got 'a\\\\x07b'"
        with pytest.raises(InvalidInputError, match=saying.format(argument)):
            batches(array_source(columns))
        table = pa.table({name: list(values) for name, values in columns.items()})
        with pytest.raises(InvalidInputError, match=saying.format(column)):
            batches(ArrowSource("table", table))

    def test_all_sources_hold_the_same_rows(self, path: Path) -> None:
        table = pq.read_table(path)
        expected = rows_of(batches(FileSource(path)))
        assert len(expected) == ROWS
        stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2))
        for source in (ArrowSource("table", table), ArrowSource("stream", stream), array_source(sample())):
            assert rows_of(batches(source)) == expected

    def test_texts_may_be_views_as_those_of_polars_are(self) -> None:
        columns = sample()
        names = pa.array(np.array(["", *CLASS_NAMES])[columns["label"] + 1].tolist(), pa.string_view())
        ids = pa.array(columns["external_id"].tolist(), pa.string_view())
        tags = pa.array([["a", "b"], *[None] * (ROWS - 1)], pa.large_list(pa.string_view()))
        encoded = pa.DictionaryArray.from_arrays(pa.array(range(ROWS), pa.uint32()), names)
        given = {name: list(columns[name]) for name in ("vector", "logits")} | {"external_id": ids, "tags": tags}
        for labels in (names, encoded):
            (batch,) = batches(ArrowSource("table", pa.table({**given, "label": labels})))
            assert batch.external_ids == ids.to_pylist()
            np.testing.assert_array_equal(batch.labels, columns["label"])
            assert batch.attributes[0] == {"tags": ["a", "b"]}

    def test_ids_from_the_content_are_those_of_a_file(self, path: Path) -> None:
        columns = {name: sample()[name] for name in ("vector", "logits")}
        write_parquet(path, columns)
        (of_file,) = batches(FileSource(path))
        (of_arrays,) = batches(ArraySource("arrays", columns["vector"], columns["logits"]))
        assert of_arrays.external_ids == of_file.external_ids
        assert of_arrays.document_ids == of_file.document_ids == [None] * ROWS

    def test_float16_and_class_names(self) -> None:
        columns = sample()
        names = np.array(["", *CLASS_NAMES])[columns["label"] + 1]
        (batch,) = batches(array_source(columns, vectors=columns["vector"].astype(np.float16), labels=names))
        np.testing.assert_array_equal(batch.labels, columns["label"])
        np.testing.assert_array_equal(batch.vectors, columns["vector"].astype(np.float16).astype(np.float32))

    def test_counts_are_known_of_all_but_a_stream(self, path: Path) -> None:
        table = pq.read_table(path)
        assert [FileSource(path).count_rows(), ArrowSource("t", table).count_rows()] == [ROWS, ROWS]
        assert array_source(sample()).count_rows() == ROWS
        assert ArrowSource("s", table.to_reader()).count_rows() is None

    def test_batches_are_small_if_memory_is(self) -> None:
        columns = sample()
        budget = 8 * 8 * (DIMENSION + CLASS_COUNT) * 2  # two rows of float64 in the eighth that a batch may take
        found = batches(array_source(columns, memory_budget=budget))
        assert [len(batch.external_ids) for batch in found] == [2, 2, 2, 1]
        assert rows_of(found) == rows_of(batches(array_source(columns)))

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"vectors": np.zeros((ROWS, DIMENSION + 1))}, r"expected shape \(n, 4\), got \(7, 5\); a class"),
            ({"vectors": np.zeros(ROWS)}, r"vectors: expected shape \(n, 4\), got \(7,\)"),
            ({"logits": np.zeros((ROWS, CLASS_COUNT), int)}, "logits: expected an array of floats, got int64; cast it"),
            ({"logits": np.zeros((2, CLASS_COUNT))}, "logits: expected 7 rows, as many as vectors has, got 2"),
            ({"labels": [0, 1]}, "labels: expected 7 rows, as many as vectors has, got 2"),
            ({"labels": np.full(ROWS, 3)}, "row 0, labels: expected .* got 3"),
            ({"labels": ["purple"] * ROWS}, "row 0, labels: expected a class number 0..2 or a class name .*'purple'"),
            (
                {"ids": [f"id {row // 2}" if row else None for row in range(ROWS)]},
                "row 0, ids: expected text, got null",
            ),
            ({"ids": np.arange(ROWS) + 0.5}, "row 0, ids: expected a text or an integer, got 0.5"),
            ({"attributes": {"group": [1]}}, "group: expected 7 rows"),
            ({"attributes": {"group": [object()] * ROWS}}, "row 0, attribute 'group': expected numbers, texts"),
            (
                {"vectors": np.full((ROWS, DIMENSION), np.nan)},
                r"row 0, vectors\[0\]: expected a finite number, got nan",
            ),
        ],
    )
    def test_arrays_that_are_refused(self, changes: Mapping[str, Any], message: str) -> None:
        with pytest.raises(InvalidInputError, match=message):
            batches(array_source(sample(), **changes))

    def test_nothing_is_refused(self) -> None:
        empty = {name: values[:0] for name, values in sample().items()}
        with pytest.raises(InvalidInputError, match="arrays: vectors: expected at least one row, got 0"):
            batches(array_source(empty))
        with pytest.raises(InvalidInputError, match="table: expected at least one row, got 0"):
            batches(
                ArrowSource(
                    "table",
                    pa.table(
                        {"vector": pa.array([], pa.list_(pa.float32())), "logits": pa.array([], pa.list_(pa.float32()))}
                    ),
                )
            )

    def test_a_table_of_other_columns_is_refused(self) -> None:
        with pytest.raises(InvalidInputError, match="mine: columns: expected one named 'vector', got 'r', 'f'"):
            batches(ArrowSource("mine", pa.table({"r": [[1.0]], "f": [[1.0]]})))


class TestLabels:
    @pytest.fixture(params=["file", "table"])
    def source(self, request: pytest.FixtureRequest, tmp_path: Path) -> LabelSource:
        table = pa.table({"external_id": ["a", "b", "c"], "label": ["red", "2", "blue"], "note": ["x", "y", "z"]})
        path = tmp_path / "labels.parquet"
        pq.write_table(table, path)
        return LabelFile(path) if request.param == "file" else LabelTable("labels.parquet", table)

    def test_both_sources_give_the_same(self, source: LabelSource) -> None:
        rows = source.read(LabelRules(CLASS_NAMES, "random"))
        assert (rows.external_ids, rows.labels.tolist(), rows.ignored) == (["a", "b", "c"], [0, 2, 2], ["note"])
        assert (source.name, rows.selections) == ("labels.parquet", ["random"] * 3)

    def test_a_label_that_is_no_class(self) -> None:
        table = pa.table({"external_id": ["a"], "label": ["purple"]})
        with pytest.raises(InvalidInputError, match=r"mine: row 0, label: expected a class number .*'purple'"):
            LabelTable("mine", table).read(LabelRules(CLASS_NAMES, "random"))

    def test_a_table_without_labels(self) -> None:
        with pytest.raises(InvalidInputError, match="mine: columns: expected external_id, label and optionally"):
            LabelTable("mine", pa.table({"id": ["a"]})).read(LabelRules(CLASS_NAMES, "random"))
