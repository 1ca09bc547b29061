"""Files of texts: the same content from any format, and clear errors for what is no such file."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from venn_admit.errors import InvalidInputError
from venn_admit.layer.texts.document import TextDocument, class_names_of
from venn_admit.layer.texts.source import ATTRIBUTE_CHARACTERS, TextColumns, TextFile

ROWS = [
    {"id": "a", "text": "Good, really good.", "label": "yes", "stars": "5"},
    {"id": "b", "text": 'He said "no"\nand left.', "label": "no", "stars": None},
    {"id": "c", "text": "Na ja, ü.", "label": None, "stars": "3"},
]
CSV = 'id,text,label,stars\na,"Good, really good.",yes,5\nb,"He said ""no""\nand left.",no,\nc,"Na ja, ü.",,3\n'
CLASSES = ("no", "yes")


def write(folder: Path, name: str, content: str | bytes) -> TextFile:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return TextFile(path)


def write_parquet(path: Path) -> TextFile:
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    return TextFile(path)


FORMATS: dict[str, Callable[[Path], TextFile]] = {
    "csv": lambda folder: write(folder, "t.csv", CSV),
    "csv with a byte order mark": lambda folder: write(folder, "t.csv", b"\xef\xbb\xbf" + CSV.encode()),
    "csv of Windows": lambda folder: write(folder, "t.csv", CSV.replace("\n", "\r\n").replace('"\r\nand', '"\nand')),
    "jsonl": lambda folder: write(folder, "t.jsonl", "\n".join(map(json.dumps, ROWS)) + "\n\n"),
    "parquet": lambda folder: write_parquet(folder / "t.parquet"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_documents(tmp_path: Path, name: str) -> None:
    texts = FORMATS[name](tmp_path)
    summary = texts.summary()
    assert (summary.documents, summary.labels, summary.unlabelled) == (3, Counter(yes=1, no=1), 1)
    documents = list(texts.documents(CLASSES))
    assert [(one.external_id, one.text, one.label) for one in documents] == [
        ("a", "Good, really good.", 1),
        ("b", 'He said "no"\nand left.', 0),
        ("c", "Na ja, ü.", -1),
    ]
    assert documents[1].attributes == {"text": 'He said "no"\nand left.', "stars": None}
    assert summary.digest == write_parquet(tmp_path / "other.parquet").summary().digest


def test_columns_of_other_names(tmp_path: Path) -> None:
    texts = write(tmp_path, "t.csv", "review,stars,key\nfine,5,k1\nbad,1,k2\n")
    named = TextFile(texts.path, columns=TextColumns("review", "stars", "key"))
    assert class_names_of(named.summary().labels) == ("1", "5")
    found = list(named.documents(("1", "5")))
    assert [(one.external_id, one.label, one.attributes) for one in found] == [
        ("k1", 1, {"text": "fine"}),
        ("k2", 0, {"text": "bad"}),
    ]


def test_ids_follow_from_the_texts(tmp_path: Path) -> None:
    ids = [one.external_id for one in write(tmp_path, "t.csv", "text\nsame\nother\nsame\n").documents(CLASSES)]
    turned = [one.external_id for one in write(tmp_path, "u.csv", "text\nother\nsame\nsame\n").documents(CLASSES)]
    assert ids[2] == f"{ids[0]}:2"
    assert sorted(ids) == sorted(turned)
    assert write(tmp_path, "t.csv", "text\nsame\nother\nsame\n").summary().repeated == 1


def test_texts_of_another_file_are_left_out(tmp_path: Path) -> None:
    train = write(tmp_path, "train.csv", "id,text,label\n1,one,yes\n2,two,no\n").summary()
    held_out = write(tmp_path, "held-out.csv", "id,text,label\n1,two,no\n2,three,no\n")
    without = TextFile(held_out.path, without=train.text_digests)
    summary = without.summary()
    assert (summary.documents, summary.left_out) == (1, 1)
    assert [one.text for one in without.documents(CLASSES)] == ["three"]


def test_a_megabyte_of_text_is_read_and_its_attribute_is_cut(tmp_path: Path) -> None:
    (found,) = write(tmp_path, "t.csv", f'text\n"{"word, " * 200_000}"\n').documents(CLASSES)
    assert len(found.text) == 1_200_000
    assert found.attributes is not None
    assert len(str(found.attributes["text"])) == ATTRIBUTE_CHARACTERS


@pytest.mark.parametrize(
    ("labels", "class_names", "numbers"),
    [
        (["0", "1", "1.0"], ("no", "yes"), [0, 1, 1]),
        (["1", "5"], ("1", "5"), [0, 1]),
        (["-1", "1"], ("-1", "1"), [0, 1]),
        ([" yes ", "no"], ("no", "yes"), [1, 0]),
    ],
)
def test_labels_are_names_or_numbers(
    tmp_path: Path, labels: list[str], class_names: tuple[str, ...], numbers: list[int]
) -> None:
    texts = write(tmp_path, "t.csv", "text,label\n" + "".join(f"t,{label}\n" for label in labels))
    assert [one.label for one in texts.documents(class_names)] == numbers


SETS: list[tuple[str, list[str] | None, int]] = [
    ("two", ["yes", "no"], 0b11),
    ("one", ["yes"], 0b10),
    ("none", [], 0),
    ("unknown", None, -1),
]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_list_of_labels_is_their_set(tmp_path: Path, ending: str) -> None:
    rows = [{"text": text, "label": labels} for text, labels, _ in SETS]
    texts = write(tmp_path, "t.jsonl", "\n".join(map(json.dumps, rows)))
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
        texts = TextFile(tmp_path / "t.parquet")
    summary = texts.summary()
    assert (summary.several_labels, summary.labels, summary.unlabelled) == (True, Counter(yes=2, no=1), 1)
    assert [one.label for one in texts.documents(CLASSES)] == [label for *_, label in SETS]


def test_lists_of_one_label_are_another_content_than_single_labels(tmp_path: Path) -> None:
    single = write(tmp_path, "t.jsonl", '{"text": "a", "label": "no"}').summary()
    lists = write(tmp_path, "u.jsonl", '{"text": "a", "label": ["no"]}').summary()
    assert (single.several_labels, lists.several_labels) == (False, True)
    assert single.digest != lists.digest


def test_more_labels_than_a_set_can_have_are_refused(tmp_path: Path) -> None:
    texts = write(tmp_path, "t.jsonl", '{"text": "a", "label": ["a"]}')
    with pytest.raises(InvalidInputError, match="label: expected at most 63 labels in all, got 64"):
        list(texts.documents(["a", *map(str, range(63))]))


REFUSED: dict[str, tuple[str, str | bytes, str]] = {
    "a label that is no class": (
        "t.csv",
        "text,label\na,maybe\n",
        "row 0, label: expected one of the classes 'no', 'y",
    ),
    "a number beyond the classes": ("t.csv", "text,label\na,2\n", r"or a class number 0\.\.1, got '2'"),
    "blank texts": ("t.csv", "text,label\na,no\n  ,no\n,no\n", r"texts \(row 1, row 2\): .* no blank one, got 2;"),
    "no column of texts, with a name that is not English": ("t.csv", "größe\x9b\na\n", r"columns: 'größe\\x9b'"),
    "no column of texts": ("t.csv", "review,label\na,no\n", "row 0: expected a column 'text', got none; name the col"),
    "a text that is a number": ("t.jsonl", '{"text": 3}\n', "row 0, text: expected text, got an int"),
    "an id twice": ("t.csv", "id,text\nx,a\nx,b\n", "row 0 and row 1, id: expected every id once, got 'x' twice"),
    "an id that is missing": ("t.csv", "id,text\n,a\n", "row 0, id: expected text or an integer, got nothing"),
    "another encoding": ("t.csv", "text\nschön\n".encode("latin-1"), "expected text in UTF-8, got bytes that are not"),
    "UTF-16": ("t.csv", "text\nhello\n".encode("utf-16"), "in UTF-8, got UTF-16; save .* `iconv --from-code UTF-16 "),
    "UTF-32": ("t.csv", "text\nhello\n".encode("utf-32"), "expected text in UTF-8, got UTF-32"),
    "a NUL": ("t.csv", "text\na\0b\n", "row 0, text: expected text without NUL characters"),
    "semicolons": ("t.csv", "text;label\na, b;no\n", "commas, got 'text;label'; separate them by commas, not by ';'"),
    "too few values": ("t.csv", "text,label\na\n", "row 0: expected 2 values, got 1"),
    "an open quotation mark": ("t.csv", 'text\n"a\n', "row 0: expected values of CSV, got"),
    "a column twice": ("t.csv", "text,text\na,b\n", "columns: expected at most 1,000, every name once"),
    "an empty file": ("t.csv", "", "expected a first line with the names of the columns, got an empty file"),
    "no rows": ("t.csv", "text,label\n", "table: expected at least one row, got 0"),
    "a line that is no JSON": ("t.jsonl", '{"text": "a"}\n[1]\n', "line 2: expected a JSON object"),
    "a label that is an object": (
        "t.jsonl",
        '{"text": "a", "label": {}}',
        "row 0, label: expected a class name or a cl",
    ),
    "a label within lists": (
        "t.jsonl",
        '{"text": "a", "label": [["no"]]}',
        "row 0, label: expected a class name or a c",
    ),
    "an empty label in a list": (
        "t.jsonl",
        '{"text": "a", "label": ["no", ""]}',
        "row 0, label: expected names of lab",
    ),
    "a label in a list twice": (
        "t.jsonl",
        '{"text": "a", "label": ["no", "0"]}',
        "label: expected each label once, got no, 0",
    ),
    "a label in a list that is no class": (
        "t.jsonl",
        '{"text": "a", "label": ["no", "x"]}',
        "row 0, label: expected one of",
    ),
    "a list and a single label": (
        "t.jsonl",
        '{"text": "a", "label": null}\n{"text": "b", "label": "no"}\n{"text": "c", "label": ["no"]}',
        "row 2 and row 1, label: expected lists of labels, or one label each, got a list and a label; write a single",
    ),
    "brackets": ("t.jsonl", "[" * 100_000, "line 1: expected a JSON object"),
    "no Parquet": ("t.parquet", "PAR1", "expected a readable parquet file"),
    "another ending": ("t.txt", "a", r"expected a file of texts, with a name ending in \.csv, \.jsonl, \.parquet"),
    "a line that never ends": ("t.csv", "text\n" + "x" * (17 << 20), "line 2: expected fewer than 16,777,216 charact"),
}


def read_twice(texts: TextFile) -> None:
    texts.summary()
    for _ in texts.documents(CLASSES):
        pass


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_file_of_texts_is_refused(tmp_path: Path, name: str) -> None:
    file_name, content, said = REFUSED[name]
    texts = write(tmp_path, file_name, content)
    with pytest.raises(InvalidInputError, match=said):
        read_twice(texts)


CONLL = """\
# id = first
Zoë\tB-PER
works\tO

there\tO

Vienna\tB-LOC
"""


def read_words(folder: Path, content: str, name: str = "t.conll") -> list[TextDocument]:
    path = write(folder, name, content).path
    texts = TextFile(path, kind="token")
    return list(texts.documents(class_names_of(texts.summary().labels)))


def test_words_of_conll(tmp_path: Path) -> None:
    first, second, third = read_words(tmp_path, CONLL)
    assert (first.external_id, first.text, first.sentences) == ("first", "Zoë works", (("Zoë", "works"),))
    assert first.word_labels is not None
    assert first.word_labels.tolist() == [1, 2]  # of B-LOC, B-PER, O
    assert (second.text, third.text) == ("there", "Vienna")


def test_documents_of_conll_are_whole(tmp_path: Path) -> None:
    (first, second) = read_words(tmp_path, "-DOCSTART- O\n\na X\nb Y\n\nc X\n\n-DOCSTART- O\n\nd Y\n")
    assert first.sentences == (("a", "b"), ("c",))
    assert first.word_labels is not None
    assert first.word_labels.tolist() == [0, 1, 0]
    assert second.text == "d"


@pytest.mark.parametrize("top", ["-DOCSTART- -X- O O\n\n", "\n-DOCSTART-\n", "# a note\n-DOCSTART-\tO\n"])
def test_a_single_start_at_the_top_divides_nothing(tmp_path: Path, top: str) -> None:
    found = read_words(tmp_path, f"{top}a\tX\nb\tY\n\nc\tX\n")
    assert [one.text for one in found] == ["a b", "c"]


def test_a_single_start_behind_a_word_begins_the_second_document(tmp_path: Path) -> None:
    found = read_words(tmp_path, "a X\n\nb Y\n\n-DOCSTART- O\n\nc X\n\nd X\n")
    assert [one.text for one in found] == ["a b", "c d"]


def test_a_sign_of_number_is_a_word_unless_a_blank_follows(tmp_path: Path) -> None:
    (found,) = read_words(tmp_path, "# a comment\n#\tO\n1\tB\n# \tO\n")
    assert found.sentences == (("#", "1", "#"),)
    assert found.word_labels is not None
    assert found.word_labels.tolist() == [1, 0, 1]


def test_words_without_labels(tmp_path: Path) -> None:
    path = write(tmp_path, "t.txt", "a\nb\n\nc\n").path
    found = list(TextFile(path, kind="token").documents(("X", "Y")))
    assert [one.word_labels.tolist() for one in found if one.word_labels is not None] == [[-1, -1], [-1]]


@pytest.mark.parametrize(
    ("content", "said"),
    [("\n\n", "file: expected at least one word, got 0"), ("\tX\n", "line 1: expected a word, a tab or space")],
)
def test_what_is_no_conll_is_refused(tmp_path: Path, content: str, said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        read_words(tmp_path, content)


CONLL_U = """\
# newdoc id = one
# sent_id = one-1
# text = I haven't a clue.
1\tI\tI\tPRON\tPRP\tCase=Nom\t2\tnsubj\t_\t_
2-3\thaven't\t_\t_\t_\t_\t_\t_\t_\t_
2\thave\thave\tVERB\tVBP\tMood=Ind\t0\troot\t_\t_
3\tn't\tnot\tPART\tRB\t_\t2\tadvmod\t_\t_
3.1\tgot\tget\tVERB\tVBN\t_\t_\t_\t2:conj\t_
4\ta\ta\tDET\tDT\t_\t5\tdet\t_\t_
5\tclue\tclue\tNOUN\tNN\t_\t2\tobj\t_\tSpaceAfter=No
6\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

1\tNo\tno\tINTJ\tUH\t_\t0\troot\t_\t_
"""


@pytest.mark.parametrize("name", ["t.conllu", "t.conll", "t.tsv", "t.txt"])
@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (CONLL_U, 10),
        (CONLL_U.replace("# newdoc", "#newdoc").replace("\n", "\r\n"), 10),
        (CONLL_U[CONLL_U.index("1\tNo") :].replace("\t", "  "), 10),
        (CONLL_U.replace("_\n", "_\t_\t_\tA0\t_\n").replace("No\n", "No\t_\t_\tA1\t_\n"), 14),
    ],
    ids=["CoNLL-U", "comments without blanks, lines of Windows", "CoNLL-X by spaces", "CoNLL 2009"],
)
def test_columns_that_number_the_words_are_refused(tmp_path: Path, name: str, content: str, columns: int) -> None:
    said = f"columns: expected a word in the first and its label in the last, got {columns}, of which the first numbers"
    with pytest.raises(InvalidInputError, match=said) as refused:
        read_words(tmp_path, content, name)
    assert "write the words, which are the second, and the column with their labels" in str(refused.value)


def test_words_that_are_numbers_are_read(tmp_path: Path) -> None:
    few, many = (read_words(tmp_path, content)[0] for content in ("1 X\n2 Y\n", f"1 {'_ ' * 8}X\n3 {'_ ' * 8}Y\n"))
    assert (few.text, many.text) == ("1 2", "1 3")
