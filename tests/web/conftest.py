"""The whole service, and visitors who signed in with a key of each scope."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from structlog.testing import capture_logs

from tests.cli import samples
from tests.cli.conftest import calibrated, copied, files, ingested, own_calibrated, own_ingested, program
from tests.cli.program import Program
from tests.web.visitor import Visitor
from venn_admit.service.flows.access.keys import create
from venn_admit.service.runtime import Runtime
from venn_admit.service.settings import Settings
from venn_admit.service.store.access.keys import Scope
from venn_admit.service.web.site import create_site

__all__ = ["calibrated", "copied", "files", "ingested", "own_calibrated", "own_ingested", "program"]


@contextmanager
def visited(program: Program) -> Iterator[Visitor]:
    """The service on the database of a program, to be visited."""
    runtime = Runtime.start(Settings(database_url=program.url, home=program.home))
    try:
        keys = {scope: create(runtime.engine, f"for {scope}", scope=scope).text for scope in Scope}
        client = TestClient(create_site(runtime), raise_server_exceptions=False, follow_redirects=False)
        with capture_logs():
            yield Visitor(client, runtime, keys)
    finally:
        runtime.engine.dispose()


@pytest.fixture
def visitor(own_calibrated: Program) -> Iterator[Visitor]:
    """The service with the classifier calibrated, to be changed."""
    with visited(own_calibrated) as made:
        yield made


@pytest.fixture(scope="session")
def scored(calibrated: Program, server_url: str, session_folder: Path) -> Iterator[Program]:
    """The program with the classifier calibrated and 200 points decided on; to be left as it is."""
    with copied(calibrated, server_url, session_folder / "web") as program:
        folder = session_folder / "web"
        folder.mkdir(exist_ok=True)
        points = {name: values for name, values in samples.scored().items() if name != "label"}
        points["text"] = np.array([f"<i>point</i> {row}" for row in range(samples.SCORED_ROWS)])
        points["image"] = np.array([f"https://images.example/{row}.png" for row in range(samples.SCORED_ROWS)])
        path = samples.save(folder, "unlabelled.npz", points)
        assert program("score", samples.NAME, path, "--out", folder / "scores.parquet").code == 0
        yield program


@pytest.fixture(scope="session")
def shared(scored: Program, server_url: str, session_folder: Path) -> Iterator[Visitor]:
    """The service with decisions; keys and sessions aside, to be left as it is."""
    with copied(scored, server_url, session_folder / "shared") as program, visited(program) as made:
        yield made


@pytest.fixture
def own(scored: Program, server_url: str, tmp_path: Path) -> Iterator[Visitor]:
    """The service with decisions, to be changed."""
    with copied(scored, server_url, tmp_path) as program, visited(program) as made:
        yield made


@pytest.fixture
def empty(program: Program) -> Iterator[Visitor]:
    """The service on a migrated, empty database."""
    with visited(program) as made:
        yield made
