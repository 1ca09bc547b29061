"""Sentences tell the program, venn-admit, from the method Venn-ADMIT, whose value is `venn-admit`."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"```.*?```|`[^`]*`|<code>.*?</code>|\{\{.*?\}\}|\]\([^)]*\)", re.DOTALL)
# Before a method's value stands the word method; a command is followed by a verb.
VERBS = "calibrate|demo|evaluate|export|extract|fit|label|report|score|serve|show"
UNCLEAR = re.compile(
    r"(?<!method )(?<!method\n)(?<![\w\"'\-/=])venn-abers\b"
    rf"|\b(?:[Oo]f|[Ff]or|[Bb]y|[Uu]nder|[Oo]nly|than|with|from) venn-admit\b(?! (?:{VERBS})\b)"
    r"|\bvenn-admit (?:decides|does|is the default)\b"
)
ROOMS = ("api", "cli", "core", "flows", "interface", "report", "web")


def pages() -> list[Path]:
    """The documentation, and the templates of pages and reports."""
    found = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "service").rglob("*.j2")]
    assert len(found) > 50
    return found


def modules() -> list[Path]:
    """The modules whose sentences users read: messages, help, descriptions and public docstrings."""
    program = [ROOT / "service" / "venn_admit" / room for room in ROOMS]
    found = [path for room in (*program, ROOT / "client") for path in room.rglob("*.py")]
    assert len(found) > 300
    return found


def sentences(path: Path) -> Iterator[str]:
    """Yield the texts of a file, without what stands between backquotes and without bare values."""
    text = path.read_text("utf-8")
    if path.suffix != ".py":
        yield CODE.sub("", text)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield CODE.sub("", node.value)


def unclear(path: Path) -> list[str]:
    return [match.group() for text in sentences(path) for match in UNCLEAR.finditer(" ".join(text.split()))]


@pytest.mark.parametrize("files", [pages, modules], ids=["pages", "modules"])
def test_methods_are_called_by_their_names(files: object) -> None:
    assert callable(files)
    found = {str(path.relative_to(ROOT)): words for path in files() if (words := unclear(path))}
    assert found == {}


@pytest.mark.parametrize(
    ("said", "is_unclear"),
    [
        ("venn-admit does not need them", True),
        ("the default of venn-admit", True),
        ("a calibration by venn-abers", True),
        ("by the method venn-abers", False),
        ("nothing that venn-admit stores", False),
        ("as Venn-ADMIT and Venn-Abers decide", False),
    ],
)
def test_what_is_unclear(said: str, is_unclear: bool) -> None:
    assert bool(UNCLEAR.search(said)) is is_unclear
