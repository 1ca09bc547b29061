"""Tables and settings on their way out."""

import errno
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from venn_admit.errors import InvalidInputError
from venn_admit.files.output import exports
from venn_admit.files.output.exports import list_column, write_json
from venn_admit.files.output.tables import TableWriter

PAIR = pa.schema({"name": pa.string(), "count": pa.int32()})

CONTRACT = {
    "SCORES_SCHEMA": (
        "external_id string, predicted int32, logits list<double>, q int32, d double, set list<int32>, "
        "band_size list<int32>, threshold list<double>, category_size int32, upweight double, "
        "lower double, upper double, decision int32, reason string, calibration int64, "
        "predicted_class string, decided_class string, method string, score double"
    ),
    "EXEMPLARS_SCHEMA": "external_id string, split string, label int32, predicted_by_network int32",
    "NEIGHBOURS_SCHEMA": "external_id string, neighbour_ids list<string>, distances list<double>",
    "APPROXIMATIONS_SCHEMA": (
        "external_id string, split string, logits list<double>, predicted int32, q int32, d double"
    ),
    "CALIBRATION_SCHEMA": (
        "external_id string, split string, label int32, predicted int32, q int32, d double, "
        "score double, set list<int32>"
    ),
}


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def brief(kind: pa.DataType) -> str:
    return f"list<{kind.value_type}>" if pa.types.is_list(kind) else str(kind)


@pytest.mark.parametrize("name", CONTRACT)
def test_schemas_are_the_contract(name: str) -> None:
    schema = getattr(exports, name)
    assert ", ".join(f"{field.name} {brief(field.type)}" for field in schema) == CONTRACT[name]


class TestColumns:
    @given(hnp.arrays(np.float64, st.tuples(st.integers(0, 8), st.integers(0, 5)), elements=st.floats(allow_nan=False)))
    def test_lists_are_the_rows(self, matrix: np.ndarray[Any, Any]) -> None:
        for stored in (matrix, np.asfortranarray(matrix), matrix[::2]):
            column = list_column(stored)
            column.validate(full=True)
            assert column.to_pylist() == stored.tolist()

    def test_lists_of_texts(self) -> None:
        assert list_column(np.array([["a", "b"], ["c", "d"]])).to_pylist() == [["a", "b"], ["c", "d"]]


class TestTableWriter:
    def test_scores_come_back(self, tmp_path: Path) -> None:
        path = tmp_path / "scores.parquet"
        columns = {
            "external_id": ["a", "b"],
            "predicted": np.array([1, 0]),
            "logits": np.array([[0.25, 1e300], [-0.0, 5e-324]]),
            "q": np.array([25, 0]),
            "d": np.array([0.5, 1.5]),
            "set": [[1], [0, 1]],
            "band_size": np.array([[40, 41], [0, 3]]),
            "threshold": np.array([[0.5, 0.25], [-np.inf, 0.5]]),
            "category_size": np.array([12, 0]),
            "upweight": [1.5, None],
            "lower": [0.9, None],
            "upper": [0.95, None],
            "decision": [1, None],
            "reason": [None, "set not a singleton"],
            "calibration": np.array([7, 7]),
            "predicted_class": ["blue", "red"],
            "decided_class": ["blue", None],
            "method": ["venn-admit", "venn-abers"],
            "score": [None, 0.5],
        }
        schema = pa.schema([exports.SCORES_SCHEMA.field(name) for name in columns])
        with TableWriter(path, schema) as writer:
            writer.write(columns)
            writer.write(columns)
        table = pq.read_table(path)
        assert table.schema.equals(schema)
        assert table.num_rows == 4
        assert table.to_pylist()[1] == {
            "external_id": "b",
            "predicted": 0,
            "logits": [-0.0, 5e-324],
            "q": 0,
            "d": 1.5,
            "set": [0, 1],
            "band_size": [0, 3],
            "threshold": [-np.inf, 0.5],
            "category_size": 0,
            "upweight": None,
            "lower": None,
            "upper": None,
            "decision": None,
            "reason": "set not a singleton",
            "calibration": 7,
            "predicted_class": "red",
            "decided_class": None,
            "method": "venn-abers",
            "score": 0.5,
        }
        assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"
        assert names_in(tmp_path) == ["scores.parquet"]

    def test_the_file_appears_only_at_the_end(self, tmp_path: Path) -> None:
        path = tmp_path / "table.parquet"
        with TableWriter(path, PAIR) as writer:
            writer.write({"count": [1], "name": ["a"]})
            (partial,) = names_in(tmp_path)
            assert partial.startswith("table.parquet.")
            assert partial.endswith(".partial")
        assert names_in(tmp_path) == ["table.parquet"]
        assert pq.read_table(path).to_pylist() == [{"name": "a", "count": 1}]

    def test_no_rows_make_an_empty_table(self, tmp_path: Path) -> None:
        with TableWriter(tmp_path / "empty.parquet", PAIR):
            pass
        assert pq.read_table(tmp_path / "empty.parquet").schema.equals(PAIR)

    def test_an_error_leaves_what_was_there(self, tmp_path: Path) -> None:
        path = tmp_path / "table.parquet"
        path.write_bytes(b"before")
        with pytest.raises(ZeroDivisionError), TableWriter(path, PAIR) as writer:
            writer.write({"name": ["a"], "count": [1 // (len(names_in(tmp_path)) - 2)]})
        assert path.read_bytes() == b"before"
        assert names_in(tmp_path) == ["table.parquet"]

    def test_a_full_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "table.parquet"
        path.write_bytes(b"before")

        def refuse(_: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", refuse)
        with pytest.raises(InvalidInputError, match="No space left"), TableWriter(path, PAIR) as writer:
            writer.write({"name": ["a"], "count": [1]})
        assert path.read_bytes() == b"before"
        assert names_in(tmp_path) == ["table.parquet"]

    def test_two_writers_of_one_file_do_not_meet(self, tmp_path: Path) -> None:
        path = tmp_path / "table.parquet"
        with TableWriter(path, PAIR) as first, TableWriter(path, PAIR) as second:
            first.write({"name": ["first"], "count": [1]})
            second.write({"name": ["second"], "count": [2]})
        assert pq.read_table(path).to_pylist() == [{"name": "first", "count": 1}]

    @pytest.mark.parametrize(
        "columns",
        [
            {"name": ["a"], "count": np.array([2**31])},
            {"name": ["a"], "count": np.array([0.5])},
            {"name": ["a"], "count": ["many"]},
            {"name": ["a", "b"], "count": [1]},
            {"name": ["a"]},
            {"name": ["a"], "count": [1], "more": [1]},
        ],
    )
    def test_columns_that_do_not_fit(self, tmp_path: Path, columns: dict[str, Any]) -> None:
        with (
            pytest.raises(InvalidInputError, match="expected"),
            TableWriter(tmp_path / "table.parquet", PAIR) as writer,
        ):
            writer.write(columns)
        assert names_in(tmp_path) == []


class TestPlaces:
    def test_a_missing_folder(self, tmp_path: Path) -> None:
        path = tmp_path / "missing" / "file.csv"
        with pytest.raises(InvalidInputError, match="check the folder"), TableWriter(path, PAIR):
            pass
        with pytest.raises(InvalidInputError, match="check the folder"):
            write_json(path, {})

    def test_a_file_for_a_folder(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(InvalidInputError, match="check the folder"):
            write_json(tmp_path / "file" / "below", {})

    def test_something_that_is_no_file_is_not_replaced(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "folder").mkdir()
        for name in ("pipe", "folder"):
            with pytest.raises(InvalidInputError, match="expected the name of a file"):
                write_json(tmp_path / name, {})
        assert (tmp_path / "pipe").is_fifo()
        assert (tmp_path / "folder").is_dir()
        assert names_in(tmp_path) == ["folder", "pipe"]


class TestJson:
    def test_what_json_lacks_becomes_text(self, tmp_path: Path) -> None:
        path = tmp_path / "settings.json"
        infinite = [float("inf"), -np.inf, float("nan")]
        payload = {
            "delta": np.float64("inf"),
            "beta": np.array([0.1, -np.inf]),
            "q": (np.int64(3), True),
            "list": infinite,
        }
        write_json(path, payload)

        def refuse(constant: str) -> None:
            raise AssertionError(constant)

        assert json.loads(path.read_text(), parse_constant=refuse) == {
            "delta": "inf",
            "beta": [0.1, "-inf"],
            "q": [3, True],
            "list": ["inf", "-inf", "nan"],
        }
        assert names_in(tmp_path) == ["settings.json"]

    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_numbers_keep_their_bits(self, tmp_path_factory: pytest.TempPathFactory, number: float) -> None:
        path = tmp_path_factory.getbasetemp() / "number.json"
        write_json(path, {"number": number})
        assert json.loads(path.read_text())["number"].hex() == number.hex()

    def test_a_value_json_does_not_know_leaves_what_was_there(self, tmp_path: Path) -> None:
        path = tmp_path / "settings.json"
        write_json(path, {"alpha": "0.1"})
        with pytest.raises(TypeError):
            write_json(path, {"alpha": Decimal("0.1")})
        assert json.loads(path.read_text()) == {"alpha": "0.1"}
        assert names_in(tmp_path) == ["settings.json"]
