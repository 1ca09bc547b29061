"""Copies of a database with a calibrated classifier, and Celery's side of a request, in this process."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from sqlalchemy import Engine
from structlog.testing import capture_logs

from tests.conftest import fresh_database, fresh_engine
from tests.running import Bench
from tests.workers.samples import make_clusters
from venn_admit import broker
from venn_admit.runtime.settings import Settings
from venn_admit.store.database.engine import create_engine, transaction
from venn_admit_workers.app import make_app


@pytest.fixture(scope="session")
def clusters_template(
    server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The name of a database with the classifier `clusters`, that nobody is connected to."""
    with fresh_engine(server_url, template_database) as engine:
        with capture_logs():
            make_clusters(Bench(engine, tmp_path_factory.mktemp("clusters")))
        engine.dispose()
        yield engine.url.database or ""


@pytest.fixture
def copy_of_clusters(server_url: str, clusters_template: str) -> Iterator[Callable[[], str]]:
    """A function that makes a copy of the database, and returns its URL."""
    with ExitStack() as databases:
        yield lambda: databases.enter_context(fresh_database(server_url, clusters_template))


@pytest.fixture
def open_engine() -> Iterator[Callable[[str], Engine]]:
    """`create_engine`, closed at the end."""
    with ExitStack() as engines:

        def opened(url: str) -> Engine:
            engine = create_engine(url)
            engines.callback(engine.dispose)
            return engine

        yield opened


@pytest.fixture
def url(copy_of_clusters: Callable[[], str]) -> str:
    """A database with the classifier, for the test alone."""
    return copy_of_clusters()


@pytest.fixture
def engine(url: str, open_engine: Callable[[str], Engine]) -> Engine:
    return open_engine(url)


@pytest.fixture
def make_sender(open_engine: Callable[[str], Engine]) -> Iterator[Callable[..., Celery]]:
    """What a requester sends messages by: (database's URL, broker's or None for the database) -> application."""
    with ExitStack() as apps:

        def made(url: str, broker_url: str | None = None) -> Celery:
            with transaction(open_engine(url)) as connection:
                queue = broker.queue_name(connection)
            app = broker.make_app(broker.broker_url(broker_url, url), queue=queue, task_seconds=60)
            broker.prepare(app)
            apps.callback(app.close)
            if broker_url is not None:
                apps.callback(delete_queues, app)
            return app

        yield made


def delete_queues(sender: Celery) -> None:
    """Leave nothing of ours on the server."""
    with sender.connection_for_write() as connection:
        for declared in sender.conf.task_queues:
            queue = declared(connection.default_channel)
            queue.declare()  # only who declared it knows its bindings, which go with it
            queue.delete()
            queue.exchange.delete()


@pytest.fixture
def make_worker_app(url: str, tmp_path: Path) -> Iterator[Callable[..., Celery]]:
    """The application of a worker, and of beat, on the database `url`; settings by their names."""
    with ExitStack() as apps:

        def made(**settings: Any) -> Celery:
            app = make_app(Settings(database_url=url, home=tmp_path, **settings))
            apps.callback(app.life.runtime.engine.dispose)
            apps.callback(app.close)
            return app

        yield made


@pytest.fixture
def worker_app(make_worker_app: Callable[..., Celery]) -> Celery:
    """The same with the usual settings."""
    return make_worker_app()


@pytest.fixture
def sender(make_sender: Callable[..., Celery], url: str) -> Celery:
    """The same for `url`, with the database as the broker."""
    return make_sender(url)
