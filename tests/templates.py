"""Databases that tests copy, each filled once in a session."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Protocol

import pytest
from structlog.testing import capture_logs

from tests.conftest import fresh_engine
from tests.running import Bench, make_reviews

Fill = Callable[[Bench], object]
CopyOf = Callable[[str], Bench]


class Filled(Protocol):
    """The name of a copy of a template, by default of a migrated database, as a function leaves it."""

    def __call__(self, fill: Fill, template: str | None = None) -> str: ...


@pytest.fixture(scope="session")
def filled(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """Fills databases, to which nobody is connected then; asked for again, one is as it was."""
    names: dict[tuple[Fill, str], str] = {}
    with ExitStack() as kept:

        def name_of(fill: Fill, template: str | None = None) -> str:
            key = fill, template or template_database
            if key not in names:
                engine = kept.enter_context(fresh_engine(server_url, key[1]))
                with capture_logs():
                    fill(Bench(engine, tmp_path_factory.mktemp("filled")))
                engine.dispose()
                names[key] = engine.url.database or ""
            return names[key]

        yield name_of


@cache
def reviews_of(held_out_rows: int) -> Fill:
    """What makes the classifier `reviews`, with some of the held-out data."""
    return partial(make_reviews, held_out_rows=held_out_rows)


@contextmanager
def fresh_bench(server_url: str, template: str, folder: Path) -> Iterator[Bench]:
    """A copy of a template."""
    with fresh_engine(server_url, template) as engine:
        yield Bench(engine, folder)


@pytest.fixture
def copy_of(server_url: str, tmp_path: Path) -> Iterator[CopyOf]:
    """Copies templates for the test alone."""
    with ExitStack() as copies:
        yield lambda template: copies.enter_context(fresh_bench(server_url, template, tmp_path))
