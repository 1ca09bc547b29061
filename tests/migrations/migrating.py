"""Migrations up and down, what a database holds, and one that the migrations before the baseline made."""

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, text

from tests.running import workspace
from venn_admit.flows.decisions.replay import replay
from venn_admit.store.database import schema
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.search.array_cache import ArrayCache

FOLDER = Path(__file__).parent
FACTS = (FOLDER / "facts.sql").read_text()

TABLES = """
SELECT relname
FROM pg_class
WHERE
    relnamespace = to_regnamespace('venn_admit')
    AND relkind IN ('r', 'p')
    AND NOT relispartition
    AND relname <> 'alembic_version'
"""


def move(
    engine: Engine,
    revision: str,
    direction: Callable[[Config, str], None] = command.upgrade,
    config: Config | None = None,
) -> None:
    with engine.connect() as connection:
        config = config or schema.alembic_config()
        config.attributes["connection"] = connection
        direction(config, revision)


def restore(engine: Engine) -> None:
    """Load the plain dump of a small database, as the migrations before the baseline and their program made it."""
    dump = gzip.decompress((FOLDER / "database_at_baseline.sql.gz").read_bytes()).decode()
    with transaction(engine) as connection:
        connection.execute(text("CREATE EXTENSION vector WITH SCHEMA public"))
        # A function may be made before what it names.
        run_script(connection, "SET LOCAL check_function_bodies = false; SET LOCAL search_path = ''")
        if connection.execute(text("SHOW server_version_num")).scalar_one() < "170000":
            dump = dump.replace("DELETE,MAINTAIN,UPDATE", "DELETE,UPDATE")
        run_script(connection, dump)


def as_a_newer_program_left_it(engine: Engine, oldest_program: str) -> None:
    """Have a schema say that a newer program migrated it, and which programs it serves."""
    with transaction(engine) as connection:
        connection.exec_driver_sql("UPDATE venn_admit.alembic_version SET version_num = '9999'")
        connection.exec_driver_sql(
            "CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text "
            f"LANGUAGE sql IMMUTABLE RETURN '{oldest_program}'"
        )


def run_script(connection: Connection, script: str) -> None:
    """Several statements at once, which the driver takes where they have no parameters."""
    driver_connection = connection.connection.driver_connection
    assert driver_connection is not None
    driver_connection.execute(script)


def facts(engine: Engine) -> set[tuple[str, str]]:
    """Name and property of everything in our schemas."""
    with connect(engine) as connection:
        return {(name, fact) for name, fact in connection.execute(text(FACTS))}


def table_contents(engine: Engine) -> dict[str, list[str]]:
    """The rows of each table; those of a later migration's columns too."""
    with connect(engine) as connection:
        tables = connection.execute(text(TABLES)).scalars().all()
        return {
            table: sorted(connection.execute(text(f"SELECT to_jsonb(t)::text FROM {table} AS t")).scalars())
            for table in tables
        }


def assert_replay_equal(engine: Engine, cache: ArrayCache, decision_ids: list[int]) -> None:
    """Decisions that another machine may have made replay equal, but for the last bits of its exponentials."""
    for decision_id in decision_ids:
        found = replay(workspace(engine, cache), decision_id)
        for name in found.differing:
            assert_equal_but_for_rounding(found.computed[name], found.stored[name])


def assert_equal_but_for_rounding(computed: Any, stored: Any) -> None:
    """Assert that values are equal or, if they are floats, that they differ by less than 1e-13 of them."""
    if isinstance(stored, Sequence) and not isinstance(stored, str):
        for one, other in zip(computed, stored, strict=True):
            assert_equal_but_for_rounding(one, other)
    elif isinstance(stored, float):
        assert computed == pytest.approx(stored, rel=1e-13)
    else:
        assert computed == stored
