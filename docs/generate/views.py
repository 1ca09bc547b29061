"""The reference of the views and functions, from the SQL that defines them and the comments in it."""

import re
from dataclasses import replace

from docs.generate.markdown import join, plain, table
from docs.generate.tables import column_type
from venn_admit.store.database import SCHEMA
from venn_admit.store.database.routines import ResultColumn, described_routine, routine_files
from venn_admit.store.database.tables import tables, view_comments

INTRODUCTION = """\
# Views and functions

The views and functions in schema `report` are the public interface of the database: a view keeps its columns, and a
change that would break a reader comes as a new view with the next number. [Report in SQL](../how-to/reporting.md) shows
what can be asked. Let a role of the server read this schema and nothing else:

```console
$ venn-admit db grant-reader ROLE
```"""

SOURCE = re.compile(rf"\b(?:FROM|JOIN) {SCHEMA}\.(?P<table>\w+) AS (?P<alias>\w+)")
PLAIN_COLUMN = re.compile(r"^(?P<alias>\w+)\.(?P<column>\w+)$")


def views_page() -> str:
    """Return the page: one section a view or function, in alphabetical order.

    A view that was defined again, with the same columns, has a second file: its name, `_since_` and the revision. A
    migration may also have changed a comment alone.
    """
    newest, comments = {}, view_comments()
    for path in routine_files():
        sql = path.read_text("utf-8")
        routine = described_routine(sql)
        if routine is not None:
            newest[routine.name] = (routine, sql)
    sections = []
    for routine, sql in newest.values():
        aliases = {match["alias"]: match["table"] for match in SOURCE.finditer(sql)}
        title = routine.name if routine.arguments is None else f"{routine.name}({routine.arguments})"
        of_function = routine.arguments is not None
        view = routine.name.removeprefix("report.")
        columns = [replace(one, comment=comments.get(f"{view}.{one.name}", one.comment)) for one in routine.columns]
        rows = [(f"`{column.name}`", *_origin(column, aliases, of_function)) for column in columns]
        purpose = comments.get(view, routine.purpose)
        sections.append(join(f"## {title}", plain(purpose), table(["column", "type", "meaning"], rows)).rstrip())
    return join(INTRODUCTION, *sections)


def _origin(column: ResultColumn, aliases: dict[str, str], of_function: bool) -> tuple[str, str]:
    """The type and the meaning: of a table's column as the table has them, otherwise the comment in the file."""
    if of_function:
        return column.expression, plain(column.comment)
    found = PLAIN_COLUMN.match(column.expression)
    source = tables().tables.get(f"{SCHEMA}.{aliases.get(found['alias'], '')}") if found else None
    stored = None if source is None or found is None else source.columns.get(found["column"])
    if stored is not None:
        return column_type(stored), plain(column.comment or stored.comment or "")
    return "", plain(column.comment) or f"`{column.expression}`"
