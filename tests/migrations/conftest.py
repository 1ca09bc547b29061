"""Databases without our schema, and what pytest-alembic asks for."""

from collections.abc import Iterator

import pytest
from alembic.config import Config
from sqlalchemy import Connection, Engine

from venn_admit.service.store.database import schema
from venn_admit.service.store.database.engine import create_engine


@pytest.fixture
def empty(empty_database: str) -> Iterator[Engine]:
    """A database without our schema."""
    engine = create_engine(empty_database)
    yield engine
    engine.dispose()


@pytest.fixture
def alembic_config() -> Config:
    return schema.alembic_config()


@pytest.fixture
def alembic_engine(empty: Engine) -> Iterator[Connection]:
    """What our env.py takes is an open connection."""
    with empty.connect() as connection:
        yield connection
