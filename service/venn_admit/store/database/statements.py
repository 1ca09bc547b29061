"""Named SQL statements: each lives in a .sql file under `-- name: ...` and is called by `file.name`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from sqlalchemy import Connection, CursorResult, Row, TextClause, text
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from venn_admit.core.evidence import EVIDENCE

_STREAM_ROWS = 4096
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
# In place of all columns of a method's evidence. They are spelt out, as the result of a statement that the server has
# prepared must not change when a migration adds a column.
_EVIDENCE = re.compile(rf"\b({'|'.join(evidence.table for evidence in EVIDENCE.values())})\.\*")
_PARAMETER = re.compile(r"(?<!:):(\w+)( ?)")


@cache
def _file(name: str) -> dict[str, str]:
    source = resources.files("venn_admit.store").joinpath("sql", f"{name}.sql").read_text("utf-8")
    _, *parts = _NAME.split(_EVIDENCE.sub(_evidence_columns, source))
    return {statement: body.strip().removesuffix(";") for statement, body in zip(parts[::2], parts[1::2], strict=True)}


def _evidence_columns(found: re.Match[str]) -> str:
    (evidence,) = (one for one in EVIDENCE.values() if one.table == found[1])
    return ", ".join(f"{evidence.table}.{field.name}" for field in evidence.fields)


@cache
def statement(name: str) -> TextClause:
    """Return the statement `file.name`; parameters are written `:name`."""
    file, _, key = name.partition(".")
    return text(_file(file)[key])


def execute(connection: Connection, name: str, /, **parameters: Any) -> CursorResult[Any]:
    """Execute the statement `file.name`."""
    return connection.execute(statement(name), parameters)


@cache
def copy_query(name: str) -> str:
    """Return the statement `file.name` with psycopg's placeholders, as the query of a COPY."""
    return str(statement(name).compile(dialect=PGDialect_psycopg()))


@cache
def numbered(name: str) -> tuple[str, list[str]]:
    """Return the statement `file.name` as the server prepares it, with its parameters in the order of their numbers."""
    file, _, key = name.partition(".")
    source, names = _file(file)[key], list[str]()
    for found in _PARAMETER.finditer(source):
        if found[1] not in names:
            names.append(found[1])
    return _PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}{found[2]}", source), names


def statement_names(file: str) -> list[str]:
    """Return the names of the statements of a file, in its order."""
    return list(_file(file))


def filled(name: str, values: Mapping[str, int | str | Sequence[int]]) -> str:
    """Return the statement `file.name` as a reader can run it, with its parameters written out as literals."""
    file, _, key = name.partition(".")

    def literal(found: re.Match[str]) -> str:
        return _literal(values[found[1]]) + ("" if found.string.startswith("::", found.end()) else found[2])

    return f"{_PARAMETER.sub(literal, _file(file)[key])};"


def _literal(value: int | str | Sequence[int]) -> str:
    """A value as SQL has it.

    >>> _literal(3), _literal("film's"), _literal((0, 1, 25))
    ('3', "'film''s'", "'{0,1,25}'")
    """
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        quoted = value.replace("'", "''")
        # A backslash means itself only in a literal of this kind, whatever the server is set to.
        return f" E'{quoted.replace(chr(92), chr(92) * 2)}'" if chr(92) in value else f"'{quoted}'"
    return f"'{{{','.join(map(str, value))}}}'"


def stream(connection: Connection, name: str, parameters: Mapping[str, Any]) -> Iterator[Sequence[Row[Any]]]:
    """Yield the rows of the statement `file.name` in blocks, through a cursor on the server."""
    # Not `yield_per`, which SQLAlchemy honours only in statements that it builds itself.
    options = {"stream_results": True, "max_row_buffer": _STREAM_ROWS}
    with connection.execute(statement(name), parameters, execution_options=options) as result:
        yield from result.partitions(_STREAM_ROWS)
