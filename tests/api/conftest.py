"""The application on databases as the command line leaves them, and a key of each scope."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from structlog.testing import capture_logs

from tests.api.service import Service
from tests.cli.databases import copied
from tests.cli.program import Program
from venn_admit.api.application import create_application
from venn_admit.flows.keys.keys import create
from venn_admit.runtime.settings import Settings
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.keys import Scope
from venn_admit_client import Connection, connect


@contextmanager
def serving(program: Program) -> Iterator[Service]:
    """The application on the database of a program, with a key of each scope."""
    runtime = Runtime.start(Settings(database_url=program.url, home=program.home))
    try:
        keys = {scope: create(runtime.engine, scope, scope=scope).text for scope in Scope}
        client = TestClient(create_application(runtime), raise_server_exceptions=False)
        with capture_logs():
            yield Service(client, runtime, keys)
    finally:
        runtime.engine.dispose()


@contextmanager
def remote_client(service: Service) -> Iterator[Connection]:
    """The client, with a key for everything; this process answers it."""

    def in_this_process(**options: Any) -> TestClient:
        service.client.headers.update(options["headers"])
        return service.client

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("venn_admit_client.transport.httpx.Client", in_this_process)
        yield connect("http://testserver", service.keys[Scope.ADMIN])


@pytest.fixture
def service(own_calibrated: Program) -> Iterator[Service]:
    """The application with the classifier calibrated, to be changed."""
    with serving(own_calibrated) as made:
        yield made


@pytest.fixture(scope="session")
def shared(calibrated: Program, server_url: str, session_folder: Path) -> Iterator[Service]:
    """The application with the classifier calibrated; keys aside, to be left as it is."""
    with copied(calibrated, server_url, session_folder / "api") as program, serving(program) as made:
        yield made


@pytest.fixture
def empty(program: Program) -> Iterator[Service]:
    """The application on a migrated, empty database."""
    with serving(program) as made:
        yield made
