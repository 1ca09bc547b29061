"""The whole service, and visitors who signed in with a key of each scope."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope
from structlog.testing import capture_logs

from tests.cli import samples
from tests.cli.databases import copied
from tests.cli.program import Program
from tests.web.visitor import Visitor
from venn_admit.core.types import Float32Array
from venn_admit.flows.keys.keys import create
from venn_admit.layer.contributions import ATTRIBUTE, Contributions
from venn_admit.runtime.settings import Settings
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.keys import Scope
from venn_admit.store.database.engine import create_engine, transaction
from venn_admit.web.site import create_site

# A grey picture of one by one.
IMAGE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg=="
)


@contextmanager
def visited(program: Program, root_path: str = "") -> Iterator[Visitor]:
    """The service on the database of a program, to be visited, below a path that a proxy takes away."""
    runtime = Runtime.start(Settings(database_url=program.url, home=program.home, root_path=root_path))
    site = create_site(runtime)

    async def proxy(scope: AsgiScope, receive: Receive, send: Send) -> None:
        path = scope.get("path", root_path)
        assert path.startswith(root_path), path
        await site({**scope, "path": path.removeprefix(root_path)}, receive, send)

    try:
        keys = {scope: create(runtime.engine, f"for {scope}", scope=scope).text for scope in Scope}
        client = TestClient(
            proxy, f"http://testserver{root_path}", raise_server_exceptions=False, follow_redirects=False
        )
        with capture_logs():
            yield Visitor(client, runtime, keys)
    finally:
        runtime.engine.dispose()


# A token may be any text.
SHARES, TOKENS = np.array([1.25, 0.0, -0.75, 0.125]), ("<script>alert(1)</script>", "the", "\u202ereversed", "##ing")


def carried_by(logits: Float32Array, *, of_other: int = 0, more: float = 0.0, row: int = 0) -> dict[str, Any]:
    """What carries the network's prediction, as an attribute; or another class, or a margin that is more.

    The first token is that of the row, by its contribution: a thousandth more a row.
    """
    runner_up, predicted = np.argsort(logits)[-2:].tolist()
    class_name = samples.CLASS_NAMES[(predicted + of_other) % samples.CLASS_COUNT]
    shares = SHARES + np.array([row / 1000, 0.0, 0.0, 0.0])
    intercept = float(logits[predicted] - logits[runner_up]) + more - float(shares.sum())
    return Contributions.of_tokens(class_name, samples.CLASS_NAMES[runner_up], intercept, shares, TOKENS).as_attribute()


def explain_exemplars(url: str) -> None:
    """Give all exemplars what carries their predictions, and some of those scored something else under that name."""
    made = {
        external_id: carried_by(logits, row=row)
        for columns in (samples.train(), samples.held_out())
        for row, (external_id, logits) in enumerate(
            zip(columns["external_id"].tolist(), columns["logits"], strict=True)
        )
    }
    scored = samples.scored()
    logits = scored["logits"]
    made |= {name: carried_by(own) for name, own in zip(scored["external_id"].tolist(), logits, strict=True)}
    made["scored-3"] = {"class": "<b>mine</b>"}
    made["scored-4"] = carried_by(logits[4], of_other=1)
    made["scored-5"] = carried_by(logits[5], more=0.01)
    engine = create_engine(url)
    with transaction(engine) as connection:
        connection.execute(
            text(
                "UPDATE exemplar SET attributes = attributes || CAST(made.added AS jsonb) "
                "FROM unnest(CAST(:ids AS text[]), CAST(:added AS text[])) AS made (external_id, added) "
                "WHERE exemplar.external_id = made.external_id"
            ),
            {"ids": list(made), "added": [json.dumps({ATTRIBUTE: value}) for value in made.values()]},
        )
    engine.dispose()


def describe_training(url: str) -> None:
    """Give the training exemplars text, images that the page may show, one that it may not, and other attributes."""
    engine = create_engine(url)
    with transaction(engine) as connection:
        connection.execute(
            text(
                "UPDATE exemplar SET attributes = jsonb_build_object('text', '<b>review</b> ' || external_id, "
                "'image', CAST(:image AS text), 'elsewhere', 'https://images.example/1.png', 'group', 7) "
                "WHERE split = 'train'"
            ),
            {"image": IMAGE},
        )
    engine.dispose()


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
        describe_training(program.url)
        assert program("score", samples.NAME, path, "--out", folder / "scores.parquet").code == 0
        explain_exemplars(program.url)
        yield program


@pytest.fixture(scope="session")
def shared(scored: Program, server_url: str, session_folder: Path) -> Iterator[Visitor]:
    """The service with decisions; keys and sessions aside, to be left as it is."""
    with copied(scored, server_url, session_folder / "shared") as program, visited(program) as made:
        yield made


@pytest.fixture
def below(scored: Program, server_url: str, tmp_path: Path) -> Iterator[Visitor]:
    """The same behind a proxy that serves it under a path and takes that away."""
    with copied(scored, server_url, tmp_path) as program, visited(program, "/venn/admit") as made:
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
