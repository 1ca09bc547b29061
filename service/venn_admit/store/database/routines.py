"""Tables, views and functions: the SQL of their files, and the comments there that describe them.

A comment above CREATE TABLE, and those above its columns, are stored in the database. So are those of views and
functions of schema `report`, from which the reference is written: a file begins with a comment that says what the view
or function is for, and a comment above a column of the last SELECT, or of RETURNS TABLE, says what the column means.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from venn_admit.resources import bundled_folder

_TABLE = re.compile(r"^CREATE (?:UNLOGGED )?TABLE (?P<name>\w+\.\w+) \(\n(?P<columns>.*?)^\)", re.MULTILINE | re.DOTALL)
_CREATE_VIEW = re.compile(r"^CREATE VIEW", re.MULTILINE)
_VIEW = re.compile(r"^CREATE VIEW (?P<name>report\.\w+) AS$", re.MULTILINE)
_FUNCTION = re.compile(
    r"^CREATE (?:OR REPLACE )?FUNCTION (?P<name>report\.\w+)\((?P<arguments>[^)]*)\)\n"
    r"RETURNS TABLE \(\n(?P<columns>.*?)^\)$",
    re.MULTILINE | re.DOTALL,
)
# The last SELECT that is not indented: those of common table expressions are.
_COLUMNS = re.compile(r"^SELECT$(?P<columns>.*?)^FROM\b", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of a view or function: its name, the expression or type behind it, and its comment, if any."""

    name: str
    expression: str
    comment: str


@dataclass(frozen=True, slots=True)
class Routine:
    """A view or function. name: with its schema. arguments: of a function, such as `q integer`; None for a view."""

    name: str
    purpose: str
    arguments: str | None
    columns: list[ResultColumn]


def table_statements(path: str) -> Iterator[str]:
    """Yield the statements that make the tables of a file, and their comments.

    path: folder and name of the file, such as `baseline/work`.
    """
    sql = (bundled_folder("migrations") / f"{path}.sql").read_text("utf-8")
    yield sql
    for table in _TABLE.finditer(sql):
        above = sql[: table.start()].rpartition("\n\n")[2]
        yield f"COMMENT ON TABLE {table['name']} IS {_quoted(_purpose(above))}"
        for item in defined_columns(table["columns"]):
            if item.name != "CONSTRAINT":
                yield f"COMMENT ON COLUMN {table['name']}.{item.name} IS {_quoted(item.comment)}"


def routine_statements(path: str, *, replace: bool = False) -> Iterator[str]:
    """Yield the statements that make a view or function, and its comments in schema `report`.

    path: folder and name of its file, such as `views/decision_v2`. replace: whether a view of its name is there.
    """
    sql = (bundled_folder("migrations") / "routines" / f"{path}.sql").read_text("utf-8")
    yield _CREATE_VIEW.sub("CREATE OR REPLACE VIEW", sql) if replace else sql
    routine = described_routine(sql)
    if routine is None:
        return
    without = [column.name for column in routine.columns if not column.comment]
    assert not without, f"columns without a comment in {path}.sql: {', '.join(without)}"
    if routine.arguments is None:
        yield f"COMMENT ON VIEW {routine.name} IS {_quoted(routine.purpose)}"
        for column in routine.columns:
            yield f"COMMENT ON COLUMN {routine.name}.{column.name} IS {_quoted(column.comment)}"
    else:
        # The columns of a function have no comments of their own.
        meanings = [f"{column.name}: {column.comment}" for column in routine.columns]
        yield f"COMMENT ON FUNCTION {routine.name} IS {_quoted(chr(10).join([routine.purpose, *meanings]))}"


def changed_comments(comments: Mapping[str, str]) -> Iterator[str]:
    """Yield the statements that give other comments to views, and to columns, all named with schema and table."""
    for name, comment in comments.items():
        yield f"COMMENT ON {_kind(name)} {name} IS {_quoted(comment)}"


def former_comments(names: Iterable[str], *, views: Sequence[str] = (), tables: Sequence[str] = ()) -> Iterator[str]:
    """Yield the statements that give views and columns the comments of the files that first had them.

    views: paths as in `routine_statements`. tables: paths as in `table_statements`.
    """
    beginnings = tuple(f"COMMENT ON {_kind(name)} {name} " for name in names)
    for statements in (*map(routine_statements, views), *map(table_statements, tables)):
        yield from (statement for statement in statements if statement.startswith(beginnings))


def oldest_program(revision: str) -> str:
    """Return the statement by which the schema says which programs it serves: those of a revision, and newer ones."""
    return (
        "CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE "
        f"RETURN '{revision}'"
    )


def routine_files() -> list[Path]:
    """Return the files that define views and functions, in the order of their names."""
    return sorted((bundled_folder("migrations") / "routines").rglob("*.sql"), key=lambda path: path.name)


def described_routine(sql: str) -> Routine | None:
    """Return what a file says of its view, or of its function that returns a table; None if it is not of `report`."""
    found = _VIEW.search(sql) or _FUNCTION.search(sql)
    if found is None:
        return None
    parts = found.groupdict()
    lines = parts["columns"] if "columns" in parts else _last_columns(sql)
    described = defined_columns(lines) if "columns" in parts else _of_select(lines)
    return Routine(parts["name"], _purpose(sql[: found.start()]), parts.get("arguments"), described)


def view_columns(sql: str) -> list[ResultColumn]:
    """Return the columns of the view that a file defines."""
    return _of_select(_last_columns(sql))


def _kind(name: str) -> str:
    return "COLUMN" if name.count(".") > 1 else "VIEW"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _purpose(head: str) -> str:
    return " ".join(" ".join(line.removeprefix("--") for line in head.splitlines()).split())


def _last_columns(sql: str) -> str:
    *_, found = _COLUMNS.finditer(sql)
    return found["columns"]


def _of_select(lines: str) -> list[ResultColumn]:
    columns = []
    for text, comment in _commented(lines):
        expression, _, name = text.rpartition(" AS ")
        columns.append(ResultColumn(name if expression else name.rpartition(".")[2], expression or name, comment))
    return columns


def defined_columns(lines: str) -> list[ResultColumn]:
    """Return the columns, with their types and rules, in the lines between the brackets of a table's definition."""
    columns = []
    for text, comment in _commented(lines):
        name, _, kind = text.partition(" ")
        columns.append(ResultColumn(name, kind, comment))
    return columns


def _commented(lines: str) -> Iterator[tuple[str, str]]:
    """Yield each item of a list over several lines, as one line, with the comment above it."""
    item, comment = "", ""
    for line in map(str.strip, lines.strip().splitlines()):
        if line.startswith("--"):
            comment = f"{comment} {line.removeprefix('--').strip()}".strip()
            continue
        item = f"{item} {line}"
        if line.endswith(",") and item.count("(") == item.count(")"):
            yield " ".join(item.removesuffix(",").split()), comment
            item, comment = "", ""
    yield " ".join(item.split()), comment
