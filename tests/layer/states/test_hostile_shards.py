"""Folders made to be read wrongly are refused with the error for bad input, and with what is wrong."""

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from tests.layer.states.folders import write
from venn_admit.errors import InvalidInputError
from venn_admit.layer.states.reader import StateShards

Tensors = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "states", 6)
    return tmp_path / "states"


def rewrite_index(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "index.json"
    index = json.loads(path.read_text())
    change(index)
    path.write_text(json.dumps(index))


def write_first(folder: Path, content: bytes) -> None:
    """Replace the first shard, and let the index say so."""
    (folder / "shard-00000.safetensors").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    rewrite_index(folder, lambda index: index["shards"][0].update(sha256=digest))


def retensor(folder: Path, change: Callable[[Tensors], object]) -> None:
    tensors = load_file(folder / "shard-00000.safetensors")
    tensors = {name: value.copy() for name, value in tensors.items()}
    change(tensors)
    write_first(folder, save(tensors))


def read_all(folder: Path) -> None:
    shards = StateShards(folder)
    assert shards.external_ids
    for _ in shards.documents():
        pass


def set_states(value: float) -> Callable[[Tensors], None]:
    def change(tensors: Tensors) -> None:
        tensors["states"][3, 2] = value

    return change


def replacing(name: str, make: Callable[[Any], Any]) -> Callable[[Tensors], None]:
    def change(tensors: Tensors) -> None:
        tensors[name] = make(tensors[name])

    return change


def with_first(name: str, place: int, value: int) -> Callable[[Tensors], None]:
    def change(tensors: Tensors) -> None:
        tensors[name][place] = value

    return change


TENSORS: dict[str, tuple[Callable[[Tensors], object], str]] = {
    "a NaN": (set_states(float("nan")), r"states\[3, 2\]: expected a finite number, got nan"),
    "an infinity": (set_states(float("inf")), r"states\[3, 2\]: expected a finite number, got inf"),
    "another width": (replacing("states", lambda states: states[:, :5].copy()), "tensor 'states': expected F16 of sh"),
    "another type": (replacing("states", lambda states: states.astype(np.float32)), "got F32 of shape"),
    "no states": (lambda tensors: tensors.pop("states"), "tensors: expected one named 'states', got 'id_offsets'"),
    "no labels": (lambda tensors: tensors.pop("labels"), "tensors: expected one named 'labels'"),
    "offsets that go back": (with_first("offsets", 1, 10**6), "tensor 'offsets': expected ascending numbers from 0"),
    "offsets that overflow": (with_first("offsets", 1, -(2**63)), "tensor 'offsets': expected ascending numbers"),
    "offsets that begin late": (with_first("offsets", 0, 1), "tensor 'offsets': expected ascending numbers"),
    "offsets of no token": (lambda tensors: with_first("offsets", 1, tensors["offsets"][2])(tensors), "ascending"),
    "offsets of bytes that lie": (with_first("record_offsets", -1, 10**9), "tensor 'record_offsets': expected asc"),
    "offsets of another type": (replacing("id_offsets", lambda o: o.astype(np.int32)), "expected I64 of shape"),
    "too few offsets": (replacing("offsets", lambda offsets: offsets[:-1].copy()), "tensor 'offsets': expected I64"),
    "a label that is no class": (with_first("labels", 0, 2), r"labels\[0\]: expected -1\.\.1, got 2"),
    "ids that are no text": (with_first("ids", 0, 0xFF), "expected a readable ids, got UnicodeDecodeError"),
    "a record that is no JSON": (with_first("records", 0, ord("[")), r"records, row 0: expected \{\"tokens\""),
    "ids of two dimensions": (replacing("ids", lambda ids: ids[:, None].copy()), "tensor 'ids': expected U8 of shape"),
}


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_that_are_wrong_are_refused(folder: Path, name: str) -> None:
    change, said = TENSORS[name]
    retensor(folder, change)
    with pytest.raises(InvalidInputError, match=said):
        read_all(folder)


def shortened(content: bytes) -> bytes:
    return content[:-100]


def long_header(content: bytes) -> bytes:
    length = int.from_bytes(content[:8], "little")
    padding = b" " * (1 << 17)
    return struct.pack("<Q", length + len(padding)) + content[8 : 8 + length] + padding + content[8 + length :]


def header_beyond_the_file(content: bytes) -> bytes:
    return struct.pack("<Q", 60_000) + content[8:4000]


def tensors_that_overlap(content: bytes) -> bytes:
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["ids"]["data_offsets"] = header["records"]["data_offsets"]
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content[8 + length :]


BYTES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "truncated": (shortened, "expected a readable safetensors file, got SafetensorError"),
    "empty": (lambda _: b"", "expected a readable safetensors file, got SafetensorError"),
    "a huge header": (long_header, "header: expected at most 65,536 bytes, got"),
    "a header of exabytes": (lambda content: b"\xff" * 8 + content[8:], "header: expected at most 65,536 bytes, got"),
    "a header beyond the file": (header_beyond_the_file, "expected a readable safetensors file, got SafetensorError"),
    "overlapping tensors": (tensors_that_overlap, "expected a readable safetensors file, got SafetensorError"),
    "a pickle": (lambda _: b"\x80\x04\x95" + bytes(5) + b"cos\nsystem\n", "header: expected at most 65,536 bytes, got"),
}


@pytest.mark.parametrize("name", BYTES)
def test_files_that_are_no_shards_are_refused(folder: Path, name: str) -> None:
    change, said = BYTES[name]
    write_first(folder, change((folder / "shard-00000.safetensors").read_bytes()))
    with pytest.raises(InvalidInputError, match=said):
        read_all(folder)


def test_a_shard_that_was_changed_is_refused(folder: Path) -> None:
    path = folder / "shard-00000.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match="expected the content that the index names, SHA-256"):
        read_all(folder)


def test_a_shard_that_changes_after_it_was_opened_is_refused(folder: Path) -> None:
    shards = StateShards(folder)
    path = next(folder.glob("shard-*"))
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:-1] + b"!")
    with pytest.raises(InvalidInputError, match="expected the file as it was opened, got a changed one"):
        list(shards.documents())


def test_a_shard_that_is_missing_is_named(folder: Path) -> None:
    (folder / "shard-00000.safetensors").unlink()
    with pytest.raises(InvalidInputError, match=r"shard-00000\.safetensors: expected a file, got no such file"):
        read_all(folder)


INDEXES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a path as a shard": (
        lambda index: index["shards"][0].update(file="../../shard-00000.safetensors"),
        r"shards\.0\.file: expected the index of a folder of states",
    ),
    "counts that do not add up": (lambda index: index.update(tokens=10**12), "tokens: it names 1,000,000,000,000, its"),
    "another format": (lambda index: index.update(format="other"), "format: expected the index"),
    "a later version": (lambda index: index.update(version=2), "version: expected the index"),
    "no shards": (lambda index: index.update(shards=[], documents=0, tokens=0), "shards: expected at least one, got 0"),
    "a width of text": (lambda index: index.update(width="6"), "width: expected the index"),
    "a shard named twice": (
        lambda index: index.update(
            shards=index["shards"] * 2, documents=index["documents"] * 2, tokens=index["tokens"] * 2
        ),
        "shards: a file is named twice",
    ),
    "counts that lie": (
        lambda index: (
            index["shards"][0].update(documents=10**9),
            index.update(documents=index["documents"] - 6 + 10**9),
        ),
        "tensor",
    ),
}


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_that_is_wrong_is_refused(folder: Path, name: str) -> None:
    change, said = INDEXES[name]
    rewrite_index(folder, change)
    with pytest.raises(InvalidInputError, match=said):
        read_all(folder)


@pytest.mark.parametrize("content", ["", "{", "[1]", "\0"])
def test_an_index_that_is_no_json_is_refused(folder: Path, content: str) -> None:
    (folder / "index.json").write_text(content)
    with pytest.raises(InvalidInputError, match="expected the index of a folder of states"):
        read_all(folder)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"index\.json: expected a file, got no such file"):
        StateShards(tmp_path / "nowhere")
