"""One shard: a safetensors file with the states of some documents, and what is known of them.

The tensors of n documents with T tokens are

- `states` (T, H) float16 or float32, one document after the other;
- `offsets` (n + 1,) int64, where each begins and the last ends: 0 first, T last, ascending;
- `labels` (n,) int64, or `token_labels` (T,) int64 where tokens are labelled; see `StateDocument`;
- `ids` (bytes,) uint8 and `id_offsets` (n + 1,) int64: the ids in UTF-8, one after the other;
- `records` (bytes,) uint8 and `record_offsets` (n + 1,) int64: for each document a JSON object
  `{"tokens": [...], "attributes": {...}}`.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from venn_admit.core.types import UNKNOWN_LABEL, Float32Array, IntArray
from venn_admit.errors import InvalidInputError
from venn_admit.files.inputs import check_is_file, input_error, reading
from venn_admit.files.output.atomic import replacing, writing
from venn_admit.layer.states.index import NOT_A_WORD, TOKENS_CUT, ShardEntry, StateDocument, StatesIndex

_HEADER_BYTES = 1 << 16
_DTYPES = {"float16": "F16", "float32": "F32"}
_ADVICE = "write the states again, or copy the folder again"


def write_shard(path: Path, documents: Sequence[StateDocument], index: StatesIndex) -> ShardEntry:
    """Write a shard, atomically, and return its entry of the index."""
    lengths = [len(document.states) for document in documents]
    ids, id_offsets = _packed([document.external_id.encode() for document in documents])
    records, record_offsets = _packed([_record(document) for document in documents])
    tensors: dict[str, npt.NDArray[Any]] = {
        "states": np.concatenate([document.states for document in documents], dtype=index.dtype, casting="same_kind"),
        "offsets": _offsets(lengths),
        "ids": ids,
        "id_offsets": id_offsets,
        "records": records,
        "record_offsets": record_offsets,
    }
    if index.kind == "token":
        labelled = [document.token_labels for document in documents if document.token_labels is not None]
        tensors["token_labels"] = np.concatenate(labelled, dtype=np.int64)
    else:
        tensors["labels"] = np.array([document.label for document in documents], np.int64)
    content = save(tensors)
    with replacing(path) as file, writing(path):
        file.write(content)
    digest = hashlib.sha256(content).hexdigest()
    cut = sum(TOKENS_CUT in document.attributes for document in documents)
    return ShardEntry(file=path.name, sha256=digest, documents=len(documents), tokens=sum(lengths), cut=cut)


class Shard:
    """A shard opened for reading: its states stay in the file.

    They are read, not mapped: of a mapping, what was touched would count as memory of the process. All else is mapped.

    Attributes:
        labels: (n,) int64, -1 throughout where tokens are labelled.
    """

    def __init__(self, path: Path, entry: ShardEntry, index: StatesIndex) -> None:
        """Open a file and check all of it, its numbers excepted, which are checked as they are read."""
        self._path, self._label_limit = path, index.label_limit
        check_is_file(path)
        found = _check_content(path, entry)
        with reading(path, "safetensors file", SafetensorError):
            file: Any = safe_open(path, framework="numpy")
            self._tensors = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        rows, tokens = entry.documents, entry.tokens
        self._expect("states", _DTYPES[index.dtype], (tokens, index.width))
        self._states = _StatesFile(path, found, np.dtype(index.dtype), index.width)
        self.offsets = self._read_offsets("offsets", rows, tokens)
        self._id_offsets = self._read_offsets("id_offsets", rows, self._expect("ids", "U8", None))
        self._record_offsets = self._read_offsets("record_offsets", rows, self._expect("records", "U8", None))
        self._has_token_labels = index.kind == "token"
        if self._has_token_labels:
            self._expect("token_labels", "I64", (tokens,))
            self.labels: IntArray = np.full(rows, UNKNOWN_LABEL, np.int64)
        else:
            self._expect("labels", "I64", (rows,))
            self.labels = self._slice("labels", 0, rows)
            self._check_labels("labels", 0, self.labels, UNKNOWN_LABEL)

    def external_ids(self) -> list[str]:
        """Return the ids of all documents. InvalidInputError if one is not UTF-8."""
        content = self._slice("ids", 0, int(self._id_offsets[-1])).tobytes()
        bounds = self._id_offsets.tolist()
        with reading(self._path, "ids", UnicodeDecodeError):
            return [content[start:end].decode() for start, end in pairwise(bounds)]

    def document(self, row: int, label: int) -> StateDocument:
        """Return a document with this label, whose numbers are checked as it is read."""
        start, end = (int(bound) for bound in self.offsets[row : row + 2])
        states: Float32Array = self._states.rows(start, end).astype(np.float32, copy=False)
        if not np.isfinite(states).all():
            token, position = (int(place) for place in np.argwhere(~np.isfinite(states))[0])
            where = f"states[{start + token}, {position}]"
            raise input_error(self._path, where, "a finite number", states[token, position])
        token_labels = None
        if self._has_token_labels:
            token_labels = self._slice("token_labels", start, end)
            self._check_labels("token_labels", start, token_labels, NOT_A_WORD)
        tokens, attributes = self._read_record(row, end - start)
        return StateDocument(
            external_id=self._text("ids", self._id_offsets, row),
            states=states,
            label=label,
            token_labels=token_labels,
            tokens=tokens,
            attributes=attributes,
        )

    def attributes(self, row: int) -> dict[str, object]:
        """Return the attributes of a document, without its states."""
        return self._read_record(row, int(self.offsets[row + 1] - self.offsets[row]))[1]

    def tokens(self, row: int) -> tuple[str, ...]:
        """Return the texts of the tokens of a document, without its states."""
        return self._read_record(row, int(self.offsets[row + 1] - self.offsets[row]))[0]

    def _read_record(self, row: int, token_count: int) -> tuple[tuple[str, ...], dict[str, object]]:
        text = self._text("records", self._record_offsets, row)
        try:
            record = json.loads(text)
            tokens, attributes = record["tokens"], record["attributes"]
            right = isinstance(attributes, dict) and len(tokens) in (0, token_count)
            right = right and isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)
        except (ValueError, KeyError, TypeError, RecursionError):
            right = False
        if not right:
            expected = f'{{"tokens": [none or {token_count:,} texts], "attributes": {{...}}}}'
            raise input_error(self._path, f"records, row {row}", expected, ascii(text[:80]), _ADVICE)
        return tuple(tokens), attributes

    def _text(self, name: str, offsets: IntArray, row: int) -> str:
        with reading(self._path, f"row of {name}", UnicodeDecodeError):
            return self._slice(name, int(offsets[row]), int(offsets[row + 1])).tobytes().decode()

    def _slice(self, name: str, start: int, end: int) -> npt.NDArray[Any]:
        values: npt.NDArray[Any] = self._tensors[name][start:end]
        return values

    def _expect(self, name: str, dtype: str, shape: tuple[int, ...] | None) -> int:
        """Return the length of a tensor; InvalidInputError unless it has the type and shape, or one dimension."""
        if name not in self._tensors:
            got = ", ".join(map(ascii, sorted(self._tensors))) or "none"
            raise input_error(self._path, "tensors", f"one named {name!r}", got, _ADVICE)
        found = tuple(self._tensors[name].get_shape())
        kind = self._tensors[name].get_dtype()
        if kind != dtype or (found != shape if shape is not None else len(found) != 1):
            expected = f"{dtype} of shape {shape or '(bytes,)'}"
            raise input_error(self._path, f"tensor {name!r}", expected, f"{kind} of shape {found}", _ADVICE)
        return int(found[0])

    def _read_offsets(self, name: str, rows: int, last: int) -> IntArray:
        self._expect(name, "I64", (rows + 1,))
        offsets = self._slice(name, 0, rows + 1)
        # Ends first: within them no difference can overflow.
        inside = offsets[0] == 0 and offsets[-1] == last and offsets.min() == 0 and offsets.max() == last
        if not inside or (np.diff(offsets) < 1).any():
            expected = f"ascending numbers from 0 to {last:,}"
            raise input_error(self._path, f"tensor {name!r}", expected, "others", _ADVICE)
        return offsets

    def _check_labels(self, name: str, first: int, labels: IntArray, least: int) -> None:
        outside = (labels < least) | (labels >= self._label_limit)
        if outside.any():
            place = int(outside.argmax())
            expected = f"{least}..{self._label_limit - 1}"
            raise input_error(self._path, f"{name}[{first + place}]", expected, int(labels[place]), _ADVICE)


class _StatesFile:
    """The states of a shard, in a file that must stay the one that was checked."""

    def __init__(self, path: Path, found: os.stat_result, dtype: np.dtype[Any], width: int) -> None:
        self._path, self._found, self._dtype, self._width = path, _identity(found), dtype, width
        with reading(path, "safetensors file"), path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length))
        self._start = 8 + length + header["states"]["data_offsets"][0]

    def rows(self, start: int, end: int) -> npt.NDArray[Any]:
        """Read the states of some tokens, (end - start, width). InvalidInputError if the file was changed."""
        values = np.empty((end - start, self._width), self._dtype)
        with reading(self._path, "safetensors file"), self._path.open("rb", buffering=0) as file:
            same = _identity(os.fstat(file.fileno())) == self._found
            file.seek(self._start + start * self._width * self._dtype.itemsize)
            whole = same and file.readinto(values.data.cast("B")) == values.nbytes
        if not whole:
            raise InvalidInputError(
                f"{self._path}: expected the file as it was opened, got a changed one; leave the folder alone while it "
                "is read, and run this again"
            )
        return values


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _check_content(path: Path, entry: ShardEntry) -> os.stat_result:
    """Raise InvalidInputError at a header that is too long, or at content other than the index names."""
    with reading(path, "safetensors file"), path.open("rb") as file:
        found = os.fstat(file.fileno())
        length = int.from_bytes(file.read(8), "little")
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if length > _HEADER_BYTES:
        raise input_error(path, "header", f"at most {_HEADER_BYTES:,} bytes", f"{length:,}", _ADVICE)
    if digest != entry.sha256:
        raise InvalidInputError(
            f"{path}: expected the content that the index names, SHA-256 {entry.sha256[:16]}..., got {digest[:16]}...; "
            f"the file was changed, or copied in part: {_ADVICE}"
        )
    return found


def _record(document: StateDocument) -> bytes:
    record = {"tokens": list(document.tokens), "attributes": dict(document.attributes)}
    return json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _packed(parts: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], IntArray]:
    return np.frombuffer(b"".join(parts), np.uint8), _offsets([len(part) for part in parts])


def _offsets(lengths: Sequence[int]) -> IntArray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
