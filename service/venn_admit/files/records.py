"""The batches that every reader of exemplars returns, and the checks that hold for any file format."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, time
from decimal import Decimal
from itertools import compress
from typing import Any, TypeGuard, cast

import numpy as np
import numpy.typing as npt

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.content import content_digests
from venn_admit.core.names import ID_LENGTH_LIMIT, check_new_id, check_printable, check_text, is_title
from venn_admit.core.probabilities import are_probabilities, logs, not_probabilities
from venn_admit.core.types import UNKNOWN_LABEL, Float32Array, IntArray
from venn_admit.errors import Code, InvalidInputError
from venn_admit.files.inputs import Place, input_error
from venn_admit.files.label_values import ClassNumbers
from venn_admit_client.arrays import is_missing
from venn_admit_client.bodies import ATTRIBUTE_NESTING
from venn_admit_client.naming import type_text

VERSION_RULE = "1 to 200 printable characters, without spaces around them"
_VERSION_LENGTH = 200
Attributes = dict[str, Any]
# What .npz files, tables and arguments call the same thing that data may lack.
_CALLED = (
    ("y", "label", "labels"),
    ("id", "external_id", "ids"),
    ("doc", "document_id", "documents"),
)


@dataclass(frozen=True, slots=True, eq=False)
class ExemplarBatch:
    """Consecutive rows of a file, checked.

    first_row: row of the first record in the file, counted from 0. external_ids: n strings, 1 to 1,000 characters.
    document_ids: n strings, or None if the file names no document. vectors: (n, D) float32, r, finite; None for a
    classifier with logits only. logits: (n, C) float32, f(x), finite. labels: (n,) int64, y in [0, C), -1 if unknown.
    attributes: n dictionaries of JSON values, empty if the file has none. digests: n digests of the content, as
    `content_digests` makes them. point_digests: those without documents, which copies share. extractor: the version of
    the extractor of all rows; None if it is not stated.
    """

    first_row: int
    external_ids: list[str]
    document_ids: list[str | None]
    vectors: Float32Array | None
    logits: Float32Array
    labels: IntArray
    attributes: list[Attributes]
    digests: list[bytes]
    point_digests: list[bytes]
    extractor: str | None = None


ROW_LISTS = ("external_ids", "document_ids", "attributes", "digests", "point_digests")
ROW_ARRAYS = ("vectors", "logits", "labels")
"""The fields of a batch that have an item for each row."""


@dataclass(frozen=True, slots=True)
class Stated:
    """What is stated of exemplars apart from the data.

    extractor: the version of what their vectors come from; None if it is not stated. probabilities: True if the logits
    are probabilities, whose logarithms are taken; False if they are logits whatever they look like; None: they are
    logits, and refused if they look like probabilities.
    """

    extractor: str | None = None
    probabilities: bool | None = None


NOTHING_STATED = Stated()


class DefaultIds:
    """The ids of one file's rows, batch after batch.

    An id is `content:` and the digest of vector, logits and document. Rows of a file that are equal in all of these
    remain separate: the id of the second ends in `:2`, that of the third in `:3`.
    """

    def __init__(self) -> None:
        self._seen: Counter[bytes] = Counter()

    def take(self, digests: Sequence[bytes]) -> list[str]:
        """Return the ids of the next rows of the file, of which these are the digests of the content."""
        ids = []
        for digest in digests:
            self._seen[digest] += 1
            count = self._seen[digest]
            ids.append(f"content:{digest.hex()}" + (f":{count}" if count > 1 else ""))
        return ids


@dataclass(frozen=True, slots=True)
class Layout:
    """A file or table of exemplars: the sizes that its rows must have, and the names of their columns in its format.

    place: what messages call it. dimension: None if they must have no vectors. memory_budget: bytes that reading it
    may take. stated: what is stated of the rows, here or, of the extractor, among them.
    """

    place: Place
    dimension: int | None
    class_count: int
    classes: ClassNumbers
    memory_budget: int = DEFAULT_MEMORY_BUDGET
    stated: Stated = NOTHING_STATED
    default_ids: DefaultIds = field(default_factory=DefaultIds)
    vector: str = "vector"
    logits: str = "logits"
    label: str = "label"
    external_id: str = "external_id"
    document_id: str = "document_id"


def unwanted_vectors(place: Place, where: str, got: object) -> InvalidInputError:
    """Return the error for vectors that a classifier with logits only was given, ready to be raised."""
    expected, advice = "none, because the classifier has logits only", "leave the vectors out"
    return input_error(place, where, expected, got, advice, Code.VECTORS_UNWANTED)


def check_names(place: Place, kind: str, names: Iterable[str], own: Collection[str]) -> None:
    """Raise InvalidInputError if labels, ids or documents have the name that another format has for them.

    They would be kept as an attribute and lost without a word. A column of such a name beside the right one is an
    attribute. kind: what the names are of. own: the names that this format has.
    """
    present = set(names)
    for called in _CALLED:
        expected = next(name for name in called if name in own)
        others = [name for name in called if name in present]
        if others and expected not in present:
            advice = "rename it, to something else if it is an attribute"
            raise input_error(place, f"{kind} {others[0]!r}", f"the name {expected!r}", repr(others[0]), advice)


def stating(layout: Layout, where: str, extractor: str | None) -> Layout:
    """Return a layout with the extractor that a file or table states itself, if it does.

    Raises InvalidInputError if that is no version, or if another was stated for it.
    """
    if extractor is None:
        return layout
    if not is_version(extractor):
        raise input_error(layout.place, where, VERSION_RULE, ascii(extractor[:80]))
    if layout.stated.extractor not in (None, extractor):
        advice = "leave the option out, or see whether this is the file you meant"
        raise input_error(
            layout.place, where, f"{layout.stated.extractor!r}, as was stated for it", repr(extractor), advice
        )
    return replace(layout, stated=replace(layout.stated, extractor=extractor))


def make_batch(
    layout: Layout,
    first_row: int,
    *,
    vectors: npt.NDArray[np.floating[Any]] | None,
    logits: npt.NDArray[np.floating[Any]],
    labels: npt.NDArray[Any] | Sequence[object] | None,
    external_ids: Sequence[str | None] | None,
    document_ids: Sequence[str | None] | None,
    attributes: Iterable[Attributes] | None,
) -> ExemplarBatch:
    """Check the values of consecutive rows and return them as a batch.

    vectors: (n, D), or None if there are none; logits: (n, C), of any float type; labels: n numbers or class names.
    Columns that the file lacks are None: ids are then those of the content (`DefaultIds`), labels and documents
    unknown, and attributes empty.

    Raises InvalidInputError naming the first row and column that are wrong.
    """
    row_count = len(logits)
    documents: list[str | None] = (
        [None] * row_count if document_ids is None else _checked_document_ids(layout, first_row, document_ids)
    )
    vectors32 = None if vectors is None else _as_float32(layout, first_row, layout.vector, vectors)
    # The first rows tell what a file has: a few later ones may look like probabilities by chance.
    probabilities = layout.stated.probabilities if first_row == 0 else bool(layout.stated.probabilities)
    taken = taken_logits(f"{layout.place}: {layout.logits}", logits, probabilities, first_row=first_row)
    logits32 = _as_float32(layout, first_row, layout.logits, taken)
    point_digests = content_digests(vectors32, logits32, [None] * row_count)
    digests = point_digests if document_ids is None else content_digests(vectors32, logits32, documents)
    return ExemplarBatch(
        first_row=first_row,
        external_ids=layout.default_ids.take(digests)
        if external_ids is None
        else _checked_ids(layout, first_row, external_ids),
        document_ids=documents,
        vectors=vectors32,
        logits=logits32,
        labels=_checked_labels(layout, first_row, labels, row_count),
        attributes=[{} for _ in range(row_count)]
        if attributes is None
        else [plain_attributes(layout.place, row, values) for row, values in enumerate(attributes, start=first_row)],
        digests=digests,
        point_digests=point_digests,
        extractor=layout.stated.extractor,
    )


def labelled_rows(batch: ExemplarBatch) -> ExemplarBatch:
    """Return a batch without the rows whose label is unknown; `first_row` stays that of the batch."""
    known = batch.labels >= 0
    columns: dict[str, Any] = {name: list(compress(getattr(batch, name), known)) for name in ROW_LISTS}
    columns |= {name: getattr(batch, name)[known] for name in ROW_ARRAYS if getattr(batch, name) is not None}
    return replace(batch, **columns)


def is_version(extractor: str) -> bool:
    r"""Return whether a text can be the version of an extractor.

    >>> [is_version(text) for text in ("sha256:9f2c", "", " v2", "a\nb")]
    [True, False, False, False]
    """
    return is_title(extractor, _VERSION_LENGTH)


def duplicate_ids(external_ids: Iterable[str]) -> dict[str, list[int]]:
    """Return the rows, counted from 0, of every id that occurs more than once, by id.

    >>> duplicate_ids(["a", "b", "a"])
    {'a': [0, 2]}
    """
    rows_of: dict[str, list[int]] = {}
    for row, external_id in enumerate(external_ids):
        rows_of.setdefault(external_id, []).append(row)
    return {external_id: rows for external_id, rows in rows_of.items() if len(rows) > 1}


def _as_float32(layout: Layout, first_row: int, column: str, values: npt.NDArray[np.floating[Any]]) -> Float32Array:
    """Return the values as they are stored, (n, width) float32; InvalidInputError at one that float32 cannot hold."""
    with np.errstate(over="ignore"):
        stored: Float32Array = values.astype(np.float32, order="C")
    finite = np.isfinite(stored)
    if not finite.all():
        row, position = (int(index) for index in np.argwhere(~finite)[0])
        value = float(values[row, position])
        expected = "a number that float32 can hold" if math.isfinite(value) else "a finite number"
        raise input_error(layout.place, f"row {first_row + row}, {column}[{position}]", expected, value)
    return stored


def taken_logits(
    where: str, given: npt.NDArray[np.floating[Any]], probabilities: bool | None, *, first_row: int = 0
) -> npt.NDArray[np.floating[Any]]:
    """Return logits as they are given, (n, C), or the logarithms of probabilities; probabilities: as `Stated` has it.

    Raises InvalidInputError if all look like probabilities and nothing is stated, or if a row of probabilities is none;
    where: what messages call them.
    """
    if probabilities:
        wrong = not_probabilities(given)
        if wrong.size:
            raise InvalidInputError(
                f"{where}, row {first_row + wrong[0]}: expected probabilities, as is stated, which lie in [0, 1] and "
                f"sum to 1, got {given[wrong[0]][:8].tolist()}; correct them, or leave the statement out"
            )
        return logs(given)
    if probabilities is None and len(given) and are_probabilities(given):
        raise InvalidInputError(
            f"{where}: expected logits, got numbers that lie in [0, 1] and sum to 1 in every row, as probabilities do; "
            "give the network's logits, or state that these are probabilities, and their logarithms are taken",
            code=Code.PROBABILITIES,
        )
    return given


def _checked_labels(
    layout: Layout, first_row: int, labels: npt.NDArray[Any] | Sequence[object] | None, row_count: int
) -> IntArray:
    if labels is None:
        return np.full(row_count, UNKNOWN_LABEL, dtype=np.int64)
    try:
        return layout.classes.of_column(labels)
    except ValueError as error:
        position, expected, got = error.args
        raise input_error(layout.place, f"row {first_row + position}, {layout.label}", expected, got) from None


def _checked_ids(layout: Layout, first_row: int, values: Sequence[str | None]) -> list[str]:
    if _are_ids(values):
        return list(values)
    checked = []
    for row, value in enumerate(values, start=first_row):
        where = f"row {row}, {layout.external_id}"
        if value is None:
            raise input_error(layout.place, where, "text", "null", "give every row an id, or leave the column out")
        checked.append(check_id(layout.place, where, value))
    return checked


def _are_ids(values: Sequence[str | None]) -> TypeGuard[Sequence[str]]:
    """Whether `check_id` would accept all values. Checking them together is several times as fast as one by one."""
    if None in values:
        return False
    texts = cast(Sequence[str], values)
    lengths = set(map(len, texts))
    if not 1 <= min(lengths, default=1) <= max(lengths, default=1) <= ID_LENGTH_LIMIT:
        return False
    try:
        check_printable("".join(texts))
    except ValueError:
        return False
    return True


def _checked_document_ids(layout: Layout, first_row: int, values: Sequence[str | None]) -> list[str | None]:
    return [
        None if value is None else check_id(layout.place, f"row {row}, {layout.document_id}", value)
        for row, value in enumerate(values, start=first_row)
    ]


def check_id(place: Place, where: str, value: str) -> str:
    """Return the id of a new exemplar or document; raise InvalidInputError for one that it may not have."""
    try:
        check_new_id(value)
    except ValueError as error:
        raise input_error(place, where, *error.args) from None
    return value


def plain_attributes(place: Place, row: int, attributes: Attributes) -> Attributes:
    """Return attributes as JSON knows them; raise InvalidInputError at a value that JSON, or Postgres, cannot hold."""
    plain = {}
    for name, value in attributes.items():
        where = f"row {row}, attribute {name!r}"
        try:
            plain[_plain(name)] = _plain(value)
        except ValueError as error:
            raise input_error(place, where, *error.args) from None
    return plain


def _plain(value: Any, depth: int = 0) -> Any:
    """Return the value as JSON knows it; NaN, NA, NaT and infinities, which JSON lacks, become None.

    Raises ValueError(expected, got[, advice]) if JSON has no such value.
    """
    if depth > ATTRIBUTE_NESTING:
        raise ValueError(f"a value nested at most {ATTRIBUTE_NESTING} deep", "a deeper one")
    match value:
        case list():
            return [_plain(item, depth + 1) for item in value]
        case dict():
            return {_plain(key): _plain(item, depth + 1) for key, item in value.items()}
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    match value:
        case None | bool() | int():
            return value
        case float() | np.floating():
            return float(value) if math.isfinite(value) else None
        case str():
            check_text(value)
            return value
        case Decimal():
            return str(value)
        case _ if is_missing(value):  # NaT is a date, too
            return None
        case date() | time():  # a date may have a time
            return value.isoformat()
    expected = "numbers, texts, dates, booleans, or lists and dictionaries of them"
    raise ValueError(expected, type_text(value), "cast it to text or leave it out")
