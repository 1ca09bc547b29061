"""The runtime: every part comes from the settings that it was started from, and nothing is opened before it is used."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import QueuePool, text

from tests.migrations.migrating import move
from venn_admit.errors import DatabaseError
from venn_admit.runtime.settings import Settings
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.database import schema
from venn_admit.store.database.engine import connect

SHOW = """SELECT current_setting('application_name'), current_setting('statement_timeout'),
    current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout')"""


@pytest.fixture
def runtime(database: str, tmp_path: Path) -> Iterator[Runtime]:
    settings = Settings(
        database_url=database,
        home=tmp_path,
        memory_budget_mb=20,
        statement_timeout_seconds=50,
        lock_timeout_seconds=40,
        database_pool_size=3,
        chunk_seconds=70,
    )
    runtime = Runtime.start(settings, application_name="a shell", idle_in_transaction_seconds=30)
    yield runtime
    runtime.engine.dispose()


def test_the_sessions_of_the_database_are_as_set(runtime: Runtime) -> None:
    assert isinstance(runtime.engine.pool, QueuePool)
    assert runtime.engine.pool.size() == 3
    with connect(runtime.engine) as connection:
        assert tuple(connection.execute(text(SHOW)).one()) == ("a shell", "50s", "40s", "30s")


def test_the_parts_share_the_settings(runtime: Runtime) -> None:
    assert runtime.memory_budget == 20 << 20
    app = runtime.broker
    assert app.conf.task_time_limit == 70
    assert app.conf.task_default_queue == runtime.make_celery().conf.task_default_queue
    assert runtime.broker is app
    assert runtime.point_scorer is runtime.point_scorer
    assert runtime.chunk_runner("a worker").claim(1_000_000, 0) is None, "there is no such chunk"


def test_an_upgrade_that_nobody_asked_for_is_told(runtime: Runtime, caplog: pytest.LogCaptureFixture) -> None:
    embedded = replace(runtime, settings=replace(runtime.settings, database_url=None))
    embedded.open_schema(migrate=None)
    assert not caplog.messages
    move(runtime.engine, "-1", command.downgrade)
    before, head = schema.current_revision(runtime.engine), schema.head_revision()
    embedded.open_schema(migrate=None)
    assert schema.current_revision(runtime.engine) == head
    assert [one for one in caplog.messages if one.startswith("the database")] == [
        f"the database was upgraded from revision {before} to {head}: earlier versions may not work on it any more"
    ]


def test_nothing_is_opened_before_it_is_used(tmp_path: Path) -> None:
    home = tmp_path / "home"
    runtime = Runtime.start(Settings(database_url="postgresql://127.0.0.1:9/nowhere", home=home))
    assert runtime.point_scorer is not None
    assert not home.exists()
    with pytest.raises(DatabaseError, match="cannot be reached"):
        _ = runtime.broker
