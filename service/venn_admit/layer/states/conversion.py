"""Conversion of states that users computed, in npz or Parquet, to a folder of shards.

An npz has the arrays `states` (sum of T, H) float16, float32 or float64, the states of all documents one after the
other; `lengths` (n,) integers, T of each document; optionally `y` (n,), the labels of documents, or `token_y` (sum of
T,), those of tokens, class numbers with -1 if unknown, and -2 for a token that is no exemplar; `id` (n,), texts or
integers; `token` (sum of T,), texts; and any other array of length n, kept as an attribute of that name.

A Parquet file has a row for each document, with the columns `states`, a list of T lists of H floats; optionally
`external_id`; `label`, or `token_labels`, a list of T; `tokens`, a list of T texts; any other column is an attribute.

Either format has labels of documents or of tokens: a file with both is refused. Either may have `token_logits`, the L
logits of the network at each token: (sum of T, L) in npz, T lists of L in Parquet. They are read only where the memory
layer takes them, and then follow each state.
"""

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.types import UNKNOWN_LABEL, Float32Array, IntArray
from venn_admit.errors import InvalidInputError
from venn_admit.files.arrow.types import DAMAGE as PARQUET_DAMAGE
from venn_admit.files.arrow.types import to_list
from venn_admit.files.inputs import batch_bytes, input_error, reading, too_large
from venn_admit.files.label_values import ClassNumbers
from venn_admit.files.npz.archive import DAMAGE, StoredArray, open_arrays
from venn_admit.files.parquet.footer import read_footer
from venn_admit.files.parquet.reader import batches_within, read_rows
from venn_admit.files.records import Attributes, plain_attributes
from venn_admit.layer.states.index import NOT_A_WORD, EncoderIdentity, Kind, StateDocument
from venn_admit.layer.states.side_logits import SIDE_LOGITS, followed_by_logits
from venn_admit.layer.states.writer import ShardWriter
from venn_admit_client.naming import type_text

_BATCH_ROWS = 64
_BY_TOKEN = ("states", "token", "token_y", SIDE_LOGITS)
_LABEL_ARRAYS: dict[Kind, str] = {"document": "y", "token": "token_y"}
_LABEL_COLUMNS: dict[Kind, str] = {"document": "label", "token": "token_labels"}


def holds_states(path: Path) -> bool:
    """Return whether a file is one of states, rather than of texts: an npz, or a Parquet file with states."""
    ending = path.suffix.lower()
    if ending != ".parquet" or not path.is_file():
        return ending == ".npz"
    with suppress(InvalidInputError):  # the reader of texts says what is wrong
        return "states" in _names(path)
    return False


def labelled_in(path: Path) -> frozenset[Kind]:
    """Return what a file of states labels: documents, tokens, or neither; nothing for another or a damaged file."""
    by_kind = _LABEL_ARRAYS if path.suffix.lower() == ".npz" else _LABEL_COLUMNS
    if holds_states(path):
        with suppress(InvalidInputError):  # the reader of the file says what is wrong
            names = _names(path)
            return frozenset(kind for kind, name in by_kind.items() if name in names)
    return frozenset()


def has_ids(path: Path, *, memory_budget: int) -> bool:
    """Return whether a file of states has ids; otherwise they follow from its name."""
    return ("id" if path.suffix.lower() == ".npz" else "external_id") in _names(path, memory_budget)


def _names(path: Path, memory_budget: int = DEFAULT_MEMORY_BUDGET) -> set[str]:
    """The names of arrays or columns."""
    if path.suffix.lower() == ".npz":
        with open_arrays(path) as arrays:
            return set(arrays)
    return set(read_footer(path, memory_budget).schema.names)


def document_ids(path: Path, *, kind: Kind, memory_budget: int = DEFAULT_MEMORY_BUDGET) -> Iterator[str]:
    """Yield the id of each document of a file of states, in order; no states are read."""
    if path.suffix.lower() == ".npz":
        with open_arrays(path) as arrays:
            lengths = _npz_lengths(path, arrays, memory_budget)
            _check_npz(path, arrays, lengths, kind, memory_budget)
            given = arrays.get("id")
            for row in range(len(lengths)):
                yield _default_id(path, row) if given is None else str(given.take(1).tolist()[0])
        return
    footer = read_footer(path, memory_budget)
    if "external_id" not in footer.schema.names:
        yield from (_default_id(path, row) for row in range(footer.row_count))
        return
    for batch in batches_within(path, footer, ["external_id"], _BATCH_ROWS, memory_budget):
        with reading(path, "parquet file", *PARQUET_DAMAGE):
            ids = to_list(batch.column(0))
        yield from map(str, ids)


def _default_id(path: Path, row: int) -> str:
    return f"{path.stem}:{row}"


def convert_states(
    path: Path,
    folder: Path,
    *,
    kind: Kind,
    class_names: Sequence[str],
    encoder: EncoderIdentity,
    source: str = "",
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> None:
    """Read a file of states, and write a folder of shards; a run that was interrupted goes on.

    Raises:
        InvalidInputError: The file is invalid; the message names the row, what was expected and received.
    """
    if not class_names:
        raise InvalidInputError(f"{path}: expected the names of the classes beside states, got none; name them")
    read = _npz_documents if path.suffix.lower() == ".npz" else _parquet_documents
    documents = read(path, kind, ClassNumbers(len(class_names), class_names), encoder.side_logits, memory_budget)
    first = next(documents)
    writer = ShardWriter(
        folder,
        kind=kind,
        width=first.states.shape[1],
        class_names=class_names,
        encoder=encoder,
        dtype="float32",
        source=source,
        memory_budget=memory_budget,
    )
    with writer as shards:
        skipped = shards.written
        if not skipped:
            shards.append(first)
        for row, document in enumerate(documents, start=1):
            if row >= skipped:
                shards.append(document)


def _npz_documents(
    path: Path, kind: Kind, classes: ClassNumbers, side_logits: int, memory_budget: int
) -> Iterator[StateDocument]:
    with open_arrays(path) as arrays:
        lengths = _npz_lengths(path, arrays, memory_budget)
        _check_npz(path, arrays, lengths, kind, memory_budget)
        states, token, token_y, logits = (arrays.pop(name, None) for name in _BY_TOKEN)
        assert states is not None, "checked above"
        for row, length in enumerate(lengths.tolist()):
            place = f"row {row}"
            with reading(path, "npz file", *DAMAGE):
                one = {name: array.take(1).tolist()[0] for name, array in arrays.items()}
                texts = () if token is None else tuple(map(str, token.take(length).tolist()))
            external_id = str(one.pop("id", _default_id(path, row)))
            beside = None if logits is None else logits.take(length)
            own = followed_by_logits(path, place, states.take(length), beside, side_logits)
            label = _numbers(path, f"{place}, y", classes, [one.pop("y", None)])
            token_labels = None
            if kind == "token":
                given = np.full(length, UNKNOWN_LABEL) if token_y is None else token_y.take(length)
                token_labels = _token_numbers(path, f"{place}, token_y", classes, given.tolist())
            yield StateDocument(
                external_id=external_id,
                states=_as_states(path, place, own),
                label=UNKNOWN_LABEL if kind == "token" else int(label[0]),
                token_labels=token_labels,
                tokens=texts,
                attributes=plain_attributes(path, row, one),
            )


def _npz_lengths(path: Path, arrays: dict[str, StoredArray], memory_budget: int) -> IntArray:
    for name in ("states", "lengths"):
        if name not in arrays:
            raise input_error(path, "arrays", f"one named {name!r}", ", ".join(map(repr, arrays)) or "none")
    found = arrays.pop("lengths")
    if found.dtype.kind not in "iu" or len(found.shape) != 1 or not found.shape[0]:
        raise input_error(path, "array 'lengths'", "one integer a document", f"{found.dtype} of shape {found.shape}")
    if found.size > batch_bytes(memory_budget):
        raise too_large(path, "array 'lengths'", batch_bytes(memory_budget), found.size, "divide the file into several")
    lengths = found.take(found.shape[0]).astype(np.float64)  # in which no sum overflows
    total = arrays["states"].shape[0] if arrays["states"].shape else 0
    if lengths.min() < 1 or lengths.sum() != total:
        got = f"{int(lengths.min())} at least, {int(lengths.sum()):,} in all"
        raise input_error(path, "array 'lengths'", f"at least 1 each, {total:,} in all, as 'states' has", got)
    return lengths.astype(np.int64)


def _check_npz(path: Path, arrays: dict[str, StoredArray], lengths: IntArray, kind: Kind, memory_budget: int) -> None:
    """Raise InvalidInputError if a header shows that an array is not as the module says, or too large."""
    states = arrays["states"]
    if states.dtype.kind != "f" or states.dtype.itemsize > 8 or len(states.shape) != 2 or not states.shape[1]:
        expected = "float16, float32 or float64 of shape (sum of the lengths, H)"
        raise input_error(path, "array 'states'", expected, f"{states.dtype} of shape {states.shape}")
    limit, longest = batch_bytes(memory_budget), int(lengths.max())
    for name, array in arrays.items():
        rows = longest if name in _BY_TOKEN else 1
        held = array.size if array.column_major else rows * math.prod(array.shape[1:]) * max(array.dtype.itemsize, 8)
        if held > limit:
            advice = "divide long documents, and save arrays by rows, by np.ascontiguousarray"
            raise too_large(path, f"array {name!r}, a document", limit, held, advice)
    _check_labels(path, "arrays", arrays, kind, _LABEL_ARRAYS)
    for name, array in arrays.items():
        rows = len(states.shape) and (states.shape[0] if name in _BY_TOKEN else len(lengths))
        if array.dtype.hasobject or array.dtype.kind not in "biufU" or array.shape[:1] != (rows,):
            got = f"{array.dtype} of shape {array.shape}"
            raise input_error(path, f"array {name!r}", f"{rows:,} numbers or texts (dtype U)", got)


def _check_labels(path: Path, where: str, names: Container[str], kind: Kind, by_kind: Mapping[Kind, str]) -> None:
    """Raise InvalidInputError if there are labels of the other kind, which would be lost."""
    unwanted = by_kind["token" if kind == "document" else "document"]
    if unwanted in names:
        advice = f"labels of each {kind} are in {by_kind[kind]!r}: rename or leave out {unwanted!r}"
        raise input_error(path, where, f"none named {unwanted!r}", "one", advice)


def _parquet_documents(
    path: Path, kind: Kind, classes: ClassNumbers, side_logits: int, memory_budget: int
) -> Iterator[StateDocument]:
    row = -1
    for row, values in enumerate(read_rows(path, _BATCH_ROWS, memory_budget)):
        yield _table_document(path, row, values, kind, classes, side_logits)
    if row < 0:
        raise input_error(path, "table", "at least one row", 0)


def _table_document(
    path: Path, row: int, values: Attributes, kind: Kind, classes: ClassNumbers, side_logits: int
) -> StateDocument:
    place = f"row {row}"
    _check_labels(path, "columns", values, kind, _LABEL_COLUMNS)
    try:
        states = np.array(values.pop("states"), np.float64)
    except (TypeError, ValueError):
        states = np.empty(0)
    if states.ndim != 2 or not states.size:
        raise input_error(path, f"{place}, states", "T lists of H numbers each", "others")
    states = followed_by_logits(path, place, states, values.pop(SIDE_LOGITS, None), side_logits)
    external_id = values.pop("external_id", _default_id(path, row))
    label = values.pop("label", None)
    token_labels = _list(path, f"{place}, token_labels", values.pop("token_labels", None), "class numbers")
    tokens = _list(path, f"{place}, tokens", values.pop("tokens", None), "texts") or ()
    given = [UNKNOWN_LABEL] * len(states) if token_labels is None else token_labels
    return StateDocument(
        external_id=str(external_id),
        states=_as_states(path, place, states),
        label=int(_numbers(path, f"{place}, label", classes, [label])[0]) if kind == "document" else UNKNOWN_LABEL,
        token_labels=_token_numbers(path, f"{place}, token_labels", classes, given) if kind == "token" else None,
        tokens=tuple(map(str, tokens)),
        attributes=plain_attributes(path, row, values),
    )


def _list(path: Path, where: str, value: object, of: str) -> list[object] | None:
    """A list, or None for none. A text is no list of its characters."""
    if value is None or isinstance(value, list):
        return value
    raise input_error(path, where, f"a list of {of}, one for each token", type_text(value))


def _as_states(path: Path, place: str, values: npt.NDArray[Any]) -> Float32Array:
    with np.errstate(over="ignore"):
        states: Float32Array = values.astype(np.float32)
    finite = np.isfinite(states)
    if not finite.all():
        token, position = (int(index) for index in np.argwhere(~finite)[0])
        where = f"{place}, states[{token}, {position}]"
        raise input_error(path, where, "a finite number that float32 can hold", values[token, position])
    return states


def _token_numbers(path: Path, where: str, classes: ClassNumbers, values: Sequence[object]) -> IntArray:
    """The classes of tokens, (T,); `NOT_A_WORD` stays what it is."""
    no_words = np.array([value == NOT_A_WORD for value in values], np.bool_)
    known = [None if none else value for none, value in zip(no_words.tolist(), values, strict=True)]
    return np.where(no_words, NOT_A_WORD, _numbers(path, where, classes, known))


def _numbers(path: Path, where: str, classes: ClassNumbers, values: Sequence[object]) -> IntArray:
    try:
        return classes.of_column([None if _is_unknown(value) else value for value in values])
    except ValueError as error:
        position, expected, got = error.args
        at = f"{where}[{position}]" if len(values) > 1 else where
        raise input_error(path, at, f"{expected}, or {UNKNOWN_LABEL}", got) from None


def _is_unknown(value: object) -> bool:
    return value == UNKNOWN_LABEL or (isinstance(value, float) and math.isnan(value))
