"""Texts in CSV, JSONL, Parquet and the columns of CoNLL, read one row or document at a time.

CoNLL has a line a word, its first column the word, its last the label. An empty line ends a sentence. Columns are
separated by tabs if there is one, otherwise by spaces; a line of one column is a word without label. A line
`-DOCSTART-` begins a document; without any, or with a single one before the first word, which heads a file rather than
divides it, each sentence is a document. Lines that begin with `# `, a blank and no tab behind the sign, before the
first word of a sentence are comments; `# id = NAME` or `# sent_id = NAME` names a document.

CoNLL-U and its kin, CoNLL-X and CoNLL 2009, are refused: their first column numbers the words, and nothing says which
of the others is the label.
"""

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Any

from venn_admit.errors import InvalidInputError
from venn_admit.files.inputs import check_is_file, input_error, reading
from venn_admit.files.parquet import reader as parquet_rows
from venn_admit.layer.texts.document import RawDocument

TABLE_ENDINGS = (".csv", ".jsonl", ".parquet")
_BATCH_ROWS = 1024
CONLL_ENDINGS = (".conll", ".conllu", ".tsv", ".txt")
_START = "-DOCSTART-"
_COMMENT = re.compile(r"# (?:\s*(?:sent_)?id\s*=\s*(?P<id>.*\S))?")
_NUMBERED_COLUMNS = 10  # of CoNLL-U and CoNLL-X; CoNLL 2009 has more
_NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")  # numbers of several words that are written as one, or of an omitted one
_OTHER_SEPARATOR = re.compile(r"[;\t|]")
LINE_CHARACTERS = 16 << 20
"""The longest line, and so the longest text, that is read."""
# No text in UTF-8 begins like these. UTF-32 comes first, because its mark begins like that of UTF-16.
_OTHER_ENCODINGS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def read_rows(path: Path, memory_budget: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield where each row is, and its values by column; CSV has texts only, None for an empty one.

    Raises InvalidInputError for a file that cannot be read, names a column twice, or has no rows.
    """
    match path.suffix.lower():
        case ".csv":
            rows = _csv_rows(path)
        case ".jsonl":
            rows = _json_rows(path)
        case ".parquet":
            rows = parquet_rows.read_rows(path, _BATCH_ROWS, memory_budget)
        case other:
            got = repr(other) if other else "no ending"
            endings = ", ".join(TABLE_ENDINGS)
            raise InvalidInputError(f"{path}: expected a name ending in {endings}, got {got}")
    number = -1
    for number, row in enumerate(rows):
        yield f"row {number}", row
    if number < 0:
        raise input_error(path, "table", "at least one row", 0)


def _csv_rows(path: Path) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(LINE_CHARACTERS)  # of the process: the module has no other
    rows = csv.reader(read_lines(path), strict=True)
    names = _next(path, rows, "the line of names")
    if names is None:
        raise input_error(path, "table", "a first line with the names of the columns", "an empty file")
    if len(names) == 1 and (found := _OTHER_SEPARATOR.search(names[0])):
        advice = f"separate them by commas, not by {found[0]!r}"
        raise input_error(path, "line of names", "columns that are separated by commas", repr(names[0][:80]), advice)
    parquet_rows.check_columns(path, names)
    number = 0
    while (values := _next(path, rows, f"row {number}")) is not None:
        if not values:  # an empty line
            continue
        if len(values) != len(names):
            advice = "put texts with commas, quotation marks or line breaks into quotation marks"
            raise input_error(path, f"row {number}", f"{len(names)} values", len(values), advice)
        yield {name: value or None for name, value in zip(names, values, strict=True)}
        number += 1


def _next(path: Path, rows: Iterator[list[str]], where: str) -> list[str] | None:
    try:
        return next(rows, None)
    except csv.Error as error:
        advice = "double each quotation mark within a text, and close every text"
        raise input_error(path, where, "values of CSV", error, advice) from None


def _json_rows(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(read_lines(path)):
        if not line.strip():
            continue
        try:
            row = json.loads(line, parse_constant=lambda _: None)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise input_error(path, f"line {number + 1}", "a JSON object", ascii(line[:80]))
        yield row


@dataclass(slots=True)
class _Gathered:
    """What has been read of a document."""

    line: int = 0
    external_id: str | None = None
    sentences: list[list[str]] = field(default_factory=list)
    labels: list[str | None] = field(default_factory=list)
    in_sentence: bool = False

    def add(self, line: int, word: str, label: str | None) -> None:
        self.line = self.line or line
        if not self.in_sentence:
            self.sentences.append([])
            self.in_sentence = True
        self.sentences[-1].append(word)
        self.labels.append(label)

    def document(self) -> RawDocument:
        return RawDocument(
            place=f"line {self.line}",
            external_id=self.external_id,
            text=" ".join(word for sentence in self.sentences for word in sentence),
            labels=tuple(self.labels),
            sentences=tuple(map(tuple, self.sentences)),
            attributes={},
        )


def read_conll(path: Path) -> Iterator[RawDocument]:
    """Yield the documents of a file. Raises InvalidInputError at a line that is not as the module says."""
    _check_columns(path)
    whole = _is_divided(path)
    gathered, found = _Gathered(), False
    for number, line in enumerate(read_lines(path), start=1):
        text = line.rstrip("\r\n")
        ends = text.startswith(_START) or (not whole and not text.strip())
        if ends and gathered.sentences:
            found = True
            yield gathered.document()
            gathered = _Gathered()
        if text.startswith(_START):
            continue
        if not text.strip():
            gathered.in_sentence = False
        elif not gathered.in_sentence and (comment := _COMMENT.match(text)):
            gathered.external_id = gathered.external_id or comment["id"]
        else:
            gathered.add(number, *_columns(path, number, text))
    if gathered.sentences:
        found = True
        yield gathered.document()
    if not found:
        raise input_error(path, "file", "at least one word", 0)


def _check_columns(path: Path) -> None:
    """Raise InvalidInputError if the first column numbers the words of the first sentence."""
    count, words = 0, 0
    for columns in _first_sentence(path):
        count, is_next = len(columns), columns[0] == str(words + 1)
        if count < _NUMBERED_COLUMNS or not (is_next or _NO_WORD.fullmatch(columns[0])):
            return
        words += is_next
    if words:
        expected = "a word in the first and its label in the last"
        got = f"{count}, of which the first numbers the words, as in CoNLL-U"
        advice = "write the words, which are the second, and the column with their labels to a .tsv file"
        raise input_error(path, "columns", expected, got, advice)


def _first_sentence(path: Path) -> Iterator[list[str]]:
    """The columns of its lines. Lines before it that begin with `#` are taken for comments, even without a blank."""
    words = dropwhile(lambda line: not line.strip() or line.startswith(("#", _START)), read_lines(path))
    return map(_split, takewhile(str.strip, words))


def _is_divided(path: Path) -> bool:
    """Whether lines say where documents begin: one behind the first word, or several."""
    starts, words = 0, False
    for line in read_lines(path):
        if line.startswith(_START):
            starts += 1
            if starts > 1 or words:
                return True
        else:
            words = words or bool(line.strip() and not _COMMENT.match(line))
    return False


def _columns(path: Path, number: int, text: str) -> tuple[str, str | None]:
    columns = _split(text)
    if not columns[0]:
        raise input_error(path, f"line {number}", "a word, a tab or space, and its label", ascii(text[:80]))
    return columns[0], (columns[-1] or None) if len(columns) > 1 else None


def _split(text: str) -> list[str]:
    return [column.strip() for column in (text.split("\t") if "\t" in text else text.split())]


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file, each with its end; a byte order mark is left out.

    Raises InvalidInputError unless the file is UTF-8.
    """
    check_is_file(path)
    with reading(path, "text file"), path.open("rb") as file:
        start = file.read(4)
    for mark, encoding in _OTHER_ENCODINGS.items():
        if start.startswith(mark):
            raise _other_encoding(path, 1, encoding, encoding)
    number = 0
    with reading(path, "text file"), path.open(encoding="utf-8-sig", newline="") as file:
        while True:
            try:
                line = file.readline(LINE_CHARACTERS)
            except UnicodeDecodeError:
                raise _other_encoding(path, number + 1, "bytes that are not") from None
            if not line:
                return
            number += 1
            if len(line) == LINE_CHARACTERS:
                expected = f"fewer than {LINE_CHARACTERS:,} characters"
                raise input_error(path, f"line {number}", expected, "more", "cut the text")
            yield line


def _other_encoding(path: Path, line: int, got: str, code: str = "WINDOWS-1252") -> InvalidInputError:
    advice = f"save the file as UTF-8, for example by `iconv --from-code {code} --to-code UTF-8`"
    return input_error(path, f"line {line} or soon after", "text in UTF-8", got, advice)
