"""What tests of the Python package share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import venn_admit


@pytest.fixture
def connection(database: str, tmp_path: Path) -> Iterator[venn_admit.Connection]:
    """To a migrated, empty database, for the test alone."""
    with venn_admit.connect(database, home=tmp_path / "home") as connection:
        yield connection
