"""A server on TCP, jobs recorded in a database that can be copied, and what they come to undisturbed."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.conftest import fresh_database, open_folder
from tests.faults.server import Server, own_server
from tests.faults.workload import Row, Size, recorded_jobs, undisturbed

SIZE = Size(rows=640, chunk_rows=16)


@pytest.fixture(scope="session")
def faults_server() -> Iterator[Server]:
    with open_folder() as folder, own_server(folder / "home") as server:
        yield server


@pytest.fixture(scope="session")
def template(faults_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a database with three jobs of forty chunks."""
    with recorded_jobs(faults_server.url, tmp_path_factory.mktemp("jobs"), SIZE) as name:
        yield name


@pytest.fixture(scope="session")
def calm(faults_server: Server, template: str, tmp_path_factory: pytest.TempPathFactory) -> Counter[Row]:
    """What the jobs leave if nothing fails."""
    return undisturbed(faults_server.url, template, tmp_path_factory.mktemp("calm"))


@pytest.fixture
def url(faults_server: Server, template: str) -> Iterator[str]:
    """A copy of that database, for the test alone."""
    with fresh_database(faults_server.url, template) as url:
        yield url
