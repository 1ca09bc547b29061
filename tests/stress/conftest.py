"""The service as a process of its own, on a database with everything that a request can ask for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.databases import copied, on_database
from tests.cli.program import Program
from tests.conftest import fresh_database
from tests.stress.furnished import furnish
from tests.stress.served import Served, service
from tests.workers.processes import await_workers, running_worker
from venn_admit.store.database.engine import create_engine


@pytest.fixture(scope="session")
def furnished(
    server_url: str, template_database: str, session_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Program]:
    """The program with all that the examples name; to be left as it is."""
    with fresh_database(server_url, template_database) as url:
        program = on_database(url, session_folder / "stress")
        furnish(program, tmp_path_factory.mktemp("furnished"))
        yield program


@pytest.fixture
def own_furnished(furnished: Program, server_url: str, tmp_path: Path) -> Iterator[Program]:
    """As `furnished`, to be changed."""
    with copied(furnished, server_url, tmp_path) as program:
        yield program


@pytest.fixture
def served(own_furnished: Program) -> Iterator[Served]:
    """The service on that database."""
    with service(own_furnished) as made:
        yield made


@pytest.fixture(scope="module")
def shared_service(furnished: Program, server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """As `served`, for all tests of a module, which change nothing."""
    with copied(furnished, server_url, tmp_path_factory.mktemp("shared")) as program, service(program) as made:
        yield made


@pytest.fixture
def worker(served: Served) -> Iterator[None]:
    """A worker beside it."""
    engine = create_engine(served.program.url)
    with running_worker(served.program.url, served.program.home):
        await_workers(engine, 1)
        engine.dispose()
        yield
