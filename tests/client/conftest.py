"""The client of a service that runs in a process of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.processes import serving
from tests.api.test_writing import working_on
from tests.cli.databases import copied
from tests.cli.program import Program
from tests.cli.samples import NAME
from tests.client.proxy import Proxy
from venn_admit.runtime.settings import Settings
from venn_admit.runtime.workspace import Runtime
from venn_admit_client import Classifier, Connection, connect


def admin_key(program: Program) -> str:
    secret: str = program("key", "create", "client", "--scope", "admin", "--json").result["secret"]
    return secret


@pytest.fixture(scope="module")
def served(
    calibrated: Program, files: Path, server_url: str, session_folder: Path
) -> Iterator[tuple[Program, str, str]]:
    """The program with the classifier calibrated and some rows scored, the URL that it serves, and a key."""
    with copied(calibrated, server_url, session_folder / "client") as program:
        program.home.mkdir(parents=True, exist_ok=True)
        assert program("score", NAME, files / "scored.npz", "--out", program.home / "scored.csv").code == 0
        key = admin_key(program)
        with serving(program) as (_, url):
            yield program, url, key


@pytest.fixture(scope="module")
def worker(served: tuple[Program, str, str]) -> Iterator[None]:
    """A worker beside the service."""
    program = served[0]
    runtime = Runtime.start(Settings(database_url=program.url, home=program.home))
    with working_on(runtime):
        yield
    runtime.engine.dispose()


@pytest.fixture
def connection(served: tuple[Program, str, str]) -> Iterator[Connection]:
    with connect(served[1], served[2]) as made:
        yield made


@pytest.fixture
def classifier(connection: Connection) -> Classifier:
    return connection.classifier(NAME)


@pytest.fixture
def proxy(served: tuple[Program, str, str]) -> Iterator[Proxy]:
    """A proxy before the service."""
    with Proxy.before(served[1]) as made:
        yield made
