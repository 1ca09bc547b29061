"""Databases for the flows: an empty one, and copies of one that holds the bundled real data, calibrated."""

from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from sqlalchemy import Engine
from structlog.testing import capture_logs

from tests.flows.logits import make_both
from tests.flows.recalibration import QUIET, WAIT, Due
from tests.running import Bench, Golden
from tests.templates import CopyOf, Filled, reviews_of
from venn_admit import broker
from venn_admit.core.comparison import strength
from venn_admit.flows.calibration.recalibrate import RecalibrationStep, recalibrate_due


@pytest.fixture(autouse=True)
def logged() -> Iterator[list[MutableMapping[str, Any]]]:
    """What is logged, in place of the console."""
    with capture_logs() as entries:
        yield entries


@pytest.fixture
def bench(engine: Engine, tmp_path: Path) -> Bench:
    """A migrated, empty database, for the test alone."""
    return Bench(engine, tmp_path)


@pytest.fixture(scope="session")
def edge_template(filled: Filled) -> tuple[str, Golden]:
    """The name of a database with the classifier `edge` of the golden file, calibrated, and that file."""
    golden = Golden("edge")

    def fill(bench: Bench) -> None:
        golden.prepare(bench, "edge")
        bench.calibrate("edge", **golden.settings)

    return filled(fill), golden


@pytest.fixture
def edge(copy_of: CopyOf, edge_template: tuple[str, Golden]) -> Bench:
    """The calibrated classifier `edge`, for the test alone, with `score.npz` to score."""
    template, golden = edge_template
    bench = copy_of(template)
    bench.write("score.npz", golden.exemplars("score"))
    return bench


@pytest.fixture(scope="module")
def both(shared_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Classifiers with and without vectors, calibrated by the same points of mc and vp; none is in knn."""
    bench = Bench(shared_engine, tmp_path_factory.mktemp("both"))
    make_both(bench)
    return bench


@pytest.fixture(scope="session")
def reviews_template(filled: Filled) -> str:
    """The name of a database with the classifier `reviews`, that nobody is connected to."""
    return filled(reviews_of(16_000))


@pytest.fixture
def reviews(copy_of: CopyOf, reviews_template: str) -> Bench:
    """The calibrated classifier `reviews`, for the test alone."""
    return copy_of(reviews_template)


@pytest.fixture(scope="session")
def few_reviews_template(filled: Filled) -> str:
    """As `reviews_template`, with a quarter of the held-out data."""
    return filled(reviews_of(4000))


@pytest.fixture
def few_reviews(copy_of: CopyOf, few_reviews_template: str) -> Bench:
    """As `reviews`, with a quarter of the held-out data."""
    return copy_of(few_reviews_template)


@pytest.fixture
def unattended_app(edge: Bench) -> Iterator[Celery]:
    """What messages are sent by; nobody takes them."""
    url = broker.broker_url(None, edge.engine.url.render_as_string(hide_password=False))
    app = broker.make_app(url, queue="q", task_seconds=60)
    broker.prepare(app)
    yield app
    app.close()


@pytest.fixture
def due(edge: Bench, unattended_app: Celery) -> Due:
    """One look at what is due, as beat has workers take."""

    def look(*, keep: int | None = None) -> list[RecalibrationStep]:
        return recalibrate_due(
            edge.workspace(chunk_rows=100, keep_calibrations=keep),
            unattended_app,
            quiet_seconds=QUIET,
            wait_seconds=WAIT,
        )

    return look


@pytest.fixture
def all_replace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calibrations replace the one in use however little they admit."""
    monkeypatch.setattr(strength, "LEAST_PART", 0.0)
