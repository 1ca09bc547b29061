"""A file of texts: what it holds as a whole, and its documents one at a time."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from venn_admit.core.budget import DEFAULT_MEMORY_BUDGET
from venn_admit.core.names import check_text
from venn_admit.core.types import UNKNOWN_LABEL
from venn_admit.errors import InvalidInputError
from venn_admit.files.inputs import input_error
from venn_admit.files.records import check_id, plain_attributes
from venn_admit.layer.states.index import MOST_LABELS, TOKENS_CUT, Kind
from venn_admit.layer.texts.document import ClassLabels, RawDocument, TextDocument, label_text
from venn_admit.layer.texts.formats import CONLL_ENDINGS, TABLE_ENDINGS, read_conll, read_rows
from venn_admit_client.naming import type_text

ATTRIBUTE_CHARACTERS = 10_000
"""How much of a text is kept as an attribute; the encoder reads all that it can."""

_ID_COLUMNS = ("external_id", "id")
_SHOWN_PLACES = 5


@dataclass(frozen=True, slots=True)
class TextColumns:
    """The names of the columns of a table. id: None for `external_id` or `id`, if there is one."""

    text: str = "text"
    label: str = "label"
    id: str | None = None


DEFAULT_COLUMNS = TextColumns()


@dataclass(frozen=True, slots=True)
class TextSummary:
    """What a file of texts holds.

    Attributes:
        labels: How often each label occurs, of documents or of words.
        repeated: Documents whose text, or words, another document before them has.
        left_out: Documents that are none of these, because their text is one of `TextFile.without`.
        digest: SHA-256 of all that is read, which is the same for files of other formats with the same content.
        several_labels: Whether each labelled document has a list of labels.
        text_digests: Digests of 16 bytes, one for each text that occurs; for labelled words, one with their sentences,
            one without.
    """

    documents: int
    labels: Counter[str]
    unlabelled: int
    repeated: int
    left_out: int
    digest: str
    several_labels: bool
    text_digests: frozenset[bytes] = field(repr=False)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file of texts: a table (.csv, .jsonl, .parquet) of documents, or labelled words in the columns of CoNLL.

    Attributes:
        kind: What is labelled: documents, of a table, or the tokens of a CoNLL file.
        without: Digests of texts that are left out, as `TextSummary` has them.
    """

    path: Path
    kind: Kind = "document"
    columns: TextColumns = DEFAULT_COLUMNS
    without: frozenset[bytes] = frozenset()
    memory_budget: int = DEFAULT_MEMORY_BUDGET

    def summary(self) -> TextSummary:
        """Read the whole file once, and check all of it except that labels are known.

        Raises:
            InvalidInputError: The file is invalid; the message names the row or line, what was expected and
                what was received.
        """
        labels: Counter[str] = Counter()
        digest = hashlib.sha256()
        ids: dict[str, str] = {}
        digests: set[bytes] = set()
        places: dict[bool, str] = {}  # of the first list of labels, and of the first single label
        unlabelled = repeated = left_out = 0
        for external_id, raw in self._checked():
            text_digest = _text_digest(raw)
            if self._is_left_out(raw):
                left_out += 1
                continue
            if external_id in ids:
                both = f"{ids[external_id]} and {raw.place}, id"
                raise input_error(self.path, both, "every id once", f"{external_id!r} twice")
            if raw.has_list or raw.labels != (None,):
                places.setdefault(raw.has_list, raw.place)
            if len(places) == 2:
                both = f"{places[True]} and {places[False]}, {self.columns.label}"
                advice = "write a single label as a list of one"
                raise input_error(self.path, both, "lists of labels, or one label each", "a list and a label", advice)
            ids[external_id] = raw.place
            labels.update(label for label in raw.labels if label is not None)
            unlabelled += raw.labels.count(None)
            repeated += text_digest in digests
            digests.update((text_digest, _plain_digest(raw)))
            digest.update(repr((external_id, raw.text, raw.labels, raw.sentences, raw.attributes)).encode())
            digest.update(b"list" * raw.has_list)
        if not ids:
            raise input_error(self.path, "texts", "at least one", f"{left_out:,} that are left out")
        several, read = True in places, digest.hexdigest()
        return TextSummary(len(ids), labels, unlabelled, repeated, left_out, read, several, frozenset(digests))

    def external_ids(self) -> list[str]:
        """Return the ids of the documents, in the order of the file."""
        return [external_id for external_id, raw in self._checked() if not self._is_left_out(raw)]

    def documents(self, class_names: Sequence[str]) -> Iterator[TextDocument]:
        """Yield the documents, in the order of the file."""
        classes = ClassLabels(class_names)
        for external_id, raw in self._checked():
            if self._is_left_out(raw):
                continue
            try:
                numbers = [classes.number(label) for label in raw.labels]
            except ValueError as error:
                raise input_error(self.path, f"{raw.place}, label", *error.args) from None
            words = self.kind == "token"
            if raw.has_list:
                numbers = [self._label_set(raw, numbers, len(class_names))]
            yield TextDocument(
                external_id=external_id,
                text=raw.text,
                label=UNKNOWN_LABEL if words else numbers[0],
                sentences=raw.sentences,
                word_labels=np.array(numbers, np.int64) if words else None,
                attributes={"text": raw.text[:ATTRIBUTE_CHARACTERS]} | raw.attributes,
            )

    def _label_set(self, raw: RawDocument, numbers: Sequence[int], class_count: int) -> int:
        where = f"{raw.place}, {self.columns.label}"
        if class_count > MOST_LABELS:
            raise input_error(self.path, where, f"at most {MOST_LABELS} labels in all", f"{class_count:,}")
        if len(set(numbers)) < len(numbers):
            raise input_error(self.path, where, "each label once", ", ".join(map(str, raw.labels)))
        return sum(1 << number for number in numbers)

    def _is_left_out(self, raw: RawDocument) -> bool:
        return not self.without.isdisjoint((_text_digest(raw), _plain_digest(raw)))

    def _checked(self) -> Iterator[tuple[str, RawDocument]]:
        """The documents, each with its id. InvalidInputError, at the end, if some are blank."""
        seen: Counter[str] = Counter()
        blank: list[str] = []
        for raw in self._raw():
            if not raw.text.strip():
                blank.append(raw.place)
                continue
            try:
                check_text(raw.text)
            except ValueError as error:
                raise input_error(self.path, f"{raw.place}, text", *error.args) from None
            if raw.external_id is not None:
                yield check_id(self.path, f"{raw.place}, id", raw.external_id), raw
                continue
            content = _text_digest(raw).hex()
            seen[content] += 1
            count = seen[content]
            yield f"text:{content}" + (f":{count}" if count > 1 else ""), raw
        if blank:
            places = ", ".join(blank[:_SHOWN_PLACES]) + ", ..." * (len(blank) > _SHOWN_PLACES)
            raise input_error(self.path, f"texts ({places})", "no blank one", f"{len(blank):,}", "leave blank rows out")

    def _raw(self) -> Iterator[RawDocument]:
        ending = self.path.suffix.lower()
        allowed = CONLL_ENDINGS if self.kind == "token" else TABLE_ENDINGS
        if ending not in allowed:
            what = "labelled words in columns" if self.kind == "token" else "texts"
            raise InvalidInputError(
                f"{self.path}: expected a file of {what}, with a name ending in {', '.join(allowed)}, got "
                + (repr(ending) if ending else "no ending")
                + "; convert the file, or choose another task"
            )
        if self.kind == "token":
            yield from read_conll(self.path)
            return
        for place, row in read_rows(self.path, self.memory_budget):
            yield self._document(place, row)

    def _document(self, place: str, row: dict[str, Any]) -> RawDocument:
        names = self.columns
        if names.text not in row:
            advice = f"name the column of texts; these are the columns: {', '.join(map(repr, list(row)[:20]))}"
            raise input_error(self.path, place, f"a column {names.text!r}", "none", advice)
        text = row.pop(names.text)
        if text is not None and not isinstance(text, str):
            raise input_error(self.path, f"{place}, {names.text}", "text", type_text(text))
        given = row.pop(names.label, None)
        has_list = isinstance(given, list)
        try:
            labels = tuple(map(label_text, given if has_list else [given]))
        except ValueError as error:
            raise input_error(self.path, f"{place}, {names.label}", *error.args) from None
        if has_list and None in labels:
            raise input_error(self.path, f"{place}, {names.label}", "names of labels", "a list with an empty one")
        if "text" in row:
            advice = "the text is kept under this name: rename the other column"
            raise input_error(self.path, place, "one column of texts", f"{names.text!r} and 'text'", advice)
        if TOKENS_CUT in row:
            what = "tells how many tokens of a text are not read"
            raise input_error(self.path, place, f"no column {TOKENS_CUT!a}", "one", f"it {what}: rename the column")
        external_id = self._take_id(place, row)
        attributes = plain_attributes(self.path, int(place.removeprefix("row ")), row)
        return RawDocument(place, external_id, text or "", labels, (), attributes, has_list)

    def _take_id(self, place: str, row: dict[str, Any]) -> str | None:
        named = self.columns.id
        if named is not None and named not in row:
            raise input_error(self.path, place, f"a column {named!r}", "none", "name the column of ids")
        column = named or next((name for name in _ID_COLUMNS if name in row), None)
        if column is None:
            return None
        value = row.pop(column)
        if value is None or isinstance(value, bool) or not isinstance(value, str | int):
            got = "nothing" if value is None else type_text(value)
            raise input_error(self.path, f"{place}, {column}", "text or an integer", got, "give every row an id")
        return str(value)


def _plain_digest(raw: RawDocument) -> bytes:
    """Return the digest of the text alone, which labelled words have in common with a table."""
    return hashlib.sha256(repr(raw.text).encode()).digest()[:16]


def _text_digest(raw: RawDocument) -> bytes:
    return hashlib.sha256(repr(raw.sentences or raw.text).encode()).digest()[:16]
