"""The guide to the client says what the client does: its blocks run against a service."""

from collections.abc import Iterator
from typing import Any

import pytest

import venn_admit
from tests.api.processes import serving
from tests.api.test_writing import working_on
from tests.cli.program import Program
from tests.client.conftest import admin_key
from tests.docs.pages import run_page
from tests.docs.test_commands import page, reader
from venn_admit.runtime.settings import Settings
from venn_admit.runtime.workspace import Runtime

pytestmark = pytest.mark.processes

__all__ = ["reader"]


@pytest.fixture
def reviews(reader: Program, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A service with the tutorial's classifier, of which some rows are scored."""
    data = venn_admit.example_data()
    assert reader("create", "reviews", "--classes", "negative,positive", "--dim", 128).code == 0
    assert reader("ingest", "reviews", data / "train.npz", "--split", "train").code == 0
    assert reader("ingest", "reviews", data / "valid.npz", "--split", "held-out").code == 0
    assert reader("fit", "reviews").code == 0
    assert reader("calibrate", "reviews", "--method", "venn-admit", "--kappa", 100).code == 0
    assert reader("score", "reviews", data / "test.npz", "--out", "scored.csv").code == 0
    monkeypatch.setenv("SERVICE_KEY", admin_key(reader))
    runtime = Runtime.start(Settings(database_url=reader.url, home=reader.home))
    with serving(reader) as (_, url), working_on(runtime):
        monkeypatch.setenv("SERVICE_URL", url)
        yield
    runtime.engine.dispose()


@pytest.mark.usefixtures("reviews")
def test_the_guide_to_the_client() -> None:
    names: dict[str, Any] = {}
    run_page(page("how-to/client"), lambda _, where: pytest.fail(f"{where}: it has no commands"), names)
    assert 0 < names["decisions"].is_admitted.mean() < 0.2
    assert 0.3 < names["certain"].mean() < 1
    assert names["right"].mean() > 0.85
    admitted = names["answers"]["label"][names["sure"]]
    assert 0.3 < names["sure"].mean() < 1
    assert (admitted == names["test"]["label"][names["sure"]]).mean() > 0.85
