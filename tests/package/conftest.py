"""What tests of the Python package share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url

import venn_admit
from tests.conftest import fresh_database


@pytest.fixture
def connection(database: str, tmp_path: Path) -> Iterator[venn_admit.Connection]:
    """To a migrated, empty database, for the test alone."""
    with venn_admit.connect(database, home=tmp_path / "home") as connection:
        yield connection


@contextmanager
def filled(
    server_url: str, template: str, home: Path, fill: Callable[[venn_admit.Connection], object]
) -> Iterator[str]:
    """The name of a database that was filled, and that nobody is connected to."""
    with fresh_database(server_url, template) as url:
        with venn_admit.connect(url, home=home) as connection:
            fill(connection)
        yield make_url(url).database or ""


@pytest.fixture
def copied(server_url: str, template: str) -> Iterator[str]:
    """The URL of a copy of the `template` of a module, for the test alone."""
    with fresh_database(server_url, template) as url:
        yield url


@pytest.fixture
def opened(copied: str, tmp_path: Path) -> Iterator[venn_admit.Connection]:
    """To that copy."""
    with venn_admit.connect(copied, home=tmp_path / "home") as connection:
        yield connection
