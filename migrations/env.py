"""Alembic's environment: every migration in a transaction of its own, one migrator at a time.

`venn_admit.service.store.database.schema` passes an open connection; `alembic` on its own takes the database that the
settings name, so both go to the same place.
"""

import time
from typing import Any

from alembic import context
from sqlalchemy import Connection, text

from venn_admit.service.settings import get_settings
from venn_admit.service.store.database.engine import create_engine, database_url
from venn_admit.service.store.database.tables import SCHEMA, metadata

# An arbitrary number of our own: whoever holds this advisory lock is migrating.
MIGRATION_LOCK = 0x76_65_6E_6E
LOCK_POLL_SECONDS = 0.1


def is_ours(_object: object, name: str | None, type_: str, reflected: bool, _compare_to: object) -> bool:
    """Leave out what is made at run time: the partitions of exemplar_vector, two a classifier."""
    made_at_run_time = type_ == "table" and reflected and (name or "").startswith("exemplar_vector_")
    return not made_at_run_time


def only_our_schema(name: str | None, type_: str, _parents: object) -> bool:
    return name == SCHEMA if type_ == "schema" else True


def configure(connection: Connection | None, **options: Any) -> None:
    context.configure(
        connection=connection,
        target_metadata=metadata,
        version_table_schema=SCHEMA,
        include_schemas=True,
        include_name=only_our_schema,
        include_object=is_ours,
        compare_server_default=True,
        transaction_per_migration=True,
        **options,
    )


def lock(connection: Connection) -> None:
    """Wait to be the only migrator, outside of any statement: an index built CONCURRENTLY waits for all of those."""
    while not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": MIGRATION_LOCK}).scalar_one():
        connection.rollback()
        time.sleep(LOCK_POLL_SECONDS)
    connection.rollback()


def migrate(connection: Connection) -> None:
    lock(connection)
    try:
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        connection.commit()
        # Our search path makes our schema the default one, which Alembic would reflect without a name.
        connection.dialect.default_schema_name = "public"
        configure(connection)
        with context.begin_transaction():
            context.run_migrations()
        connection.commit()
    finally:
        connection.rollback()
        connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": MIGRATION_LOCK})
        connection.commit()


if context.is_offline_mode():
    # Named parameters, though there are none: the driver's own kind would double every % in the script.
    configure(None, dialect_name="postgresql", dialect_opts={"paramstyle": "named"}, literal_binds=True)
    with context.begin_transaction():
        context.execute("SET lock_timeout = '5s'")
        context.execute("SET statement_timeout = '10min'")
        context.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        context.run_migrations()
elif (given := context.config.attributes.get("connection")) is not None:
    migrate(given)
else:
    with create_engine(database_url(get_settings())).connect() as connection:
        migrate(connection)
