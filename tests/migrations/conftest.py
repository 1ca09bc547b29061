"""Databases without our schema, one that the migrations before the baseline made, and what pytest-alembic asks for."""

from collections.abc import Iterator

import pytest
from alembic.config import Config
from sqlalchemy import Connection, Engine

from tests.conftest import fresh_engine
from tests.migrations.migrating import restore
from venn_admit.store.database import schema
from venn_admit.store.database.engine import create_engine


@pytest.fixture
def empty(empty_database: str) -> Iterator[Engine]:
    """A database without our schema."""
    engine = create_engine(empty_database)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def restored_database(server_url: str, template_database: str) -> Iterator[str]:
    """The name of a database that the migrations before the baseline made, which nobody is connected to."""
    assert template_database, "making it made the roles that the dump refers to"
    with fresh_engine(server_url) as engine:
        restore(engine)
        engine.dispose()
        yield engine.url.database or ""


@pytest.fixture
def restored(server_url: str, restored_database: str) -> Iterator[Engine]:
    """A database that the migrations before the baseline made, for the test alone."""
    with fresh_engine(server_url, restored_database) as engine:
        yield engine


@pytest.fixture
def alembic_config() -> Config:
    return schema.alembic_config()


@pytest.fixture
def alembic_engine(empty: Engine) -> Iterator[Connection]:
    """What our env.py takes is an open connection."""
    with empty.connect() as connection:
        yield connection
