"""States of one's own network, from npz and Parquet, become the shards that were meant; what is wrong is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.layer.states.folders import CLASS_NAMES, ENCODER
from venn_admit.errors import InvalidInputError
from venn_admit.layer.states.conversion import convert_states, holds_states
from venn_admit.layer.states.index import Kind
from venn_admit.layer.states.reader import StateShards

LENGTHS = [3, 1, 2]
STATES = np.arange(24, dtype=np.float32).reshape(6, 4)
TOKENS = ["a", "b", "c", "d", "e", "f"]


def arrays(**changes: Any) -> dict[str, Any]:
    own = {"states": STATES, "lengths": np.array(LENGTHS), "id": np.array(["x", "y", "z"]), "token": np.array(TOKENS)}
    return {name: value for name, value in (own | changes).items() if value is not None}


def rows(**changes: Any) -> list[dict[str, Any]]:
    parts = np.split(STATES, np.cumsum(LENGTHS)[:-1])
    words = np.split(np.array(TOKENS), np.cumsum(LENGTHS)[:-1])
    return [
        {"external_id": name, "states": part.tolist(), "tokens": own.tolist()} | changes
        for name, part, own in zip("xyz", parts, words, strict=True)
    ]


def convert(path: Path, *, kind: Kind = "document", class_names: tuple[str, ...] = CLASS_NAMES) -> StateShards:
    folder = path.with_suffix(".shards")
    convert_states(path, folder, kind=kind, class_names=class_names, encoder=ENCODER, memory_budget=8 << 20)
    return StateShards(folder)


def check(shards: StateShards) -> None:
    found = list(shards.documents())
    assert [document.external_id for document in found] == ["x", "y", "z"]
    np.testing.assert_array_equal(np.concatenate([document.states for document in found]), STATES)
    assert [token for document in found for token in document.tokens] == TOKENS
    assert (shards.encoder, shards.class_names) == (ENCODER, CLASS_NAMES)


@pytest.mark.parametrize("labels", [[1, 0, -1], ["yes", "no", ""], [1.0, 0.0, float("nan")]])
def test_documents_of_npz(tmp_path: Path, labels: list[Any]) -> None:
    path = tmp_path / "states.npz"
    np.savez(path, **arrays(y=np.array(labels), stars=np.array([5, 1, 3])))
    assert holds_states(path)
    shards = convert(path)
    check(shards)
    assert shards.labels.tolist() == [1, 0, -1]
    assert [document.attributes for document in shards.documents()] == [{"stars": 5}, {"stars": 1}, {"stars": 3}]


def test_tokens_of_npz(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "states.npz", **arrays(token_y=np.array([0, -2, 1, -1, 1, 0])))
    shards = convert(tmp_path / "states.npz", kind="token")
    check(shards)
    labels = [document.token_labels for document in shards.documents()]
    assert np.concatenate([own for own in labels if own is not None]).tolist() == [0, -2, 1, -1, 1, 0]


@pytest.mark.parametrize("kind", ["document", "token"])
def test_parquet(tmp_path: Path, kind: Kind) -> None:
    path = tmp_path / "states.parquet"
    table = rows(label="yes", lang="en")
    for row in table:
        row["token_labels"] = [1] * len(row["states"])
        row.pop("label" if kind == "token" else "token_labels")
    pq.write_table(pa.Table.from_pylist(table), path)
    assert holds_states(path)
    shards = convert(path, kind=kind)
    check(shards)
    for document in shards.documents():
        assert document.attributes == {"lang": "en"}
        if kind == "token":
            assert document.token_labels is not None
            assert set(document.token_labels.tolist()) == {1}
        else:
            assert document.label == 1


def test_other_files_hold_no_states(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["a"]}), tmp_path / "texts.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    for name in ("texts.parquet", "broken.parquet", "texts.csv", "missing.parquet"):
        assert not holds_states(tmp_path / name)


NAN = STATES.copy()
NAN[4, 1] = np.nan
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no lengths": ({"lengths": None}, "arrays: expected one named 'lengths', got 'states', 'id', 'token'"),
    "lengths that lie": ({"lengths": np.array([3, 1, 9])}, "array 'lengths': expected at least 1 each, 6 in all"),
    "negative lengths": ({"lengths": np.array([7, -3, 2])}, "array 'lengths': expected at least 1 each"),
    "lengths that overflow": ({"lengths": np.array([2**62, 2**62, 6 - 2**62])}, "array 'lengths': expected at least 1"),
    "lengths of another type": ({"lengths": np.array([3.0, 1.0, 2.0])}, "array 'lengths': expected one integer"),
    "a NaN": ({"states": NAN}, r"row 2, states\[0, 1\]: expected a finite number that float32 can hold, got nan"),
    "a number too large": ({"states": np.full((6, 4), 1e300)}, "expected a finite number that float32 can hold"),
    "integers": ({"states": STATES.astype(int)}, "array 'states': expected float16, float32 or float64 of shape"),
    "one dimension": ({"states": np.ones(6)}, "array 'states': expected float16, float32 or float64 of shape"),
    "columns first": ({"states": np.asfortranarray(np.ones((6, 200_000)))}, "array 'states', a document: expected at"),
    "objects": ({"note": np.array([{}, {}, {}])}, r"array 'note': expected 3 numbers or texts \(dtype U\)"),
    "rows of another number": ({"note": np.ones(5)}, "array 'note': expected 3 numbers or texts"),
    "labels of tokens": ({"token_y": np.zeros(6, int)}, "arrays: expected none named 'token_y', got one; labels of e"),
    "a label that is no class": ({"y": np.array([0, 1, 2])}, r"row 2, y: expected a class number 0\.\.1"),
    "a document too long": (
        {"states": np.zeros((6, 300_000), np.float16)},
        "array 'states', a document: expected at most 1,048,576 bytes of memory",
    ),
    "an id twice": ({"id": np.array(["x", "x", "z"])}, "document 'x': expected every id once, got it twice"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_npz_that_is_wrong_is_refused(tmp_path: Path, name: str) -> None:
    changes, said = REFUSED[name]
    np.savez(tmp_path / "states.npz", **arrays(**changes))
    with pytest.raises(InvalidInputError, match=said):
        convert(tmp_path / "states.npz")


TABLES: dict[str, tuple[dict[str, Any], str]] = {
    "no lists": ({"states": "text"}, "row 0, states: expected T lists of H numbers each"),
    "lists of several lengths": ({"states": [[1.0, 2.0], [3.0]]}, "row 0, states: expected T lists of H numbers each"),
    "nothing": ({"states": None}, "row 0, states: expected T lists of H numbers each"),
    "a null in a list": ({"states": [[1.0, None]]}, "expected a finite number"),
    "too few tokens": ({"tokens": ["a"] * 7}, "tokens: expected none or 3, got 7"),
    "a label that is no class": ({"label": "maybe"}, "row 0, label: expected a class number"),
    "labels of tokens": (
        {"token_labels": [0, 1, 0]},
        "columns: expected none named 'token_labels', got one; labels of",
    ),
    "labels of both": ({"label": 1, "token_labels": [0]}, "columns: expected none named 'token_labels', got one"),
    "tokens that are a number": (
        {"tokens": 3},
        "row 0, tokens: expected a list of texts, one for each token, got a",
    ),
    "tokens that are a text": (
        {"tokens": "abc"},
        "row 0, tokens: expected a list of texts, one for each token, got a",
    ),
}
TOKEN_TABLES: dict[str, tuple[dict[str, Any], str]] = {
    "labels of documents": (
        {"label": "yes"},
        "columns: expected none named 'label', got one; labels of each",
    ),
    "labels of both": ({"label": 1, "token_labels": [0]}, "columns: expected none named 'label', got one"),
    "a number": (
        {"token_labels": 1},
        "row 0, token_labels: expected a list of class numbers, one for each token",
    ),
    "a text": ({"token_labels": "yes"}, "row 0, token_labels: expected a list of class numbers, one for each token"),
}


@pytest.mark.parametrize("name", TABLES)
def test_parquet_that_is_wrong_is_refused(tmp_path: Path, name: str) -> None:
    changes, said = TABLES[name]
    pq.write_table(pa.Table.from_pylist(rows(**changes)), tmp_path / "states.parquet")
    with pytest.raises(InvalidInputError, match=said):
        convert(tmp_path / "states.parquet")


@pytest.mark.parametrize("name", TOKEN_TABLES)
def test_parquet_whose_labels_of_tokens_are_wrong_is_refused(tmp_path: Path, name: str) -> None:
    changes, said = TOKEN_TABLES[name]
    pq.write_table(pa.Table.from_pylist(rows(**changes)), tmp_path / "states.parquet")
    with pytest.raises(InvalidInputError, match=said):
        convert(tmp_path / "states.parquet", kind="token")


def test_states_need_the_names_of_the_classes(tmp_path: Path) -> None:
    np.savez(tmp_path / "states.npz", **arrays())
    with pytest.raises(InvalidInputError, match="expected the names of the classes beside states, got none; name them"):
        convert(tmp_path / "states.npz", class_names=())


def test_a_file_that_is_damaged_is_refused(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "states.npz", **arrays())
    path = tmp_path / "states.npz"
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(InvalidInputError, match="expected a readable npz file"):
        convert(path)
