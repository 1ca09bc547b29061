"""The history of migrations: one line, up and down, and read as they make it, for programs old and new."""

import re
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from io import StringIO

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from pytest_alembic import MigrationContext, tests
from sqlalchemy import Engine, text

from tests.migrations.migrating import facts, move, run_script
from venn_admit.errors import DatabaseError
from venn_admit.store.database import SCHEMA, schema
from venn_admit.store.database.engine import connect, create_engine, transaction
from venn_admit.store.database.tables import differences, tables
from venn_admit.store.exemplars import classifiers

UNCOMMENTED = """
SELECT c.relname || coalesce('.' || a.attname, '')
FROM pg_class AS c
LEFT JOIN pg_attribute AS a ON c.oid = a.attrelid AND a.attnum > 0 AND NOT a.attisdropped
WHERE
    c.relnamespace = to_regnamespace('venn_admit')
    AND c.relkind IN ('r', 'p')
    AND c.relname <> 'alembic_version'
    AND (
        obj_description(c.oid, 'pg_class') IS NULL
        OR col_description(c.oid, a.attnum) IS NULL
    )
"""


# What migrations say of tables, and is not read.
UNREAD = ("right of ", "stored with autovacuum")


@pytest.mark.parametrize(
    "promise",
    [
        tests.test_single_head_revision,
        tests.test_upgrade,
        tests.test_up_down_consistency,
    ],
)
def test_history(alembic_runner: MigrationContext, promise: Callable[[MigrationContext], None]) -> None:
    promise(alembic_runner)


def test_tables_are_read_as_the_migrations_make_them(engine: Engine, empty: Engine) -> None:
    with transaction(empty) as connection:
        connection.execute(text("CREATE EXTENSION vector WITH SCHEMA public"))
        connection.execute(text(f"CREATE SCHEMA {SCHEMA}"))
        tables().create_all(connection)
    found = facts(engine)
    views = tuple(name for name, fact in found if fact.startswith("relation v"))
    made = {
        (name, fact)
        for name, fact in found
        if not name.startswith(("report", *views)) and "(" not in name and not fact.startswith(UNREAD)
    }
    assert {(name, fact) for name, fact in facts(empty) if not fact.startswith(UNREAD)} == made


def test_a_database_does_not_differ(database: str) -> None:
    """On a connection as the command line makes it, with run-time partitions there."""
    engine = create_engine(database)
    try:
        with engine.begin() as connection:
            classifiers.create(
                connection,
                name="reviews",
                class_names=("negative", "positive"),
                dimension=3,
                neighbour_count=1,
                knn_share=Decimal("0.1"),
                mc_share=Decimal("0.45"),
                seed=0,
            )
        assert differences(engine) == []
    finally:
        engine.dispose()


def test_every_table_and_column_has_a_comment(engine: Engine) -> None:
    with connect(engine) as connection:
        assert connection.execute(text(UNCOMMENTED)).scalars().all() == []


def test_the_way_back_leaves_nothing(restored: Engine, engine: Engine) -> None:
    """Not even rights; and from there, there is a way to head."""
    move(restored, "base", command.downgrade)
    left = {fact for fact in facts(restored) if "right of postgres" not in fact[1]}
    assert {(name, fact) for name, fact in left if not fact.startswith("right of ")} == {(SCHEMA, "schema")}
    assert not {fact for _, fact in left if "venn_admit_" in fact}
    move(restored, "head")
    assert facts(restored) == facts(engine)


def test_each_step_back_leads_to_what_was_there(empty: Engine) -> None:
    revisions = [script.revision for script in ScriptDirectory.from_config(schema.alembic_config()).walk_revisions()]
    before = {}
    for revision in reversed(revisions):
        move(empty, revision)
        before[revision] = facts(empty)
    for revision in revisions[1:]:
        move(empty, revision, command.downgrade)
        assert facts(empty) ^ before[revision] == set(), revision


def test_what_was_asked_for_in_python_is_of_the_command_line_before(engine: Engine) -> None:
    """As programs from before say it, which refuse an origin that they do not know."""
    origins = text("SELECT DISTINCT origin FROM audit_event")
    with transaction(engine) as connection:
        connection.execute(text("INSERT INTO audit_event (origin, action, is_replay) VALUES ('python', 'test', FALSE)"))
    move(engine, "0112", command.downgrade)
    with transaction(engine) as connection:
        assert connection.execute(origins).scalars().all() == ["command line"]
    with pytest.raises(DatabaseError, match="audit_event_origin_check"), transaction(engine) as connection:
        connection.execute(text("UPDATE audit_event SET origin = 'python'"))


def test_sql_for_offline_use_makes_the_same(engine: Engine, empty: Engine) -> None:
    config, script = schema.alembic_config(), StringIO()
    config.output_buffer = script
    command.upgrade(config, "head", sql=True)
    # As psql does, one statement after the other: several at once are one transaction, in which no index is built
    # CONCURRENTLY.
    with empty.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for part in re.split(
            r"^(BEGIN;|COMMIT;|(?:DROP|CREATE) INDEX CONCURRENTLY.*?;)$", script.getvalue(), flags=re.M
        ):
            run_script(connection, part)
    assert facts(empty) == facts(engine)
    assert schema.current_revision(empty) == schema.head_revision()


@pytest.mark.processes
def test_two_migrators_at_once(engine: Engine, empty_database: str, empty: Engine) -> None:
    program = "import sys; from venn_admit.store.database.schema import upgrade; upgrade(sys.argv[1])"
    migrators = [
        subprocess.Popen([sys.executable, "-c", program, empty_database], stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for migrator in migrators:
        _, said = migrator.communicate()
        assert migrator.returncode == 0, said
    assert facts(empty) == facts(engine)
