"""Migrations up and down, and what a database holds at a revision."""

from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, inspect, text

from venn_admit.service.flows.decisions.replay import replay
from venn_admit.service.store.database import schema
from venn_admit.service.store.database.engine import connect, transaction
from venn_admit.service.store.database.tables import SCHEMA
from venn_admit.service.store.search.array_cache import ArrayCache

ROWS = (Path(__file__).parent / "rows_at_0004.sql").read_text()
FACTS = (Path(__file__).parent / "facts.sql").read_text()

# A second setting, tried once between two calibrations under the first.
LATER_CALIBRATOR = """
INSERT INTO venn_admit.calibrator (classifier_id, settings_digest, alpha, delta, kappa, bin_edges, thresholds)
VALUES (1, '\\x01', 0.1, 1, 2, '{0,1}', '{0.9,0.95}');

UPDATE venn_admit.calibration SET state = 'retired';

INSERT INTO venn_admit.calibration (
    calibrator_id, number, knn_parameters_id, s_hat, omega, mc_count, vp_count, reason, state, created_at
)
VALUES
(2, 1, 1, 0.1, 0.1, 1, 1, 'other', 'current', now() + interval '1 minute'),
(1, 2, 1, 0.1, 'Infinity', 1, 1, 'again', 'current', now() + interval '2 minutes');
"""

COMMENTS = """
SELECT c.relname || coalesce('.' || a.attname, '') AS name, d.description
FROM pg_description AS d
INNER JOIN pg_class AS c ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass
LEFT JOIN pg_attribute AS a ON c.oid = a.attrelid AND d.objsubid = a.attnum AND d.objsubid > 0
WHERE
    c.relnamespace = to_regnamespace('venn_admit')
    AND c.relkind IN ('r', 'p')
"""

# Of tables that are there whatever classifiers there are; by name, as a column that comes back comes last.
COLUMNS = """
SELECT c.relname AS table, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attname) AS columns
FROM pg_class AS c
INNER JOIN pg_attribute AS a ON c.oid = a.attrelid AND a.attnum > 0 AND NOT a.attisdropped
WHERE
    c.relnamespace = to_regnamespace('venn_admit')
    AND c.relkind IN ('r', 'p')
    AND NOT c.relispartition
    AND c.relname <> 'alembic_version'
GROUP BY c.relname
"""

# What columns were called before, and are called now.
RENAMED = {
    "complete_to": "support_version",
    "neighbours_complete_to": "neighbours_support_version",
    "r": "vector",
}


# Columns that are in a table of their own since 0017: its name, its key, and the columns.
MOVED = {
    "calibration": [("band_radius", "calibration_id", {"s_hat", "omega"})],
    "decision": [("admit_evidence", "decision_id", {"admit_set", "band_size", "threshold", "category_size"})],
}


# The checks and HNSW indexes of a classifier's partitions, without its number.
PARTITIONS = """
SELECT
    replace(conname, '_' || :classifier || '_', '_N_') AS name,
    regexp_replace(pg_get_constraintdef(oid), '= \\d+', '= N') AS definition
FROM pg_constraint
WHERE contype = 'c' AND conrelid::regclass::text LIKE '%exemplar\\_vector\\_' || :classifier || '\\_%'
UNION ALL
SELECT
    replace(indexname, '_' || :classifier || '_', '_N_'),
    replace(indexdef, '_' || :classifier || '_', '_N_')
FROM pg_indexes
WHERE indexname = 'exemplar_vector_' || :classifier || '_support_hnsw_idx'
"""


def move(engine: Engine, revision: str, direction: Callable[[Config, str], None] = command.upgrade) -> None:
    with engine.connect() as connection:
        config = schema.alembic_config()
        config.attributes["connection"] = connection
        direction(config, revision)


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


def columns(engine: Engine) -> dict[str, str]:
    """Of each table, its columns."""
    with connect(engine) as connection:
        return {row.table: row.columns for row in connection.execute(text(COLUMNS))}


def columns_of_before(engine: Engine) -> dict[str, str]:
    """Of each table, its columns but those that a downgrade loses, as no older version has a place for them."""
    found = columns(engine)
    return found | {"job_chunk": found["job_chunk"].replace("claimed_at, ", "").replace("late_at, ", "")}


def comments(engine: Engine) -> dict[str, str]:
    """The comment of each table, and of each column as `table.column`."""
    with connect(engine) as connection:
        return {row.name: row.description for row in connection.execute(text(COMMENTS))}


def renamed(columns: dict[str, str]) -> dict[str, str]:
    """The same columns by the names of now."""
    return {table: ", ".join(RENAMED.get(name, name) for name in names.split(", ")) for table, names in columns.items()}


def unordered(columns: dict[str, str]) -> dict[str, set[str]]:
    return {table: set(names.split(", ")) for table, names in columns.items()}


def partitions(engine: Engine, classifier: int) -> set[tuple[str, str]]:
    """Name and definition of what is in a classifier's partitions."""
    with connect(engine) as connection:
        return {(name, what) for name, what in connection.execute(text(PARTITIONS), {"classifier": str(classifier)})}


def view_rows(engine: Engine) -> dict[str, list[str]]:
    """The rows of the views, with the names of their columns."""
    with connect(engine) as connection:
        names = connection.execute(text("SELECT viewname FROM pg_views WHERE schemaname = 'report'")).scalars().all()
        return {
            name: sorted(connection.execute(text(f"SELECT to_jsonb(v)::text FROM report.{name} AS v")).scalars())
            for name in names
        }


def assert_replay_equal(engine: Engine, cache: ArrayCache, decision_ids: list[int]) -> None:
    for decision_id in decision_ids:
        found = replay(engine, cache, decision_id)
        assert found.differing == (), (found.stored, found.computed)


def table_contents(engine: Engine, columns: dict[str, str]) -> dict[str, list[str]]:
    """The rows of the tables, of their columns given, wherever these are now."""
    with connect(engine) as connection:
        found = {}
        for table, names in columns.items():
            source = f"{SCHEMA}.{table}"
            for moved_to, key, moved in MOVED.get(table, ()):
                if moved <= set(names.split(", ")) and not moved <= set(columns_now(connection, table)):
                    source += f" LEFT JOIN {SCHEMA}.{moved_to} ON {table}.id = {key}"
            found[table] = sorted(connection.execute(text(f"SELECT ({names})::text FROM {source}")).scalars())
        return found


def columns_now(connection: Connection, table: str) -> list[str]:
    return [column["name"] for column in inspect(connection).get_columns(table, schema=SCHEMA)]
