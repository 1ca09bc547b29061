"""What is particular to .npz."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.files.samples import DIMENSION, NPZ_NAMES, ROWS, Columns, read, read_one, sample, write_npz
from venn_admit.errors import InvalidInputError
from venn_admit.files import count_rows, read_exemplars

EXAMPLES = Path(__file__).parents[2] / "examples" / "sentiment_small"


class Payload:
    """Touches a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "exemplars.npz"


def refusal(path: Path, columns: Columns) -> str:
    write_npz(path, columns)
    with pytest.raises(InvalidInputError) as refused:
        list(read(path))
    assert str(path) in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize("name", ["vector", "logits", "label", "external_id", "document_id", "text"])
def test_objects_are_never_unpickled(path: Path, tmp_path: Path, name: str) -> None:
    touched = tmp_path / "touched"
    objects = np.array([Payload(touched)] * ROWS, dtype=object)
    message = refusal(path, sample() | {name: objects})
    assert "Python objects, which are never unpickled" in message
    count_rows(path)
    assert not touched.exists()
    with np.load(path, allow_pickle=True) as archive:  # the payload is a live one
        for stored in archive:
            _ = archive[stored]
    assert touched.exists()


def test_a_pickle_in_place_of_the_archive(path: Path) -> None:
    np.array([{}], dtype=object).dump(path)
    with pytest.raises(InvalidInputError, match="expected a readable npz file"):
        list(read(path))


@pytest.mark.parametrize("dtype", ["<f2", ">f2", "<f4", ">f4", "<f8", ">f8"])
def test_vectors_and_logits_of_accepted_types(path: Path, dtype: str) -> None:
    columns = sample()
    columns["vector"], columns["logits"] = columns["vector"].astype(dtype), columns["logits"].astype(dtype)
    batch = read_one(write_npz(path, columns))
    assert batch.vectors is not None
    assert batch.vectors.dtype == batch.logits.dtype == np.dtype(np.float32)
    np.testing.assert_array_equal(batch.vectors, columns["vector"].astype(np.float32))
    np.testing.assert_array_equal(batch.logits, columns["logits"].astype(np.float32))


@pytest.mark.parametrize("dtype", [np.longdouble, np.int32, np.complex64])
@pytest.mark.parametrize(("column", "name"), [("vector", "r"), ("logits", "f")])
def test_vectors_and_logits_of_other_types(path: Path, column: str, name: str, dtype: type[np.generic]) -> None:
    columns = sample()
    columns[column] = columns[column].astype(dtype)
    message = refusal(path, columns)
    assert f"array '{name}': expected float16, float32 or float64, got {np.dtype(dtype)}" in message
    assert "cast it" in message


@pytest.mark.parametrize("batch_rows", [1, 3, 100])
def test_arrays_stored_column_major(path: Path, batch_rows: int) -> None:
    columns = sample()
    for name in ("vector", "logits"):
        columns[name] = np.asfortranarray(columns[name])
    batches = list(read(write_npz(path, columns), batch_rows=batch_rows))
    for batch in batches:
        assert batch.vectors is not None
        assert batch.vectors.flags.c_contiguous
        rows = slice(batch.first_row, batch.first_row + len(batch.labels))
        np.testing.assert_array_equal(batch.vectors, columns["vector"][rows])
        np.testing.assert_array_equal(batch.logits, columns["logits"][rows])
    assert sum(len(batch.labels) for batch in batches) == ROWS


def test_a_compressed_archive(path: Path) -> None:
    columns = sample()
    np.savez_compressed(path, r=columns["vector"], f=columns["logits"])
    batches = list(read(path, batch_rows=2))
    np.testing.assert_array_equal(np.concatenate([batch.vectors for batch in batches]), columns["vector"])


@pytest.mark.parametrize("values", [np.arange(ROWS) / 2, np.array([b"bytes"] * ROWS)])
def test_ids_that_are_not_text(path: Path, values: np.ndarray[Any, Any]) -> None:
    message = refusal(path, sample() | {"external_id": values})
    assert f"array 'id': expected texts (dtype U) or integers, got {values.dtype}" in message


def test_integer_ids_are_their_digits(path: Path) -> None:
    batch = read_one(write_npz(path, sample() | {"external_id": np.arange(ROWS, dtype=np.int16) - 1}))
    assert batch.external_ids == ["-1", "0", "1", "2", "3", "4", "5"]


def test_dates_become_iso_text(path: Path) -> None:
    when = np.array(["2022-01-02T03:04:05", "NaT"] + ["1969-12-31"] * (ROWS - 2), "datetime64[s]")
    batch = read_one(write_npz(path, sample() | {"when": when, "day": when.astype("M8[D]")}))
    assert [row["when"] for row in batch.attributes[:3]] == ["2022-01-02T03:04:05", None, "1969-12-31T00:00:00"]
    assert batch.attributes[0]["day"] == "2022-01-02"


def test_documents_may_be_integers(path: Path) -> None:
    batch = read_one(write_npz(path, sample() | {"document_id": np.arange(ROWS, dtype=np.uint16) // 2}))
    assert batch.document_ids == ["0", "0", "1", "1", "2", "2", "3"]


@pytest.mark.parametrize("values", [np.zeros(ROWS), np.array([b"bytes"] * ROWS), np.zeros(ROWS, dtype=bool)])
def test_documents_of_other_types(path: Path, values: np.ndarray[Any, Any]) -> None:
    assert "array 'doc': expected texts (dtype U) or integers" in refusal(path, sample() | {"document_id": values})


@pytest.mark.parametrize(
    ("own", "other"), [("y", "label"), ("y", "labels"), ("id", "external_id"), ("doc", "document_id")]
)
def test_the_name_of_a_table_is_an_attribute_beside_the_own_one_alone(path: Path, own: str, other: str) -> None:
    arrays = {NPZ_NAMES[name]: sample()[name] for name in NPZ_NAMES}
    np.savez(path, **arrays, **{other: arrays[own]})
    assert [row[other] for row in read_one(path).attributes] == arrays[own].tolist()
    np.savez(path, **{other if name == own else name: values for name, values in arrays.items()})
    with pytest.raises(InvalidInputError, match=f"array '{other}': expected the name '{own}', got '{other}'; rename"):
        list(read(path))


def test_attributes_are_plain_python(path: Path) -> None:
    extra = {
        "flag": np.arange(ROWS) % 2 == 0,
        "stars": np.arange(ROWS, dtype=np.int8),
        "share": np.linspace(0, 1, ROWS, dtype=np.float16),
        "text": np.array(["é"] * ROWS),
        "pair": np.arange(2 * ROWS, dtype=np.float32).reshape(ROWS, 2),
        "none": np.zeros((ROWS, 0)),
    }
    extra["pair"][1, 1] = np.nan
    second = read_one(write_npz(path, sample() | extra)).attributes[1]
    share = float(extra["share"][1])
    assert second == {
        "group": 1,
        "flag": False,
        "stars": 1,
        "share": share,
        "text": "é",
        "pair": [2.0, None],
        "none": [],
    }
    kinds = {name: type(value) for name, value in second.items()}
    assert kinds == {
        "group": int,
        "flag": bool,
        "stars": int,
        "share": float,
        "text": str,
        "pair": list,
        "none": list,
    }


@pytest.mark.parametrize(
    ("values", "found"),
    [(np.zeros(ROWS - 1), "6 rows"), (np.zeros(ROWS + 1), "8 rows"), (np.float32(3), "a single value")],
)
@pytest.mark.parametrize("name", ["extra", "label"])
def test_an_array_of_another_length(path: Path, name: str, values: Any, found: str) -> None:
    if name == "label":
        values = np.asarray(values).astype(int)
    message = refusal(path, sample() | {name: values})
    assert f"array '{'y' if name == 'label' else name}': expected 7 rows, as many as 'r' has, got {found}" in message


@pytest.mark.parametrize("values", [np.zeros(ROWS, "timedelta64[s]"), np.zeros(ROWS, "S3"), np.zeros(ROWS, "i4,i4")])
def test_an_attribute_of_a_type_json_lacks(path: Path, values: np.ndarray[Any, Any]) -> None:
    assert "array 'when': expected booleans, numbers, dates or texts" in refusal(path, sample() | {"when": values})


@pytest.mark.parametrize(
    ("column", "shape", "expected"),
    [
        (
            "vector",
            (ROWS,),
            "array 'r': expected 4 values per row, got one (shape (7,)); a classifier keeps its classes",
        ),
        ("vector", (ROWS, 2, 2), "array 'r': expected 4 values per row, got 2 x 2 (shape (7, 2, 2))"),
        ("vector", (), "array 'r': expected 4 values per row, got one (shape ())"),
        ("label", (ROWS, 1), "array 'y': expected one value per row, got 1 (shape (7, 1))"),
    ],
)
def test_arrays_of_another_shape(path: Path, column: str, shape: tuple[int, ...], expected: str) -> None:
    values = np.zeros(shape, dtype=sample()[column].dtype)
    assert expected in refusal(path, sample() | {column: values})


def test_a_text_that_utf8_cannot_encode(path: Path) -> None:
    ids = np.array(["\ud800"] * ROWS)
    assert "row 0, id: expected text that UTF-8 can encode" in refusal(path, sample() | {"external_id": ids})


def test_a_text_of_code_points_that_do_not_exist(path: Path) -> None:
    ids = np.full(ROWS, 0x110000, dtype=np.uint32).view("<U1")
    assert "row 0, id: expected text of Unicode code points" in refusal(path, sample() | {"external_id": ids})


def test_a_member_that_is_no_array(path: Path) -> None:
    write_npz(path, sample())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("README.txt", "hello")
    with pytest.raises(InvalidInputError, match=r"README\.txt.*is not an array"):
        list(read(path))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name(path: Path) -> None:
    write_npz(path, sample())
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("r.npy", archive.read("r.npy"))
    with pytest.raises(InvalidInputError, match="two arrays have the same name"):
        list(read(path))


@pytest.mark.parametrize("shape", [(3, DIMENSION), (ROWS + 1, DIMENSION), (10**15, DIMENSION)])
def test_a_header_that_claims_another_size(path: Path, shape: tuple[int, int]) -> None:
    columns = sample()
    with zipfile.ZipFile(path, "w") as archive:
        for name, values, claimed in (("r", columns["vector"], shape), ("f", columns["logits"], (ROWS, 3))):
            with archive.open(f"{name}.npy", "w") as member:
                header = {"descr": "<f4", "fortran_order": False, "shape": claimed}
                np.lib.format.write_array_header_1_0(member, header)
                member.write(values.tobytes())
    with pytest.raises(InvalidInputError, match=r"r\.npy does not have the"):
        list(read(path))


@pytest.mark.parametrize("compressed", [False, True])
def test_a_changed_byte_within_an_array(path: Path, compressed: bool) -> None:
    columns = sample()
    (np.savez_compressed if compressed else np.savez)(path, r=columns["vector"], f=columns["logits"])
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        end = archive.getinfo("f.npy").header_offset
    data[end - 3] ^= 0x10
    path.write_bytes(data)
    with pytest.raises(InvalidInputError, match="truncated or damaged"):
        list(read(path))


def test_the_bundled_data() -> None:
    path = EXAMPLES / "train.npz"
    batches = list(read_exemplars(path, dimension=128, class_count=2, batch_rows=1000))
    assert [len(batch.labels) for batch in batches] == [1000, 1000, 1000, 414]
    assert count_rows(path) == 3414
    with np.load(path) as archive:
        expected = archive["r"].astype(np.float32)
        documents = [str(document) for document in archive["doc"]]
    np.testing.assert_array_equal(np.concatenate([batch.vectors for batch in batches]), expected)
    assert [document for batch in batches for document in batch.document_ids] == documents
    assert batches[3].external_ids[-1] == "train.npz:3413"
