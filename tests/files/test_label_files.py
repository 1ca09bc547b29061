"""Files of labels: what is read of them, and what is refused by its row and column."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from venn_admit.errors import InvalidInputError
from venn_admit.files.labels import LabelRows, LabelRules, read_labels


def read(path: Path, *, selection: str = "random", retract: bool = False) -> LabelRows:
    return read_labels(path, LabelRules(("zero", "one", "two"), selection, retract))


def csv(folder: Path, text: str) -> Path:
    path = folder / "labels.csv"
    path.write_text(text)
    return path


def parquet(folder: Path, **columns: Any) -> Path:
    path = folder / "labels.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def test_csv(tmp_path: Path) -> None:
    rows = read(csv(tmp_path, "label,external_id,selection\n2,007,random\n 0 ,b,selected\n"))
    assert rows.external_ids == ["007", "b"]
    assert rows.labels.tolist() == [2, 0]
    assert rows.selections == ["random", "selected"]


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_csv_in_another_encoding(tmp_path: Path, encoding: str) -> None:
    path = csv(tmp_path, "")
    path.write_bytes("external_id,label\né,1\n".encode(encoding))
    with pytest.raises(InvalidInputError, match=r"got UnicodeDecodeError: .*in another encoding, save it as UTF-8"):
        read(path)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_whose_name_is_not_utf_8(tmp_path: Path, suffix: str) -> None:
    path, table = tmp_path / f"labels-\udcff.{suffix}", pa.table({"external_id": ["a"], "label": [1]})
    with path.open("wb") as file:
        pq.write_table(table, file) if suffix == "parquet" else pa_csv.write_csv(table, file)
    with pytest.raises(InvalidInputError, match=r"its name is not UTF-8, rename it"):
        read(path)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint64(), pa.int64()])
def test_parquet(tmp_path: Path, kind: pa.DataType) -> None:
    rows = read(parquet(tmp_path, external_id=["a", "b"], label=pa.array([1, 2], kind)), selection="selected")
    assert rows.external_ids == ["a", "b"]
    assert rows.labels.tolist() == [1, 2]
    assert rows.selections == ["selected", "selected"]


def test_class_names_and_whole_floats_are_labels(tmp_path: Path) -> None:
    text = "external_id,label\na,two\nb, one \nc,1.0\nd,0\n"
    assert read(csv(tmp_path, text)).labels.tolist() == [2, 1, 1, 0]
    names = parquet(tmp_path, external_id=["a", "b"], label=pa.array(["two", "one"]).dictionary_encode())
    assert read(names).labels.tolist() == [2, 1]
    floats = parquet(tmp_path, external_id=[1, 2], label=[1.0, float("nan")])
    rows = read(floats, retract=True)
    assert (rows.external_ids, rows.labels.tolist()) == (["1", "2"], [1, -1])


def test_a_name_may_have_blanks_around_it(tmp_path: Path) -> None:
    path = csv(tmp_path, "external_id,label\na, one\nb,one\nc, two \nd, 1 \n")
    assert read_labels(path, LabelRules((" one", "one", "two"), "random")).labels.tolist() == [0, 1, 2, 1]


def test_a_text_that_means_two_classes_is_refused(tmp_path: Path) -> None:
    path = csv(tmp_path, "external_id,label\na,1\n")
    with pytest.raises(InvalidInputError, match=r"row 0, label: .* the number of one class and the name of another"):
        read_labels(path, LabelRules(("1", "2", "3"), "random"))
    assert read_labels(path, LabelRules(("0", "1"), "random")).labels.tolist() == [1]


def test_other_columns_are_named_and_left_alone(tmp_path: Path) -> None:
    rows = read(csv(tmp_path, "who,external_id,label,note\nme,a,1,x\n"))
    assert (rows.external_ids, rows.labels.tolist(), rows.ignored) == (["a"], [1], ["who", "note"])
    assert read(parquet(tmp_path, external_id=["a"], label=[1], note=[{"b": 1}])).ignored == ["note"]


def test_dictionaries_of_text(tmp_path: Path) -> None:
    ids = pa.array(["a", "b"]).dictionary_encode()
    assert read(parquet(tmp_path, external_id=ids, label=[0, 0])).external_ids == ["a", "b"]


def test_an_empty_label_takes_one_back_where_that_is_asked_for(tmp_path: Path) -> None:
    for path in (
        csv(tmp_path, "external_id,label\na,1\nb,\n"),
        parquet(tmp_path, external_id=["a", "b"], label=pa.array([1, None], pa.int32())),
    ):
        assert read(path, retract=True).labels.tolist() == [1, -1]
        with pytest.raises(InvalidInputError, match=r"row 1, label: expected a label, got nothing"):
            read(path)
    none = parquet(tmp_path, external_id=["a"], label=pa.array([None], pa.null()))
    assert read(none, retract=True).labels.tolist() == [-1]


@pytest.mark.parametrize(
    ("text", "saying"),
    [
        (
            "external_id,label\na,3\n",
            r"row 0, label: expected a class number 0..2 or a class name \('zero', 'one', 'two'\), got '3'",
        ),
        ("external_id,label\na,-1\n", "row 0, label: expected a class number"),
        ("external_id,label\na,0\nb,1.5\n", "row 1, label: expected a class number"),
        ("external_id,label\na,red\n", "got 'red'"),
        ("external_id,label\na,²\n", "expected a class number"),
        ("external_id,label\na,99999999999999999999\n", "expected a class number"),
        ("external_id,label\n,1\n", "row 0, external_id: expected text, got nothing"),
        ("external_id,label\na,1\nb,0\na,1\n", r"rows 0 and 2, external_id: expected every id once, got 'a' twice"),
        (
            "external_id,label,selection\na,1,hard\n",
            r"row 0, selection: expected random, review or selected, got 'h",
        ),
        ("external_id,label,selection\na,1,\n", r"row 0, selection: expected random, review or selected, got ''"),
        ("id,label\na,1\n", "columns: expected"),
        ("external_id,label,label\na,1,1\n", "columns: expected"),
        ("external_id,label\n", "table: expected at least one row"),
        ("external_id,label\na\n", "row 0: expected 2 values, got 1"),
        ("external_id,label\na,1\nb,2\nc,0,red\n", "row 2: expected 2 values, got 3"),
        ("external_id;label\na;1\n", "columns: expected .*; separate them by commas"),
        ("external_id\tlabel\na\t1\n", "columns: expected .*; separate them by commas"),
        ("", "columns: expected .*, got none"),
    ],
)
def test_csv_is_refused(tmp_path: Path, text: str, saying: str) -> None:
    with pytest.raises(InvalidInputError, match=saying):
        read(csv(tmp_path, text))


@pytest.mark.parametrize(
    ("columns", "saying"),
    [
        ({"external_id": ["a"], "label": [1.5]}, "row 0, label: expected a class number .*, got 1.5"),
        ({"external_id": [7.0], "label": [1]}, "column 'external_id': expected string or an integer type, got double"),
        ({"external_id": ["a"], "label": [1], "selection": [None]}, "column 'selection': expected string, got null"),
        ({"external_id": ["a"], "label": [7]}, "row 0, label: expected a class number 0..2 .*, got 7"),
    ],
)
def test_parquet_is_refused(tmp_path: Path, columns: dict[str, Any], saying: str) -> None:
    with pytest.raises(InvalidInputError, match=saying):
        read(parquet(tmp_path, **columns))


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("external_id,label\n")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "latin1.csv").write_bytes("external_id,label\né,1\n".encode("latin-1"))
    for name, saying in (
        ("labels.txt", "a name ending in .csv or .parquet, got '.txt'"),
        ("broken.parquet", "expected a readable parquet file"),
        ("latin1.csv", "expected a readable CSV file"),
        ("missing.csv", "no such file"),
    ):
        with pytest.raises(InvalidInputError, match=saying):
            read(tmp_path / name)
    with pytest.raises(InvalidInputError, match="selection: expected random, review or selected, got 'all'"):
        read(csv(tmp_path, "external_id,label\na,1\n"), selection="all")
