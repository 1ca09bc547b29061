"""The reference of the views, from the SQL that defines them and the comments in it."""

import re
from dataclasses import dataclass
from pathlib import Path

from docs.generate.markdown import join, one_line, plain, table
from docs.generate.tables import column_type
from venn_admit.service.resources import bundled_folder
from venn_admit.service.store.database.tables import SCHEMA, metadata

INTRODUCTION = """\
# Views

The views in schema `report` are the public interface of the database: a view keeps its columns, and a change that would
break a reader comes as a new view with the next number. Give a reporting tool a role that can read this schema and
nothing else:

```sql
GRANT USAGE ON SCHEMA report TO reporting;
GRANT SELECT ON ALL TABLES IN SCHEMA report TO reporting;
```"""

VIEW = re.compile(r"^CREATE (?:OR REPLACE )?VIEW report\.(?P<name>\w+) AS$", re.MULTILINE)
# The last SELECT that is not indented: those of common table expressions are.
COLUMNS = re.compile(r"^SELECT$(?P<columns>.*?)^FROM\b", re.MULTILINE | re.DOTALL)
SOURCE = re.compile(rf"\b(?:FROM|JOIN) {SCHEMA}\.(?P<table>\w+) AS (?P<alias>\w+)")
PLAIN_COLUMN = re.compile(r"^(?P<alias>\w+)\.(?P<column>\w+)$")


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """One column of a view: its name, the expression behind it, and the comment above that, which may be empty."""

    name: str
    expression: str
    comment: str


def views_page() -> str:
    """Return the page: one section a view, in alphabetical order.

    A view that was defined again, with the same columns, has a second file: its name, `_since_` and the revision.
    """
    files = sorted((bundled_folder("migrations") / "routines").rglob("*.sql"), key=lambda path: path.name)
    defined = {found["name"]: path for path in files for found in VIEW.finditer(path.read_text())}
    return join(INTRODUCTION, *(_section(path) for path in defined.values()))


def _section(path: Path) -> str:
    sql = path.read_text()
    found = VIEW.search(sql)
    assert found is not None
    purpose = " ".join(line.removeprefix("--").strip() for line in sql[: found.start()].splitlines())
    aliases = {match["alias"]: match["table"] for match in SOURCE.finditer(sql)}
    rows = [(f"`{column.name}`", *_origin(column, aliases)) for column in view_columns(sql)]
    return join(f"## report.{found['name']}", plain(purpose), table(["column", "type", "meaning"], rows)).rstrip()


def view_columns(sql: str) -> list[ViewColumn]:
    """Return the columns of the view that a file defines."""
    (found,) = COLUMNS.finditer(sql)
    columns, comment, lines = [], "", ""
    for line in found["columns"].strip().splitlines():
        if line.strip().startswith("--"):
            comment = f"{comment} {line.strip().removeprefix('--').strip()}".strip()
            continue
        lines = f"{lines} {line.strip()}"
        if line.endswith(",") and lines.count("(") == lines.count(")"):
            columns.append(_column(lines.removesuffix(","), comment))
            comment, lines = "", ""
    return [*columns, _column(lines, comment)]


def _column(sql: str, comment: str) -> ViewColumn:
    expression, _, name = one_line(sql).rpartition(" AS ")
    return ViewColumn(name if expression else name.rpartition(".")[2], expression or name, comment)


def _origin(column: ViewColumn, aliases: dict[str, str]) -> tuple[str, str]:
    """The type and the meaning: of a table's column as the table has them, otherwise the comment in the view."""
    found = PLAIN_COLUMN.match(column.expression)
    source = metadata.tables.get(f"{SCHEMA}.{aliases.get(found['alias'], '')}") if found else None
    stored = None if source is None or found is None else source.columns.get(found["column"])
    if stored is not None:
        return column_type(stored), plain(column.comment or stored.comment or "")
    return "", plain(column.comment) or f"`{column.expression}`"
