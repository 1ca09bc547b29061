"""What holds for a file of exemplars whatever its format."""

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.files.samples import CLASS_COUNT, DIMENSION, ROWS, SUFFIXES, Columns, read, read_one, sample, write
from venn_admit.errors import InvalidInputError
from venn_admit.files import count_rows, read_exemplars
from venn_admit.files.records import duplicate_ids

# How messages name the columns.
NAMES = {
    ".npz": {
        "vector": "vector r",
        "logits": "logits f",
        "label": "label y",
        "external_id": "id",
        "document_id": "doc",
    },
    ".parquet": {name: name for name in ("vector", "logits", "label", "external_id", "document_id")},
}

finite_float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
storable_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)
ids = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=20)


@pytest.fixture(params=SUFFIXES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"exemplars{request.param}"


def spoilt(**changes: Any) -> Columns:
    return sample() | changes


def with_value(column: str, row: int, position: int, value: float) -> Columns:
    columns = sample()
    columns[column][row, position] = value
    return columns


def assert_refused(path: Path, *parts: str) -> None:
    with pytest.raises(InvalidInputError) as refusal:
        list(read(path))
    for part in (str(path), *parts):
        assert part in str(refusal.value)


class TestRoundTrip:
    def test_every_column_comes_back(self, path: Path) -> None:
        columns = sample()
        batch = read_one(write(path, columns))
        assert batch.first_row == 0
        assert batch.external_ids == columns["external_id"].tolist()
        assert batch.document_ids == columns["document_id"].tolist()
        assert batch.attributes == [{"group": row} for row in range(ROWS)]
        for read_back, written, dtype in (
            (batch.vectors, columns["vector"], np.float32),
            (batch.logits, columns["logits"], np.float32),
            (batch.labels, columns["label"], np.int64),
        ):
            assert read_back is not None
            assert read_back.dtype == dtype
            assert read_back.flags.writeable
            np.testing.assert_array_equal(read_back, written, strict=False)

    def test_optional_columns_may_be_missing(self, path: Path) -> None:
        columns = sample()
        batch = read_one(write(path, {name: columns[name] for name in ("vector", "logits")}))
        assert all(external_id.startswith("content:") for external_id in batch.external_ids)
        assert batch.document_ids == [None] * ROWS
        assert batch.labels.tolist() == [-1] * ROWS
        assert batch.attributes == [{}] * ROWS
        batch.attributes[0]["mine"] = 1
        assert batch.attributes[1] == {}

    @given(
        vectors=hnp.arrays(np.float32, st.tuples(st.integers(1, 20), st.just(2)), elements=finite_float32),
        batch_rows=st.integers(1, 25),
        suffix=st.sampled_from(SUFFIXES),
        data=st.data(),
    )
    def test_batches_of_any_size_make_up_the_file(
        self, vectors: np.ndarray[Any, Any], batch_rows: int, suffix: str, data: st.DataObject
    ) -> None:
        rows = len(vectors)
        vectors[-1] = 2  # so that the first logits cannot pass for probabilities
        columns = {
            "vector": vectors,
            "logits": vectors[::-1].copy(),
            "label": data.draw(hnp.arrays(np.int8, rows, elements=st.integers(-1, 1))),
            "external_id": np.array(data.draw(st.lists(ids, min_size=rows, max_size=rows))),
            "text": np.array(data.draw(st.lists(storable_text, min_size=rows, max_size=rows))),
        }
        with tempfile.TemporaryDirectory() as folder:
            path = write(Path(folder, f"any{suffix}"), columns)
            batches = list(read_exemplars(path, dimension=2, class_count=2, batch_rows=batch_rows))
            assert count_rows(path) == rows
        sizes = [len(batch.labels) for batch in batches]
        assert [batch.first_row for batch in batches] == np.cumsum([0, *sizes[:-1]]).tolist()
        assert max(sizes) <= batch_rows
        read_back = np.concatenate([batch.vectors for batch in batches])
        assert read_back.tobytes() == vectors.tobytes()  # -0.0 and subnormal numbers included
        assert np.concatenate([batch.logits for batch in batches]).tobytes() == vectors[::-1].tobytes()
        assert np.concatenate([batch.labels for batch in batches]).tolist() == columns["label"].tolist()
        read_ids = [external_id for batch in batches for external_id in batch.external_ids]
        assert read_ids == columns["external_id"].tolist()
        attributes = [row for batch in batches for row in batch.attributes]
        assert attributes == [{"text": text} for text in columns["text"].tolist()]

    def test_later_logits_may_look_like_probabilities(self, path: Path) -> None:
        vectors = np.array([[1, 0], [0, 1], [3, -1]], dtype=np.float32)
        written = write(path, {"vector": vectors, "logits": vectors[::-1].copy()})
        batches = list(read_exemplars(written, dimension=2, class_count=2, batch_rows=1))
        assert [batch.logits.tolist() for batch in batches] == [[[3, -1]], [[0, 1]], [[1, 0]]]

    def test_default_ids_are_of_the_content(self, path: Path) -> None:
        columns = {name: sample()[name] for name in ("vector", "logits")}
        ids = [external_id for batch in read(write(path, columns), batch_rows=3) for external_id in batch.external_ids]
        assert len(set(ids)) == ROWS
        backwards = {name: values[::-1].copy() for name, values in columns.items()}
        assert read_one(write(path.with_stem("other"), backwards)).external_ids == ids[::-1]
        with_labels = columns | {"label": sample()["label"]}
        assert read_one(write(path.with_stem("labelled"), with_labels)).external_ids == ids
        with_documents = columns | {"document_id": sample()["document_id"]}
        assert not set(ids) & set(read_one(write(path.with_stem("documents"), with_documents)).external_ids)

    def test_equal_rows_without_ids_stay_as_many(self, path: Path) -> None:
        columns = {name: np.repeat(sample()[name][:2], 3, axis=0) for name in ("vector", "logits")}
        ids = [external_id for batch in read(write(path, columns), batch_rows=2) for external_id in batch.external_ids]
        assert ids == [ids[0], f"{ids[0]}:2", f"{ids[0]}:3", ids[3], f"{ids[3]}:2", f"{ids[3]}:3"]

    def test_the_suffix_may_be_in_capitals(self, path: Path) -> None:
        shouted = write(path, sample()).rename(path.with_suffix(path.suffix.upper()))
        assert read_one(shouted).external_ids == sample()["external_id"].tolist()


class TestValues:
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("column", ["vector", "logits"])
    def test_a_number_that_is_not_finite(self, path: Path, column: str, value: float) -> None:
        write(path, with_value(column, 5, 2, value))
        name = NAMES[path.suffix][column]
        assert_refused(path, f"row 5, {name}[2]: expected a finite number, got {value}")

    def test_a_float16_infinity(self, path: Path) -> None:
        columns = with_value("vector", 1, 3, np.inf)
        columns["vector"] = columns["vector"].astype(np.float16)
        if path.suffix == ".parquet":
            columns["vector"] = columns["vector"].astype(np.float32)
        write(path, columns)
        assert_refused(path, "row 1, ", "[3]: expected a finite number, got inf")

    @pytest.mark.parametrize("label", [7, CLASS_COUNT, -2])
    def test_a_label_of_no_class(self, path: Path, label: int) -> None:
        labels = sample()["label"]
        labels[4] = label
        write(path, spoilt(label=labels))
        assert_refused(path, f"row 4, {NAMES[path.suffix]['label']}: expected -1 (unknown) or 0..2, got {label}")

    def test_a_label_beyond_int64_does_not_wrap_to_unknown(self, path: Path) -> None:
        labels = np.zeros(ROWS, dtype=np.uint64)
        labels[2] = 2**64 - 1
        write(path, spoilt(label=labels))
        assert_refused(path, f"row 2, {NAMES[path.suffix]['label']}: expected -1 (unknown) or 0..2")

    def test_labels_that_are_truths(self, path: Path) -> None:
        write(path, spoilt(label=np.zeros(ROWS, dtype=bool)))
        assert_refused(path, "expected class numbers or class names", "got bool")

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_whole_floats_are_labels_and_nan_is_none(self, path: Path, dtype: str) -> None:
        labels = np.array([0, 1, 2, -1, np.nan, 1, 0], dtype)
        assert read_one(write(path, spoilt(label=labels))).labels.tolist() == [0, 1, 2, -1, -1, 1, 0]
        labels[5] = 1.5
        write(path, spoilt(label=labels))
        assert_refused(path, f"row 5, {NAMES[path.suffix]['label']}: expected -1 (unknown) or 0..2, got 1.5")

    def test_class_names_are_labels(self, path: Path) -> None:
        labels = np.array(["no", "yes", "", "maybe", "no", "1", "yes"])
        sizes: Any = {"dimension": DIMENSION, "class_count": CLASS_COUNT, "class_names": ("no", "yes", "maybe")}
        (batch,) = read_exemplars(write(path, spoilt(label=labels)), **sizes)
        assert batch.labels.tolist() == [0, 1, -1, 2, 0, 1, 1]
        labels[6] = "Yes"
        with pytest.raises(InvalidInputError, match=r"row 6, .*: expected a class number 0..2 or a class name .*'Yes'"):
            list(read_exemplars(write(path, spoilt(label=labels)), **sizes))

    @pytest.mark.parametrize("column", ["vector", "logits"])
    def test_doubles_are_taken_if_float32_can_hold_them(self, path: Path, column: str) -> None:
        columns = sample()
        doubles = columns[column].astype(np.float64) + 1e-12
        kept = np.array(list(doubles), dtype=np.float64)
        values = pa.array(list(kept), pa.list_(pa.float64())) if path.suffix == ".parquet" else kept
        batch = read_one(write(path, columns | {column: values}))
        read_back = batch.vectors if column == "vector" else batch.logits
        np.testing.assert_array_equal(read_back, kept.astype(np.float32))
        kept[5, 1] = 1e39
        values = pa.array(list(kept), pa.list_(pa.float64())) if path.suffix == ".parquet" else kept
        write(path, columns | {column: values})
        assert_refused(path, f"row 5, {NAMES[path.suffix][column]}[1]: expected a number that float32 can hold")

    @pytest.mark.parametrize(
        ("value", "parts"),
        [
            ("", ["expected 1 to 1,000 characters, got 0"]),
            ("x" * 1001, ["expected 1 to 1,000 characters, got 1,001"]),
            ("a\0b", ["expected text without NUL characters", "a\\x00b"]),
            ("a\tb", ["expected text without control characters", "a\\tb"]),
            ("a\x9bb", ["expected text without control characters", "a\\x9bb"]),
        ],
    )
    @pytest.mark.parametrize("column", ["external_id", "document_id"])
    def test_an_id_that_cannot_be_stored(self, path: Path, column: str, value: str, parts: list[str]) -> None:
        values = sample()[column].tolist()
        values[3] = value
        write(path, spoilt(**{column: np.array(values)}))
        assert_refused(path, f"row 3, {NAMES[path.suffix][column]}", *parts)

    def test_an_id_of_the_greatest_length(self, path: Path) -> None:
        values = sample()["external_id"].tolist()
        values[3] = "x" * 1000
        assert read_one(write(path, spoilt(external_id=np.array(values)))).external_ids == values

    def test_an_attribute_that_postgres_cannot_keep(self, path: Path) -> None:
        write(path, spoilt(text=np.array(["fine"] * (ROWS - 1) + ["a\0b"])))
        assert_refused(path, "row 6, attribute 'text': expected text without NUL characters")

    def test_attributes_that_json_lacks_become_none(self, path: Path) -> None:
        numbers = np.array([0.5, np.nan, np.inf, -np.inf, 1, 2, 3])
        batch = read_one(write(path, spoilt(number=numbers)))
        assert [row["number"] for row in batch.attributes] == [0.5, None, None, None, 1.0, 2.0, 3.0]

    def test_a_fault_in_a_later_batch_names_the_row_of_the_file(self, path: Path) -> None:
        batches = read(write(path, with_value("vector", 5, 0, np.nan)), batch_rows=2)
        assert [next(batches).first_row for _ in range(2)] == [0, 2]
        with pytest.raises(InvalidInputError, match="row 5, "):
            next(batches)


class TestShapes:
    def test_vectors_of_another_length(self, path: Path) -> None:
        write(path, spoilt(vector=sample()["vector"][:, 1:]))
        assert_refused(path, "vector" if path.suffix == ".parquet" else "array 'r'", "expected 4 values", "got 3")

    def test_logits_of_another_number_of_classes(self, path: Path) -> None:
        write(path, spoilt(logits=np.zeros((ROWS, CLASS_COUNT + 1), dtype=np.float32)))
        assert_refused(path, "logits" if path.suffix == ".parquet" else "array 'f'", "expected 3 values", "got 4")

    @pytest.mark.parametrize("column", ["vector", "logits"])
    def test_a_column_that_must_be_there(self, path: Path, column: str) -> None:
        columns = sample()
        del columns[column]
        write(path, columns)
        wanted = "rf"[column == "logits"] if path.suffix == ".npz" else column
        assert_refused(path, f"expected one named '{wanted}', got", "group")

    def test_no_rows(self, path: Path) -> None:
        write(path, {name: values[:0] for name, values in sample().items()})
        assert_refused(path, "expected at least one row, got 0")
        assert count_rows(path) == 0


class TestFiles:
    def test_cut_anywhere(self, path: Path) -> None:
        whole = write(path, sample()).stat().st_size
        for length in reversed(range(whole)):
            os.truncate(path, length)
            with pytest.raises(InvalidInputError, match="truncated or damaged"):
                list(read(path))
            with pytest.raises(InvalidInputError, match="truncated or damaged"):
                count_rows(path)

    def test_cut_at_the_front(self, path: Path) -> None:
        whole = write(path, sample()).read_bytes()
        path.write_bytes(whole[len(whole) // 3 :])
        assert_refused(path, "truncated or damaged")

    def test_a_text_file(self, path: Path) -> None:
        path.write_text("external_id,label\na,1\n" * 50)
        assert_refused(path, f"expected a readable {path.suffix[1:]} file", "truncated or damaged")

    def test_no_such_file(self, path: Path) -> None:
        assert_refused(path, "expected a file, got no such file")
        with pytest.raises(InvalidInputError, match="no such file"):
            count_rows(path)

    def test_a_directory(self, path: Path) -> None:
        path.mkdir()
        assert_refused(path, "expected a file, got a directory")

    def test_a_pipe_is_not_waited_for(self, path: Path) -> None:
        os.mkfifo(path)
        assert_refused(path, "expected a file, got something else")

    def test_a_name_no_file_can_have(self, path: Path) -> None:
        assert_refused(path.with_stem("x" * 300), "readable")

    @pytest.mark.parametrize("name", ["exemplars.csv", "exemplars", "exemplars.npz.gz"])
    def test_another_suffix(self, tmp_path: Path, name: str) -> None:
        path = tmp_path / name
        path.write_bytes(b"anything")
        assert_refused(path, "expected a name ending in .npz or .parquet, got")
        with pytest.raises(InvalidInputError, match="ending in"):
            count_rows(path)

    @pytest.mark.parametrize("argument", ["dimension", "class_count", "batch_rows"])
    def test_sizes_below_one(self, path: Path, argument: str) -> None:
        sizes: Any = {"dimension": DIMENSION, "class_count": CLASS_COUNT, "batch_rows": 2} | {argument: 0}
        with pytest.raises(InvalidInputError, match=f"{argument}: expected at least 1, got 0"):
            next(read_exemplars(write(path, sample()), **sizes))

    def test_leaving_early_closes_the_file(self, path: Path) -> None:
        batches = read(write(path, sample()), batch_rows=2)
        next(batches)
        assert str(path.resolve()) in [file.path for file in psutil.Process().open_files()]
        batches.close()  # type: ignore[attr-defined]
        assert str(path.resolve()) not in [file.path for file in psutil.Process().open_files()]


def test_duplicate_ids_are_found_with_their_rows() -> None:
    assert duplicate_ids(["a", "b", "a", "c", "b", "a"]) == {"a": [0, 2, 5], "b": [1, 4]}
    assert duplicate_ids([]) == {}
