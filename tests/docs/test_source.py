"""The table of the source names modules, commands, options and tests that exist, and gives each row its own."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from venn_admit.cli.program import app

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "source.md"
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.read_text("utf-8").replace("||", "| |").splitlines()
    if line.startswith("| ") and not line.startswith(("| ---", "| in the source"))
]
NAMED = sorted(set(re.findall(r"`([^`]+)`", " ".join(cell for row in ROWS for cell in row[1:3]))))


def found_object(name: str) -> object:
    """A module, or an attribute of one, by its dotted name."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[end:]:
            found = getattr(found, attribute)
        return found
    raise AssertionError(name)


def check_command(text: str) -> None:
    """The verbs lead to a command, which has the options."""
    command: Any = typer.main.get_command(app)
    _, *words = text.split()
    for verb in (word for word in words if not word.startswith("--")):
        command = command.commands[verb]
    options = {name for parameter in command.params for name in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= options, text


def check_test(text: str) -> None:
    path, _, name = text.partition("::")
    content = (ROOT / path).read_text("utf-8")
    assert f"def {name or 'test_'}" in content, text


@pytest.mark.parametrize("name", NAMED)
def test_what_is_named_exists(name: str) -> None:
    if name.startswith("venn-admit "):
        check_command(name)
    elif name.startswith("tests/"):
        check_test(name)
    elif name.startswith(("venn_admit.", "examples.")):
        found_object(name)
    else:
        assert name in {"document"}, f"{name}: neither a module, nor a command, nor a test"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_item_has_a_command_and_a_test(row: list[str]) -> None:
    item, place, test, *_ = row
    assert item
    assert "`venn-admit " in place
    assert "`tests/" in test


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("venn_admit.core.calibrators.bands.no_such_radius", AttributeError),
        ("venn-admit no-such-verb", KeyError),
        ("venn-admit evaluate --no-such-option", AssertionError),
        ("tests/docs/pages.py::test_no_such", AssertionError),
        ("tests/docs/no_such_test.py", FileNotFoundError),
    ],
)
def test_what_does_not_exist_is_noticed(name: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        test_what_is_named_exists(name)
