"""Errors below the shells say what to do without naming a command, and their codes are all known to the shells."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from venn_admit import errors
from venn_admit.cli.advice import advised
from venn_admit.cli.program import app
from venn_admit.errors import Code, NotReadyError, VennAdmitError

ROOT = Path(__file__).parents[1]
BELOW = ("broker.py", "core", "files", "flows", "report", "store")
FAMILIES = {
    kind.__name__: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, VennAdmitError)
}
VERBS = "|".join(typer.main.get_group(app).commands)
COMMAND = re.compile(rf"venn-admit ({VERBS})\b|[ `(]--[a-z]")


def sources() -> Iterator[Path]:
    for name in BELOW:
        path = ROOT / "service" / "venn_admit" / name
        yield from [path] if path.is_file() else sorted(path.rglob("*.py"))


def docstrings(tree: ast.Module) -> set[ast.expr]:
    """The strings that stand alone, as docstrings and comments do."""
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """All literal text except docstrings, f-strings as a whole with {} for what they insert, and where it stands."""
    apart, within = docstrings(tree), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            within |= {id(part) for part in node.values}
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values),
            )
        elif isinstance(node, ast.Constant) and node not in apart and id(node) not in within:
            yield node.lineno, str(node.value)


def raised() -> Iterator[tuple[str, type[VennAdmitError], ast.Call]]:
    """Each error that is made anywhere in the service and its workers: where, of which family, and how."""
    for path in [*(ROOT / "service").rglob("*.py"), *(ROOT / "workers").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FAMILIES:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", FAMILIES[node.func.id], node


def codes_in(node: ast.AST) -> set[Code]:
    return {
        Code[part.attr]
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "Code"
    }


def test_the_pattern_finds_commands_and_options() -> None:
    tree = ast.parse(
        '"""Like `venn-admit fit`."""\nx = f"run `venn-admit fit {name}`"\ny = "with --delta inf"\nz = "--x"'
    )
    found = [line for line, text in texts(tree) if COMMAND.search(text)]
    assert found == [2, 3]


def test_no_message_below_the_shells_names_a_command() -> None:
    read = [(path, line, text) for path in sources() for line, text in texts(ast.parse(path.read_text("utf-8")))]
    assert len({path for path, _, _ in read}) > 100
    assert [f"{path.relative_to(ROOT)}:{line}: {text}" for path, line, text in read if COMMAND.search(text)] == []


def test_each_family_has_a_code_of_its_own() -> None:
    general = [kind.general for kind in FAMILIES.values()]
    assert len(set(general)) == len(general)
    assert {code.family for code in Code} == set(general)
    assert all(code.family == code for code in general)


def test_errors_come_with_a_code_of_their_family_and_its_parameters() -> None:
    wrong = []
    for where, kind, call in raised():
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        codes = codes_in(given.pop("code")) if "code" in given else set()
        wrong += [f"{where}: {code}" for code in codes if code.family != kind.general]
        wrong += [f"{where}: {code}: {set(given)}" for code in codes if set(given) != set(code.parameters)]
    assert wrong == []


def test_each_code_is_used() -> None:
    """A code beside those of the families, which an error has without being told, stands where it is raised."""
    used = {
        code
        for name in ("service", "workers")
        for path in (ROOT / name).rglob("*.py")
        if path.name not in {"errors.py", "advice.py"}
        for code in codes_in(ast.parse(path.read_text("utf-8")))
    }
    assert {code for code in Code if code != code.family} - used == set()


@pytest.mark.parametrize("kind", FAMILIES.values())
def test_an_error_without_a_code_has_that_of_its_family(kind: type[VennAdmitError]) -> None:
    error = kind("too little")
    assert (error.code, error.parameters, advised(error)) == (kind.general, {}, "too little")


def test_a_name_in_a_command_is_quoted_for_the_shell() -> None:
    error = NotReadyError("fit it first", code=Code.NOT_FITTED, classifier="a; b")
    assert advised(error) == "fit it first; run `venn-admit fit 'a; b'`"
