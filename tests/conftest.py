"""What tests share: an environment of their own, and a migrated database for each test that asks for one.

The server is an embedded one in a folder of its own, or the one at VENN_ADMIT_TEST_DATABASE_URL (a user who
may create databases). Redis and RabbitMQ are those at VENN_ADMIT_TEST_REDIS_URL and
VENN_ADMIT_TEST_RABBITMQ_URL, by default at their usual local ports.
"""

import gc
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import Engine, make_url, text
from sqlalchemy.exc import OperationalError

from tests.patience import wait_until
from venn_admit.runtime.settings import PREFIX, get_settings
from venn_admit.store.database.engine import create_engine
from venn_admit.store.embedded.users import start_embedded, stop_embedded

TEST_PREFIX = f"{PREFIX}TEST_"

# That of the session's server, by its address: opening a connection twice took as long as copying a database.
administrators: dict[str, Engine] = {}

# Whatever room asks for a database of the program, one is made for all.
pytest_plugins = ("tests.cli.databases", "tests.templates")

# More than the servers of a few processes write.
SERVERS_BYTES = 4 * 2**30


def pytest_configure() -> None:
    """Nothing a developer has set for work of their own reaches a test."""
    for name in list(os.environ):
        if name.startswith(PREFIX) and not name.startswith(TEST_PREFIX):
            del os.environ[name]
    # How long an example takes to draw or to run says nothing on a machine that others use too.
    settings.register_profile("untimed", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("untimed")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Doctests are looked for in the program alone: what collects them from a module is a kind of `pytest.Module`."""
    return [collector for collector in (yield) if type(collector) is pytest.Module]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays, so that looking for garbage in it only takes time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that asks for a broker is a `servers` test, by that alone."""
    for item in items:
        for broker in ("redis", "rabbitmq"):
            if f"{broker}_url" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.servers)
                item.add_marker(broker)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test that is marked neither as `processes` nor as `wheel` fails if it starts a Python."""
    if any(item.get_closest_marker(name) for name in ("processes", "wheel")):
        return (yield)
    start = subprocess.Popen.__init__

    def checked(self: "subprocess.Popen[Any]", args: Any, *others: Any, **options: Any) -> None:
        if isinstance(args, list) and args[0] == sys.executable:
            pytest.fail(f"this starts a Python, so mark the test with pytest.mark.processes: {args}")
        start(self, args, *others, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess.Popen, "__init__", checked)
        return (yield)


def memory() -> Path | None:
    """A file system in memory with room for servers, if there is one: it copies a database in a tenth of the time."""
    folder = Path("/dev/shm")
    return folder if folder.is_dir() and shutil.disk_usage(folder).free > SERVERS_BYTES else None


@contextmanager
def open_folder(*, large: bool = False) -> Iterator[Path]:
    """A temporary folder that other users may enter, in memory if there is room; large: on disk.

    Root runs the embedded server as another user, and pytest closes its own folders to others at every start.
    """
    folder = Path(tempfile.mkdtemp(prefix="venn-admit-test-", dir=None if large else memory())).resolve()
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def session_folder() -> Iterator[Path]:
    with open_folder() as folder:
        yield folder


@pytest.fixture
def home() -> Iterator[Path]:
    """A home folder that does not exist yet, for an embedded server of the test's own."""
    with open_folder() as folder:
        yield folder / "home"
        stop_embedded(folder / "home")


@pytest.fixture(autouse=True)
def own_environment(session_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test touches the user's home or sees another test's settings."""
    monkeypatch.setenv("VENN_ADMIT_HOME", str(session_folder / "home"))
    get_settings.cache_clear()
    yield
    get_settings.cache_clear()


@pytest.fixture(scope="session")
def server_url(session_folder: Path) -> Iterator[str]:
    """The server on which databases are made, by the URL of one it has."""
    given = os.environ.get(f"{TEST_PREFIX}DATABASE_URL")
    url = given or start_embedded(session_folder / "server")
    administrators[url] = create_engine(url)
    try:
        if given:
            yield url
            return
        with administration(url) as execute:
            # Tests outlive no power cut. Commits are synchronous nevertheless: without that, VACUUM marks no page of
            # new rows as visible to all, and index-only scans read the heap.
            for setting in ("fsync", "full_page_writes"):
                execute(f"ALTER SYSTEM SET {setting} = off")
            # What is planned, counted and visible to all follows from what a test does, not from how long it takes.
            execute("ALTER SYSTEM SET autovacuum = off")
            execute("SELECT pg_reload_conf()")
        yield url
    finally:
        administrators.pop(url).dispose()
        stop_embedded(session_folder / "server")


@contextmanager
def administration(server_url: str) -> Iterator[Callable[[str], object]]:
    """Statements outside of a transaction, as making databases needs."""
    kept = administrators.get(server_url)
    engine = kept or create_engine(server_url)
    try:
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            yield lambda statement: connection.execute(text(statement))
    finally:
        if kept is None:
            engine.dispose()


def execute_alone(execute: Callable[[str], object], statement: str) -> None:
    """Execute what must be alone with a database: a session that was closed is gone a moment later."""

    def executed() -> bool:
        try:
            execute(statement)
        except OperationalError as refused:
            if not isinstance(refused.orig, psycopg.errors.ObjectInUse):
                raise
            return False
        return True

    wait_until(executed, f"nobody else uses the database: {statement}")


@contextmanager
def fresh_database(server_url: str, template: str = "template0") -> Iterator[str]:
    """The URL of a copy of `template`, dropped afterwards even if somebody is still connected."""
    name = f"venn_admit_test_{uuid.uuid4().hex[:12]}"
    with administration(server_url) as execute:
        execute_alone(execute, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
    try:
        yield make_url(server_url).set(database=name).render_as_string(hide_password=False)
    finally:
        # In a session of its own: the server of a test may have been killed in between.
        with administration(server_url) as execute:
            execute_alone(execute, f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def fresh_engine(server_url: str, template: str = "template0") -> Iterator[Engine]:
    """An engine on a fresh database."""
    with fresh_database(server_url, template) as url:
        engine = create_engine(url)
        yield engine
        engine.dispose()


@pytest.fixture(scope="session")
def template_database(server_url: str) -> Iterator[str]:
    """The name of a migrated database that nobody is connected to."""
    from venn_admit.store.database.schema import upgrade

    with fresh_database(server_url) as url:
        upgrade(url)
        yield make_url(url).database or ""


@pytest.fixture
def empty_database(server_url: str) -> Iterator[str]:
    """The URL of a database without our schema, for the test alone."""
    with fresh_database(server_url) as url:
        yield url


@pytest.fixture
def database(server_url: str, template_database: str) -> Iterator[str]:
    """The URL of a migrated, empty database, for the test alone."""
    with fresh_database(server_url, template_database) as url:
        yield url


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    """An engine on `database`."""
    engine = create_engine(database)
    yield engine
    engine.dispose()


@pytest.fixture(scope="module")
def shared_engine(server_url: str, template_database: str) -> Iterator[Engine]:
    """An engine on a migrated database that the tests of a module share."""
    with fresh_engine(server_url, template_database) as engine:
        yield engine


@pytest.fixture
def configured(database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """`database`, as the one the settings name; for what starts at a shell."""
    monkeypatch.setenv("VENN_ADMIT_DATABASE_URL", database)
    get_settings.cache_clear()
    return database


@pytest.fixture
def blank_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts of reports are blank, since drawing them takes seconds; tests/report has what they show."""
    from matplotlib.figure import Figure

    from venn_admit.report.calibration.common.history import days_picture
    from venn_admit.report.calibration.wording import pictures
    from venn_admit.report.charts.charts import CHARTS
    from venn_admit.report.pages import calibration, evaluation

    def blank(*_report: object) -> Figure:
        return Figure(figsize=(1, 1))

    for name in CHARTS:
        monkeypatch.setitem(CHARTS, name, blank)
    for name, (_, words) in evaluation.FIGURES.items():
        monkeypatch.setitem(evaluation.FIGURES, name, (blank, words))
    monkeypatch.setattr(calibration, "days_picture", lambda days: replace(days_picture(days), draw=blank))
    monkeypatch.setattr(calibration, "pictures", lambda report: [replace(one, draw=blank) for one in pictures(report)])


@pytest.fixture
def redis_url(worker_id: str) -> str:
    """A database of the server for each process of the tests: those on one share what is not acknowledged."""
    url = make_url(os.environ.get(f"{TEST_PREFIX}REDIS_URL") or "redis://localhost:6379/15")
    number = int(worker_id.removeprefix("gw")) if worker_id != "master" else 0
    own = url.set(database=str(abs(int(url.database or 0) - number)))
    return own.render_as_string(hide_password=False)


@pytest.fixture
def rabbitmq_url() -> str:
    return os.environ.get(f"{TEST_PREFIX}RABBITMQ_URL") or "amqp://guest:guest@localhost:5672//"


@pytest.fixture(
    params=[
        "database",
        pytest.param("redis", marks=[pytest.mark.servers, pytest.mark.redis]),
        pytest.param("rabbitmq", marks=[pytest.mark.servers, pytest.mark.rabbitmq]),
    ]
)
def broker_url(request: pytest.FixtureRequest) -> str | None:
    """Each broker in turn; None is the database."""
    if request.param == "database":
        return None
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url
