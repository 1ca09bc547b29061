"""What the tutorial and the guides tell readers to type does what they say.

Blocks of `sh` and `python` are run in the order of the pages, in one folder and on one database. A block of `text`
right behind a block of `sh` shows lines of its output; numbers may differ, since they depend on the processor. Blocks
of `console` are for reading: they install something or need a server.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import on_database
from tests.cli.program import Program

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = ("tutorial", "how-to/bring-your-model", "how-to/rare-class", "how-to/labels", "how-to/backup-and-upgrade")

FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<content>.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d[\d,.]*")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page and the line that it starts at."""

    language: str
    content: str
    line: int


def blocks(page: str) -> list[Block]:
    text = (DOCS / f"{page}.md").read_text()
    return [
        Block(found["language"], found["content"], text.count("\n", 0, found.start()) + 1)
        for found in FENCE.finditer(text)
    ]


def run_page(page: str, program: Program, names: dict[str, Any]) -> None:
    output = ""
    for block in blocks(page):
        where = f"{page}.md, line {block.line}"
        match block.language:
            case "sh":
                output = "".join(run_command(program, line, where) for line in block.content.splitlines())
            case "python":
                exec(compile(block.content, where, "exec"), names)  # what a reader would type
            case "text" if output:
                for line in block.content.splitlines():
                    assert masked(line) in masked(output), f"{where}: the output is now\n{output}"
                output = ""


def run_command(program: Program, line: str, where: str) -> str:
    name, *arguments = shlex.split(line)
    assert name == "venn-admit", f"{where}: only our own commands are run, got {line!r}; show others as `console`"
    outcome = program(*arguments)
    assert outcome.code == 0, f"{where}: {line}\n{outcome.stderr}"
    return outcome.stdout


def masked(text: str) -> str:
    return NUMBER.sub("#", text)


@pytest.fixture
def reader(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """The program of somebody who reads the pages in a checkout, with a database that is still empty."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return on_database(database, tmp_path)


def test_what_the_pages_tell_to_type_works(reader: Program) -> None:
    names: dict[str, Any] = {}
    for page in PAGES:
        run_page(page, reader, names)


def test_no_page_with_commands_is_left_out() -> None:
    with_commands = {
        str(path.relative_to(DOCS).with_suffix(""))
        for path in DOCS.rglob("*.md")
        if any(block.language in ("sh", "python") for block in blocks(str(path.relative_to(DOCS).with_suffix(""))))
    }
    assert with_commands == set(PAGES)
