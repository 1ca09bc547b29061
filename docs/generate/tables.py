"""The reference of the tables, from the migrations, below a diagram of them."""

from sqlalchemy import Column, Table
from sqlalchemy.dialects import postgresql

from docs.generate.diagram import diagram
from docs.generate.markdown import join, plain, table
from venn_admit.store.database import SCHEMA
from venn_admit.store.database.tables import tables

# Without a table of contents, which the diagram is, there is room for it.
INTRODUCTION = f"""\
---
hide: [toc]
---

# Tables

The tables in schema `{SCHEMA}` are private: they may change with any release. Read the [views](views.md) instead.
This page is for those who work on the program or look into a database by hand.

An arrow points from a table to one that it refers to; click a table to see its columns."""


def tables_page() -> str:
    """Return the page: the diagram, then each table in alphabetical order."""
    described = sorted(tables().tables.values(), key=lambda each: each.name)
    return join(INTRODUCTION, f'<div class="schema">{diagram(described)}</div>', *map(_section, described))


def _section(described: Table) -> str:
    rows = [
        (f"`{column.name}`", column_type(column), _role(column), plain(column.comment or ""))
        for column in described.columns
    ]
    return join(
        f"## {described.name}",
        plain(described.comment or ""),
        table(["column", "type", "key", "meaning"], rows),
    ).rstrip()


def column_type(column: Column[object]) -> str:
    """Return the type as Postgres calls it, and whether it may be null."""
    name = column.type.compile(dialect=postgresql.dialect())
    return f"{name.lower()}{', null' if column.nullable else ''}"


def _role(column: Column[object]) -> str:
    parts = ["primary"] if column.primary_key else []
    for key in column.foreign_keys:
        target = key.column.table.name
        parts.append(f"[{target}](#{target})")
    return ", ".join(parts)
