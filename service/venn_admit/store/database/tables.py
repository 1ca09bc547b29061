"""The tables that the migrations make, as SQLAlchemy's metadata, and how those of a database differ from them.

They are read from the SQL of the migrations, so that a table, its columns and what these mean stand there and nowhere
else. Statements do not need them: what needs them compares a database with them, or writes their reference.
"""

import re
from collections.abc import Iterator
from functools import cache
from io import StringIO
from typing import Any

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from pgvector.sqlalchemy import VECTOR
from sqlalchemy import (
    CheckConstraint,
    Column,
    Computed,
    Constraint,
    DateTime,
    Engine,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
    inspect,
    text,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine.reflection import Inspector
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

from venn_admit.store.database import SCHEMA
from venn_admit.store.database.engine import connect, create_engine
from venn_admit.store.database.routines import defined_columns
from venn_admit.store.database.schema import alembic_config

_TABLE = re.compile(
    rf"^CREATE (?P<unlogged>UNLOGGED )?TABLE {SCHEMA}\.(?P<name>(?!alembic_version)\w+) \(\n(?P<items>.*?)^\)"
    r"(\s+PARTITION BY (?P<partition>LIST \(\w+\)))?",
    re.MULTILINE | re.DOTALL,
)
_ADDED = re.compile(
    rf"^ALTER TABLE {SCHEMA}\.(?P<table>\w+) ADD (?:COLUMN )?(?P<item>[^;]*?)(?: NOT VALID)?;$", re.MULTILINE
)
_REPLACED = re.compile(
    rf"^ALTER TABLE {SCHEMA}\.\w+ DROP CONSTRAINT (?P<name>\w+), "
    r"ADD CONSTRAINT (?P<rule>(?P=name) CHECK \([^;]*\))(?: NOT VALID)?;",
    re.MULTILINE,
)
_INDEX = re.compile(
    rf"^CREATE (?P<unique>UNIQUE )?INDEX (?:CONCURRENTLY )?(?P<name>\w+)\s+ON {SCHEMA}\.(?P<table>\w+)"
    r"(?: USING (?P<using>\w+))? \((?P<keys>[^;]*?)\)"
    r"(?:\s+INCLUDE \((?P<include>[^;]*?)\))?(?:\s+WITH \((?P<options>[^;]*?)\))?(?:\s+WHERE (?P<where>[^;]*?))?;",
    re.MULTILINE,
)
_DROPPED = re.compile(rf"^DROP INDEX (?:CONCURRENTLY )?(?:IF EXISTS )?{SCHEMA}\.(?P<name>\w+);$", re.MULTILINE)
_TEXT = r"(?P<of>\S+) IS '(?P<text>(?:[^']|'')*)'"
_COMMENT = re.compile(rf"^COMMENT ON (?:TABLE|COLUMN) {SCHEMA}\.{_TEXT}", re.MULTILINE)
_VIEW_COMMENT = re.compile(rf"^COMMENT ON (?:VIEW|COLUMN) report\.{_TEXT}", re.MULTILINE)

_COLUMN = re.compile(
    r"(?P<type>[a-z0-9. ]+?)(?P<many>\[\])?(?= NOT NULL| DEFAULT| GENERATED| REFERENCES| PRIMARY|$)", re.I
)
_DEFAULT = re.compile(r"(?<!BY) DEFAULT (.+?)(?= NOT NULL|$)")
_COMPUTED = re.compile(r" GENERATED ALWAYS AS \((.+)\) STORED")
_IDENTITY = re.compile(r" GENERATED (ALWAYS|BY DEFAULT) AS IDENTITY")
_REFERENCE = re.compile(
    rf"REFERENCES (?P<table>{SCHEMA}\.\w+) \((?P<keys>[^)]*)\)(?: ON DELETE (?P<then>CASCADE|SET NULL))?"
)
_CONSTRAINT = re.compile(r"(?P<name>\w+) (?P<kind>PRIMARY KEY|UNIQUE|FOREIGN KEY) ?\((?P<keys>[^)]*)\)")
_CHECK = re.compile(r"(?P<name>\w+) CHECK \((?P<rule>.*)\)")

_TYPES: dict[str, TypeEngine[Any]] = {
    "timestamp with time zone": DateTime(timezone=True),
    "bit varying": postgresql.BIT(varying=True),
    "public.vector": VECTOR(),
}
"""The types that are more than their name."""


@cache
def tables() -> MetaData:
    """Return the tables that the migrations make; this takes a second."""
    return read_tables(_upgrade_script())


def view_comments() -> dict[str, str]:
    """Return the comments of views of schema `report`, and of their columns, by names such as `job_v2.state`."""
    return {found["of"]: _unquoted(found["text"]) for found in _VIEW_COMMENT.finditer(_upgrade_script())}


@cache
def _upgrade_script() -> str:
    """Return the SQL of all migrations."""
    config, script = alembic_config(), StringIO()
    config.output_buffer = script
    command.upgrade(config, "head", sql=True)
    return script.getvalue()


def read_tables(script: str) -> MetaData:
    """Return the tables that a script makes."""
    metadata = MetaData(schema=SCHEMA)
    dropped = {found["name"]: found.start() for found in _DROPPED.finditer(script)}
    indexes = [found for found in _INDEX.finditer(script) if found.start() > dropped.get(found["name"], -1)]
    comments = {found["of"]: _unquoted(found["text"]) for found in _COMMENT.finditer(script)}
    replaced = {found["name"]: " ".join(found["rule"].split()) for found in _REPLACED.finditer(script)}
    for found in _TABLE.finditer(script):
        name = found["name"]
        added = [each["item"] for each in _ADDED.finditer(script) if each["table"] == name]
        Table(
            name,
            metadata,
            *_items(name, ",\n".join([found["items"].rstrip(), *added]), comments, replaced),
            *(_index(each) for each in indexes if each["table"] == name),
            comment=comments[name],
            prefixes=["UNLOGGED"] if found["unlogged"] else [],
            postgresql_partition_by=found["partition"],
        )
    return metadata


def _unquoted(text: str) -> str:
    return text.replace("''", "'")


def _items(table: str, lines: str, comments: dict[str, str], replaced: dict[str, str]) -> Iterator[SchemaItem]:
    for item in defined_columns(lines):
        if item.name != "CONSTRAINT":
            yield _column(item.name, item.expression, comments[f"{table}.{item.name}"])
        else:
            name, _, _ = item.expression.partition(" ")
            yield _constraint(replaced.get(name, item.expression))


def _column(name: str, rules: str, comment: str) -> Column[Any]:
    found = _COLUMN.match(rules)
    assert found is not None, f"the type of {name} {rules}"
    kind = found["type"].lower()
    one = _TYPES.get(kind) or postgresql.dialect.ischema_names[kind]()
    extra: list[SchemaItem] = []
    if identity := _IDENTITY.search(rules):
        extra.append(Identity(always=identity[1] == "ALWAYS"))
    if computed := _COMPUTED.search(rules):
        extra.append(Computed(computed[1], persisted=True))
    if reference := _REFERENCE.search(rules):
        extra.append(ForeignKey(f"{reference['table']}.{reference['keys']}", ondelete=reference["then"]))
    default = _DEFAULT.search(rules)
    return Column(
        name,
        postgresql.ARRAY(one) if found["many"] else one,
        *extra,
        primary_key=" PRIMARY KEY" in rules,
        nullable=re.search(" NOT NULL| PRIMARY KEY| AS IDENTITY", rules) is None,
        server_default=None if default is None else text(default[1]),
        comment=comment,
    )


def _constraint(rule: str) -> Constraint:
    if check := _CHECK.fullmatch(rule):
        return CheckConstraint(check["rule"], name=check["name"])
    found = _CONSTRAINT.match(rule)
    assert found is not None, rule
    keys = found["keys"].split(", ")
    if found["kind"] == "PRIMARY KEY":
        return PrimaryKeyConstraint(*keys, name=found["name"])
    if found["kind"] == "UNIQUE":
        return UniqueConstraint(*keys, name=found["name"])
    reference = _REFERENCE.search(rule)
    assert reference is not None, rule
    to = [f"{reference['table']}.{key}" for key in reference["keys"].split(", ")]
    return ForeignKeyConstraint(keys, to, name=found["name"], ondelete=reference["then"])


def _index(found: re.Match[str]) -> Index:
    # A comma that no closing bracket follows without an opening one is between two keys.
    keys = re.split(r",\s*(?![^()]*\))", found["keys"])
    return Index(
        found["name"],
        *(key if key.isidentifier() else text(key) for key in keys),
        unique=found["unique"] is not None,
        postgresql_using=found["using"],
        postgresql_include=found["include"] and found["include"].split(", "),
        postgresql_with=dict(re.findall(r"(\w+) = (\w+)", found["options"] or "")),
        postgresql_where=found["where"] and text(found["where"]),
    )


def differences(engine: Engine) -> list[str]:
    """Return in what tables, columns, defaults, constraints and indexes a database is not as this program needs it.

    CHECK constraints are compared by their names, because the server writes their rules in its own way.
    """
    own = create_engine(engine.url.render_as_string(hide_password=False))
    try:
        with connect(own) as connection:
            # Our search path makes our schema the default one, which Alembic would reflect without a name.
            connection.dialect.default_schema_name = "public"
            options = {
                "version_table_schema": SCHEMA,
                "include_schemas": True,
                "include_name": _is_own_schema,
                "include_object": _is_own_object,
                "compare_server_default": True,
            }
            context = MigrationContext.configure(connection, opts=options)
            found = [_described(one) for one in compare_metadata(context, tables())]
            return found + list(_differing_constraints(inspect(connection)))
    finally:
        own.dispose()


def _differing_constraints(inspector: Inspector) -> Iterator[str]:
    """What Alembic compares in no table: primary keys and CHECK constraints."""
    keys = inspector.get_multi_pk_constraint(SCHEMA)
    checks = inspector.get_multi_check_constraints(SCHEMA)
    for table in tables().tables.values():
        at = (SCHEMA, table.name)
        if at not in keys:
            continue
        if keys[at]["constrained_columns"] != [column.name for column in table.primary_key]:
            yield f"differs in primary key {table.fullname}"
        needed = {str(one.name) for one in table.constraints if isinstance(one, CheckConstraint)}
        there = {str(one["name"]) for one in checks[at]}
        yield from (f"lacks constraint {table.fullname}.{name}" for name in sorted(needed - there))
        yield from (f"has besides constraint {table.fullname}.{name}" for name in sorted(there - needed))


def _is_own_object(_object: object, name: str | None, type_: str, reflected: bool, _compare_to: object) -> bool:
    """Leave out what is made at run time: the partitions of exemplar_vector, two a classifier."""
    made_at_run_time = type_ == "table" and reflected and (name or "").startswith("exemplar_vector_")
    return not made_at_run_time


def _is_own_schema(name: str | None, type_: str, _parents: object) -> bool:
    """Leave out what other programs keep in the same database."""
    return name == SCHEMA if type_ == "schema" else True


def _described(difference: Any) -> str:
    """A difference as Alembic tells it: what to do to the database, and to what."""
    verb, *what = difference[0] if isinstance(difference, list) else difference
    action, _, kind = verb.partition("_")
    if action == "modify":
        schema, table, column, *_ = what
        return f"differs in {kind} {schema}.{table}.{column}"
    said = {"add": "lacks", "remove": "has besides"}[action]
    if kind == "fk":  # which need have no name
        (key,) = what
        return f"{said} foreign key {key.table.fullname} ({', '.join(key.column_keys)})"
    named = [str(getattr(part, "name", part)) for part in what if part is not None]
    return f"{said} {kind.replace('_', ' ')} {'.'.join(named)}"
