"""What is particular to Parquet."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.files.samples import CLASS_COUNT, DIMENSION, ROWS, Columns, read, read_one, sample, write_parquet
from venn_admit.errors import InvalidInputError
from venn_admit.files import read_exemplars


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "exemplars.parquet"


def refusal(path: Path, columns: Columns) -> str:
    write_parquet(path, columns)
    with pytest.raises(InvalidInputError) as refused:
        list(read(path))
    assert str(path) in str(refused.value)
    return str(refused.value)


def lists(values: Any) -> list[Any]:
    return [row.tolist() for row in values]


@pytest.mark.parametrize("element", [pa.float64(), pa.float32(), pa.float16()])
@pytest.mark.parametrize(
    "make",
    [pa.list_, pa.large_list, lambda element: pa.list_(element, DIMENSION)],
    ids=["list", "large", "fixed"],
)
@pytest.mark.parametrize("batch_rows", [2, 100])
def test_vectors_in_lists_of_every_kind(path: Path, make: Any, element: pa.DataType, batch_rows: int) -> None:
    expected = sample()["vector"].astype(element.to_pandas_dtype())
    vectors = pa.array(lists(expected), make(element))
    batches = list(read(write_parquet(path, sample() | {"vector": vectors}), batch_rows=batch_rows))
    read_back = np.concatenate([batch.vectors for batch in batches])
    assert read_back.dtype == np.float32
    np.testing.assert_array_equal(read_back, expected.astype(np.float32))


def test_float16_infinity(path: Path) -> None:
    vectors = sample()["vector"].astype(np.float16)
    vectors[3, 1] = np.inf
    columns = sample() | {"vector": pa.array(lists(vectors), pa.list_(pa.float16()))}
    assert "row 3, vector[1]: expected a finite number, got inf" in refusal(path, columns)


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.list_(pa.list_(pa.float32()))])
@pytest.mark.parametrize("column", ["vector", "logits"])
def test_lists_of_other_types(path: Path, column: str, kind: pa.DataType) -> None:
    message = refusal(path, sample() | {column: pa.array([None] * ROWS, kind)})
    assert f"column '{column}': expected a list of floats, got list<" in message
    assert "cast it" in message


@pytest.mark.parametrize("column", ["vector", "logits"])
def test_one_list_of_another_length_names_the_row(path: Path, column: str) -> None:
    values = lists(sample()[column])
    width = len(values[0])
    values[4] = values[4][:-1]
    values[5] = [*values[5], 0.0]  # the total fits
    message = refusal(path, sample() | {column: pa.array(values, pa.list_(pa.float32()))})
    assert f"row 4, {column}: expected {width} values, got {width - 1}" in message


def test_a_fixed_size_that_is_not_the_dimension(path: Path) -> None:
    vectors = pa.array([[0.0] * 3] * ROWS, pa.list_(pa.float32(), 3))
    refused = refusal(path, sample() | {"vector": vectors})
    assert "column 'vector': expected 4 values per row, got 3; a classifier keeps its classes, and" in refused
    assert "name the generation that these are of, or create one for another network" in refused


@pytest.mark.parametrize("column", ["vector", "logits"])
def test_a_null_list_and_a_null_element(path: Path, column: str) -> None:
    values = lists(sample()[column])
    width = len(values[0])
    missing: list[Any] = [*values[:2], None, *values[3:]]
    message = refusal(path, sample() | {column: pa.array(missing, pa.list_(pa.float32()))})
    assert f"row 2, {column}: expected {width} values, got null" in message
    values[6][1] = None
    message = refusal(path, sample() | {column: pa.array(values, pa.list_(pa.float32()))})
    assert f"row 6, {column}[1]: expected a finite number, got null" in message


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())],
    ids=str,
)
def test_ids_in_strings_of_every_kind(path: Path, kind: pa.DataType) -> None:
    ids = sample()["external_id"].tolist()
    documents = [None, *ids[1:]]
    columns = sample() | {"external_id": pa.array(ids, kind), "document_id": pa.array(documents, kind)}
    batch = read_one(write_parquet(path, columns))
    assert batch.external_ids == ids
    assert batch.document_ids == documents


def test_a_null_id(path: Path) -> None:
    ids = [*sample()["external_id"].tolist()[:-1], None]
    message = refusal(path, sample() | {"external_id": ids})
    assert "row 6, external_id: expected text, got null" in message


@pytest.mark.parametrize("kind", [pa.float64(), pa.binary(), pa.null()])
def test_ids_of_other_types(path: Path, kind: pa.DataType) -> None:
    message = refusal(path, sample() | {"external_id": pa.array([None] * ROWS, kind)})
    assert f"column 'external_id': expected string or an integer type, got {kind}" in message


def test_documents_may_be_integers_or_unknown(path: Path) -> None:
    documents = pa.array([3, None, 3, 4, 5, 6, 7], pa.int16())
    batch = read_one(write_parquet(path, sample() | {"document_id": documents}))
    assert batch.document_ids == ["3", None, "3", "4", "5", "6", "7"]
    batch = read_one(write_parquet(path, sample() | {"document_id": pa.nulls(ROWS)}))
    assert batch.document_ids == [None] * ROWS


@pytest.mark.parametrize("kind", [pa.int8(), pa.int64(), pa.uint8(), pa.uint64()])
def test_labels_in_integers_of_every_kind(path: Path, kind: pa.DataType) -> None:
    labels = pa.array([0, None, 2, 1, 0, None, 2], kind)
    batch = read_one(write_parquet(path, sample() | {"label": labels}))
    assert batch.labels.dtype == np.int64
    assert batch.labels.tolist() == [0, -1, 2, 1, 0, -1, 2]


def test_labels_that_are_all_null(path: Path) -> None:
    batch = read_one(write_parquet(path, sample() | {"label": pa.nulls(ROWS)}))
    assert batch.labels.tolist() == [-1] * ROWS


EVERY_ATTRIBUTES: list[tuple[pa.DataType, list[Any], list[dict[str, Any]]]] = [
    (
        pa.struct({"text": pa.string(), "stars": pa.int8(), "share": pa.float32(), "tags": pa.list_(pa.string())}),
        [{"text": "é", "stars": 5, "share": 0.5, "tags": ["a", "b"]}, None, {"share": float("nan")}],
        [
            {"text": "é", "stars": 5, "share": 0.5, "tags": ["a", "b"]},
            {},
            {"text": None, "stars": None, "share": None, "tags": None},
        ],
    ),
    (
        pa.map_(pa.string(), pa.string()),
        [[("a", "1"), ("b", None)], None, []],
        [{"a": "1", "b": None}, {}, {}],
    ),
    (
        pa.string(),
        ['{"a": {"b": [1, 2.5, true, null, NaN, -Infinity, 1e999]}}', None, "{}"],
        [{"a": {"b": [1, 2.5, True, None, None, None, None]}}, {}, {}],
    ),
    (pa.dictionary(pa.int32(), pa.string()), ['{"a": 1}', None, '{"a": 1}'], [{"a": 1}, {}, {"a": 1}]),
    (pa.null(), [None, None, None], [{}, {}, {}]),
]


@pytest.mark.parametrize(
    ("kind", "values", "expected"), EVERY_ATTRIBUTES, ids=[str(case[0])[:10] for case in EVERY_ATTRIBUTES]
)
def test_attributes_of_every_kind(
    path: Path, kind: pa.DataType, values: list[Any], expected: list[dict[str, Any]]
) -> None:
    columns = {name: values[:3] for name, values in sample().items() if name != "group"}
    columns["attributes"] = pa.array(values, kind)
    assert read_one(write_parquet(path, columns)).attributes == expected


@pytest.mark.parametrize("text", ["", "[1, 2]", '"a"', "{", '{"a": 1', "[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_attributes_that_are_no_json_object(path: Path, text: str) -> None:
    columns = sample() | {"attributes": ["{}"] * (ROWS - 1) + [text]}
    assert "row 6, attributes: expected a JSON object, got '" in refusal(path, columns)


def test_attributes_nested_too_deep(path: Path) -> None:
    def nested(depth: int) -> str:
        return '{"a": ' + "[" * depth + "1" + "]" * depth + "}"

    read_one(write_parquet(path, sample() | {"attributes": [nested(100)] * ROWS}))
    message = refusal(path, sample() | {"attributes": ["{}"] * (ROWS - 1) + [nested(101)]})
    assert "row 6, attribute 'a': expected a value nested at most 100 deep" in message


def test_attributes_with_a_key_twice(path: Path) -> None:
    attributes = pa.array([[("a", 1), ("a", 2)]] * ROWS, pa.map_(pa.string(), pa.int64()))
    message = refusal(path, sample() | {"attributes": attributes})
    assert "row 0, attributes: expected every key once, got ['a', 'a']" in message


@pytest.mark.parametrize(
    "text",
    [r'{"a": "x\u0000"}', r'{"x\u0000": 1}', r'{"a": [{"b": "\ud800"}]}'],
    ids=["value", "key", "nested"],
)
def test_attributes_postgres_cannot_keep(path: Path, text: str) -> None:
    message = refusal(path, sample() | {"attributes": ["{}", text, *["{}"] * (ROWS - 2)]})
    assert "row 1, attribute '" in message
    assert "expected text" in message


@pytest.mark.parametrize("column", ["attributes", "when"])
def test_attributes_of_a_type_json_lacks(path: Path, column: str) -> None:
    values = [{"at": timedelta(seconds=1)}] * ROWS
    message = refusal(path, sample() | {column: values})
    assert f"column '{column}': expected" in message
    assert "duration" in message
    assert "cast it or leave it out" in message


def test_dates_times_and_decimals_become_text(path: Path) -> None:
    values = {
        "moment": pa.array([datetime(2022, 1, 2, 3, 4, 5, 6, tzinfo=UTC)] * ROWS, pa.timestamp("ns", "UTC")),
        "nanoseconds": pa.array([1] * ROWS, pa.timestamp("ns")),
        "day": [date(2022, 1, 2)] * ROWS,
        "time": [time(3, 4, 5)] * ROWS,
        "price": [Decimal("12.50")] * ROWS,
        "nested": [{"at": datetime(2022, 1, 2)}] * ROWS,  # noqa: DTZ001 - a time without a zone is what is tested
        "missing": pa.array([None] * ROWS, pa.date32()),
    }
    assert read_one(write_parquet(path, sample() | values)).attributes[3] == {
        "group": 3,
        "moment": "2022-01-02T03:04:05.000006+00:00",
        "nanoseconds": "1970-01-01T00:00:00",
        "day": "2022-01-02",
        "time": "03:04:05",
        "price": "12.50",
        "nested": {"at": "2022-01-02T00:00:00"},
        "missing": None,
    }


def test_integer_ids_are_their_digits(path: Path) -> None:
    batch = read_one(write_parquet(path, sample() | {"external_id": pa.array(range(ROWS), pa.uint64())}))
    assert batch.external_ids == ["0", "1", "2", "3", "4", "5", "6"]


def test_other_columns_join_the_attributes(path: Path) -> None:
    columns = sample() | {"attributes": [{"text": "x"}] * ROWS}
    batch = read_one(write_parquet(path, columns))
    assert batch.attributes == [{"group": row, "text": "x"} for row in range(ROWS)]


@pytest.mark.parametrize(
    ("own", "other"), [("label", "y"), ("external_id", "id"), ("external_id", "ids"), ("document_id", "doc")]
)
def test_the_name_of_an_array_is_an_attribute_beside_the_own_one_alone(path: Path, own: str, other: str) -> None:
    columns = sample() | {other: sample()[own]}
    assert read_one(write_parquet(path, columns)).attributes[1][other] == columns[own][1]
    del columns[own]
    saying = f"column '{other}': expected the name '{own}', got '{other}'; rename it, to something else if"
    assert saying in refusal(path, columns)


def test_a_column_with_the_name_of_an_attribute(path: Path) -> None:
    columns = sample() | {"attributes": ["{}"] * 3 + ['{"group": 1}'] * (ROWS - 3)}
    message = refusal(path, columns)
    assert "row 3, attributes: expected names that no column has, got 'group'" in message


def test_two_columns_of_one_name(path: Path) -> None:
    columns = {name: pa.array(list(values)) for name, values in sample().items()}
    table = pa.table([*columns.values(), columns["label"]], names=[*columns, "label"])
    pq.write_table(table, path)
    with pytest.raises(InvalidInputError, match="column 'label': expected one of this name, got 2"):
        list(read(path))


@pytest.mark.parametrize("row_group_size", [1, 2, 3, 100])
@pytest.mark.parametrize("batch_rows", [1, 2, 5, 100])
def test_row_groups_do_not_matter(path: Path, row_group_size: int, batch_rows: int) -> None:
    write_parquet(path, sample(), row_group_size=row_group_size)
    batches = list(read(path, batch_rows=batch_rows))
    ids = [external_id for batch in batches for external_id in batch.external_ids]
    assert ids == sample()["external_id"].tolist()
    assert all(batch.external_ids[0] == ids[batch.first_row] for batch in batches)
    np.testing.assert_array_equal(np.concatenate([batch.logits for batch in batches]), sample()["logits"])


def test_a_changed_byte_is_seen_by_the_page_checksum(path: Path) -> None:
    plain = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
    write_parquet(path, sample(), **plain)
    data = path.read_bytes()
    place = data.index(sample()["vector"].tobytes())
    path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    with pytest.raises(InvalidInputError, match="truncated or damaged"):
        list(read(path))


def test_text_that_is_no_utf8(path: Path) -> None:
    broken = pa.array([b"\xff\xfe"] * ROWS, pa.binary()).view(pa.string())
    assert "expected a readable parquet file" in refusal(path, sample() | {"external_id": broken})


def test_memory_is_that_of_a_batch(path: Path) -> None:
    rows = 40_000
    flat = np.random.default_rng(0).normal(size=rows * DIMENSION * 16).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(flat), DIMENSION * 16)
    logits = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(rows * CLASS_COUNT, np.float32)), CLASS_COUNT)
    write_parquet(path, {"vector": vectors, "logits": logits}, row_group_size=rows)
    held = pa.total_allocated_bytes()
    most = 0
    for _ in read_exemplars(path, dimension=DIMENSION * 16, class_count=CLASS_COUNT, batch_rows=500):
        most = max(most, pa.total_allocated_bytes() - held)
    assert most < flat.nbytes / 2


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
def test_ids_that_outgrow_their_dictionary_do_not_make_batches_smaller(path: Path, compression: str) -> None:
    """As those of any large file do, whose first pages refer to a dictionary and whose others hold them plainly."""
    rows = 130_000
    columns = {
        "external_id": pa.array([f"an exemplar {row:08}" for row in range(rows)]),
        "logits": pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(rows * CLASS_COUNT, np.float32)), CLASS_COUNT),
    }
    write_parquet(path, columns, row_group_size=rows, compression=compression)
    kinds = pq.ParquetFile(path).metadata.row_group(0).column(0).encodings
    assert {"PLAIN", "RLE_DICTIONARY"} <= set(kinds)
    sizes = [len(one.external_ids) for one in read_exemplars(path, dimension=None, class_count=CLASS_COUNT)]
    assert sizes == [8192] * (rows // 8192) + [rows % 8192]


def test_a_long_text_in_a_dictionary_makes_batches_smaller(path: Path) -> None:
    """Each row may hold it, once it is decoded without a dictionary."""
    rows, text = 130_000, "x" * 500_000
    ids = pa.array([f"an exemplar {row:08}" for row in range(rows)])
    notes = pa.array([text, *(f"a note of {row:08}" for row in range(1, rows))])
    logits = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(rows * CLASS_COUNT, np.float32)), CLASS_COUNT)
    write_parquet(path, {"external_id": ids, "note": notes, "logits": logits}, row_group_size=rows)
    budget = 64 << 20
    first = next(iter(read_exemplars(path, dimension=None, class_count=CLASS_COUNT, memory_budget=budget)))
    assert len(first.external_ids) * len(text) <= budget // 4
