"""Alembic's environment: every migration in a transaction of its own, one migrator at a time.

`venn_admit.store.database.schema` passes an open connection; `alembic` on its own takes the database that the
settings name, so both go to the same place.
"""

import time
from typing import Any

from alembic import context
from sqlalchemy import Connection, text

from venn_admit.runtime.settings import get_settings
from venn_admit.store.database import SCHEMA
from venn_admit.store.database.address import database_url
from venn_admit.store.database.engine import create_engine
from venn_admit.store.database.locks import MIGRATION_LOCK

LOCK_POLL_SECONDS = 0.1


def configure(connection: Connection | None, **options: Any) -> None:
    context.configure(connection=connection, version_table_schema=SCHEMA, transaction_per_migration=True, **options)


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
