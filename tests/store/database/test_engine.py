"""Engine, transactions and what becomes of the driver's errors."""

import math
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, Engine, event, make_url, text

from tests.conftest import administration
from venn_admit.errors import ConflictError, DatabaseError, InvalidInputError
from venn_admit.store.calibrations import calibration_points
from venn_admit.store.database import engine as database_engine
from venn_admit.store.database.address import database_url
from venn_admit.store.database.engine import (
    _problem_of_server,
    check_server,
    connect,
    create_engine,
    driver_cursor,
    transaction,
)
from venn_admit.store.decisions import removal
from venn_admit.store.embedded.users import stop_embedded


@dataclass(frozen=True)
class Chosen:
    home: Path
    database_url: str | None
    database_password_file: Path | None = None


@contextmanager
def engine_on(url: str, statement_timeout_seconds: int = 20) -> Iterator[Engine]:
    engine = create_engine(url, statement_timeout_seconds=statement_timeout_seconds, lock_timeout_seconds=1)
    yield engine
    engine.dispose()


@pytest.fixture
def engine(empty_database: str) -> Iterator[Engine]:
    with engine_on(empty_database) as engine:
        yield engine


def give_up_after(connection: Connection, statement: str) -> None:
    connection.execute(text(statement))
    raise ConflictError("of our own")


def show(connection: Connection, setting: str) -> object:
    return connection.execute(text(f"SHOW {setting}")).scalar_one()


def test_a_given_database_is_taken_as_it_is(tmp_path: Path) -> None:
    assert database_url(Chosen(tmp_path, "postgresql://host/name")) == "postgresql://host/name"
    assert list(tmp_path.iterdir()) == []


def test_without_one_the_embedded_server_is_started(home: Path) -> None:
    with engine_on(database_url(Chosen(home, None))) as engine, connect(engine) as connection:
        check_server(connection)
    assert stop_embedded(home)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_every_way_to_write_the_address_is_understood(scheme: str) -> None:
    engine = create_engine(f"{scheme}://me:secret@host:5433/name?sslmode=require")
    assert engine.url.drivername == "postgresql+psycopg"
    assert engine.url.query["sslmode"] == "require"
    assert (engine.url.password, engine.url.port, engine.url.database) == ("secret", 5433, "name")


@pytest.mark.parametrize(
    "url",
    ["mysql://me:secret@host/name", "postgresql+psycopg2://me:secret@host/name", "secret", "", "://secret"],
)
def test_other_addresses_are_refused_without_showing_them(url: str) -> None:
    with pytest.raises(InvalidInputError, match="VENN_ADMIT_DATABASE_URL") as caught:
        create_engine(url)
    assert "secret" not in str(caught.value)


def test_sessions_are_set_up(engine: Engine) -> None:
    with connect(engine) as connection:
        assert show(connection, "search_path") == "venn_admit,public"
        assert show(connection, "jit") == "off"
        assert show(connection, "application_name") == "venn-admit"
        assert show(connection, "statement_timeout") == "20s"
        assert show(connection, "lock_timeout") == "1s"


def test_options_of_the_address_win_but_for_the_search_path(empty_database: str) -> None:
    given = "options=-c%20jit%3Don%20-c%20search_path%3Delsewhere&application_name=mine"
    with engine_on(f"{empty_database}&{given}") as engine, connect(engine) as connection:
        assert show(connection, "jit") == "on"
        assert show(connection, "application_name") == "mine"
        assert show(connection, "search_path") == "venn_admit,public"


def test_a_transaction_is_kept_or_undone_as_a_whole(engine: Engine) -> None:
    with transaction(engine) as connection:
        connection.execute(text("CREATE TABLE public.thing (id int)"))
    with pytest.raises(ConflictError, match="of our own"), transaction(engine) as connection:
        give_up_after(connection, "INSERT INTO thing VALUES (1)")
    with connect(engine) as connection:
        connection.execute(text("INSERT INTO thing VALUES (2)"))
    with transaction(engine) as connection:
        assert connection.execute(text("SELECT count(*) FROM thing")).scalar_one() == 0


def read_once(connection: Connection) -> None:
    connection.execute(text("SELECT 1"))


def copy_once(connection: Connection) -> None:
    with driver_cursor(connection).copy("COPY (SELECT 1) TO STDOUT") as copy:
        list(copy)


@pytest.mark.parametrize("read", [read_once, copy_once])
def test_what_is_prepared_outlives_blocks_that_read(engine: Engine, read: Callable[[Connection], None]) -> None:
    for _ in range(10):
        with transaction(engine) as connection:
            connection.execute(text("SELECT 2"))
        with connect(engine) as connection:
            read(connection)
    with connect(engine) as connection:
        known = connection.execute(text("SELECT statement FROM pg_prepared_statements")).scalars().all()
    assert "SELECT 2" in known


def test_a_block_that_fails_leaves_nothing(engine: Engine) -> None:
    with pytest.raises(ConflictError), connect(engine) as connection:
        give_up_after(connection, "CREATE TABLE taken_back (number integer)")
    with connect(engine) as connection:
        assert connection.execute(text("SELECT to_regclass('taken_back')")).scalar_one() is None


def test_a_connection_that_left_the_pool_is_rolled_back_too(engine: Engine) -> None:
    with connect(engine) as connection:
        driver = driver_cursor(connection).connection
        connection.detach()
        connection.execute(text("CREATE TABLE taken_back (number integer)"))
    assert driver.closed
    with connect(engine) as connection:
        assert connection.execute(text("SELECT to_regclass('taken_back')")).scalar_one() is None


def test_a_refused_statement_is_told_with_advice_and_without_its_values(engine: Engine) -> None:
    with pytest.raises(DatabaseError) as caught, transaction(engine) as connection:
        connection.execute(text("SELECT * FROM nowhere WHERE name = :name"), {"name": "a secret value"})
    message = str(caught.value)
    assert f"/{engine.url.database}" in message
    assert 'refused a statement: relation "nowhere" does not exist; upgrade the schema of the database' in message
    assert "a secret value" not in message
    assert caught.value.__cause__ is not None


def test_errors_of_the_bare_driver_are_told_alike(engine: Engine) -> None:
    with pytest.raises(DatabaseError, match="division by zero") as caught, transaction(engine) as connection:
        connection.connection.cursor().execute("SELECT 1 / 0")
    assert isinstance(caught.value.__cause__, psycopg.errors.DivisionByZero)


def test_a_lock_held_by_another_says_so(engine: Engine) -> None:
    with transaction(engine) as holder:
        holder.execute(text("SELECT pg_advisory_xact_lock(1)"))
        with (
            pytest.raises(DatabaseError, match="VENN_ADMIT_LOCK_TIMEOUT_SECONDS"),
            transaction(engine) as other,
        ):
            other.execute(text("SELECT pg_advisory_xact_lock(1)"))


def test_a_slow_statement_is_cut_off(empty_database: str) -> None:
    with (
        engine_on(empty_database, statement_timeout_seconds=1) as engine,
        pytest.raises(DatabaseError, match="VENN_ADMIT_STATEMENT_TIMEOUT_SECONDS"),
        transaction(engine) as connection,
    ):
        connection.execute(text("SELECT pg_sleep(30)"))


def test_a_server_that_is_away_is_named_without_the_password() -> None:
    engine = create_engine("postgresql://me:secret@127.0.0.1:1/name")
    cannot = r"me:\*\*\*@127.0.0.1:1/name cannot be reached"
    with pytest.raises(DatabaseError, match=cannot) as caught, transaction(engine):
        pass
    assert "VENN_ADMIT_DATABASE_URL" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_misspelt_option_is_one_of_the_address() -> None:
    engine = create_engine("postgresql://me@127.0.0.1:1/name?ssl_mode=require")
    said = 'cannot be reached: invalid connection option "ssl_mode"; .* options in VENN_ADMIT_DATABASE_URL'
    with pytest.raises(DatabaseError, match=said), connect(engine):
        pass


def test_a_limit_of_connections_is_told(empty_database: str) -> None:
    role = f"limited_{uuid.uuid4().hex[:12]}"
    with administration(empty_database) as execute:
        execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 0")
    engine = create_engine(make_url(empty_database).set(username=role).render_as_string(hide_password=False))
    said = "cannot be reached: .*too many connections.*; raise the limit of .*VENN_ADMIT_DATABASE_POOL_SIZE"
    try:
        with pytest.raises(DatabaseError, match=said), connect(engine):
            pass
    finally:
        with administration(empty_database) as execute:
            execute(f"DROP ROLE {role}")


def test_a_database_that_does_not_exist_is_named(server_url: str) -> None:
    engine = create_engine(make_url(server_url).set(database="nowhere").render_as_string(hide_password=False))
    with pytest.raises(DatabaseError, match=r'cannot be reached.*"nowhere" does not exist'), connect(engine):
        pass


def test_a_connection_that_broke_is_replaced(engine: Engine) -> None:
    with transaction(engine) as connection:
        process = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
    with engine_on(engine.url.render_as_string(hide_password=False)) as other, transaction(other) as connection:
        connection.execute(text("SELECT pg_terminate_backend(:process, 60000)"), {"process": process})
    with transaction(engine) as connection:
        assert connection.execute(text("SELECT 1")).scalar_one() == 1


def test_a_connection_is_only_tested_if_there_is_reason_to(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    tested: list[object] = []
    ping = engine.dialect.do_ping

    def noted(connection: Any) -> bool:
        tested.append(connection)
        return ping(connection)

    def use() -> object:
        with connect(engine) as connection:
            return connection.execute(text("SELECT pg_backend_pid()")).scalar_one()

    monkeypatch.setattr(engine.dialect, "do_ping", noted)
    monkeypatch.setattr(database_engine, "_PING_SECONDS", math.inf)
    process = use()
    assert (use(), tested) == (process, [])
    monkeypatch.setattr(database_engine, "_PING_SECONDS", -1.0)  # as if it had been idle for long
    assert (use(), len(tested)) == (process, 1)


def test_a_connection_lost_in_the_middle_is_told(engine: Engine) -> None:
    with pytest.raises(DatabaseError, match="cannot be reached"), transaction(engine) as connection:
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))


def test_all_connections_in_use_is_told(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.pool, "_timeout", 0.1)
    connections = [engine.connect() for _ in range(6)]
    with pytest.raises(DatabaseError, match=r"are in use"), transaction(engine):
        pass
    for connection in connections:
        connection.close()


FORK = """
import os, sys
from sqlalchemy import text
from venn_admit.store.database.engine import create_engine, transaction
engine = create_engine(sys.argv[1])
def say_who_serves():
    with transaction(engine) as connection:
        print(connection.execute(text("SELECT pg_backend_pid()")).scalar_one(), flush=True)
say_who_serves()
child = os.fork()
if child == 0:
    say_who_serves()
    os._exit(0)
os.waitpid(child, 0)
say_who_serves()
"""


@pytest.mark.processes
def test_a_forked_child_opens_connections_of_its_own(empty_database: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", FORK, empty_database], cwd=Path(__file__).parents[3], capture_output=True, check=True
    )
    before, in_child, after = run.stdout.split()
    assert before == after != in_child
    assert run.stderr == b""


def test_the_server_at_hand_serves(engine: Engine) -> None:
    with connect(engine) as connection:
        check_server(connection)


def test_a_server_with_an_old_pgvector_is_refused_by_name(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venn_admit.store.database.engine.MINIMAL_PGVECTOR", (1000,))
    with (
        connect(engine) as connection,
        pytest.raises(DatabaseError, match=rf"/{engine.url.database}.* cannot be used: its pgvector is "),
    ):
        check_server(connection)


@pytest.mark.parametrize(
    ("server", "available", "installed", "problem"),
    [
        (15, "0.7.0", None, None),
        (18, "0.8.5", "0.7.4", None),
        (17, "0.10.0", "0.10.0", None),
        (18, None, "0.8.0", None),
        (14, "0.8.0", "0.8.0", "Postgres 14, expected 15 or newer"),
        (
            16,
            None,
            None,
            "no pgvector, expected 0.7 or newer; install it on the server .*postgresql-16-pgvector",
        ),
        (16, "0.6.2", None, "pgvector is 0.6.2, .*install a newer one"),
        (16, "0.6.2", "0.5.1", "pgvector is 0.5.1, .*install a newer one"),
        (16, "0.8.0", "0.6.2", "pgvector is 0.6.2, .*ALTER EXTENSION vector UPDATE"),
    ],
)
def test_what_a_server_must_have(
    server: int, available: str | None, installed: str | None, problem: str | None
) -> None:
    found = _problem_of_server(server, available, installed)
    assert found is None if problem is None else re.search(problem, found or "")


@pytest.mark.parametrize(
    "vacuum",
    [
        removal.vacuum,
        *(partial(calibration_points.vacuum_points, how=how) for how in calibration_points.Vacuum),
    ],
)
def test_no_timeout_ends_a_vacuum(database: str, vacuum: Callable[[Engine], None]) -> None:
    timeouts: list[tuple[str, str]] = []

    def note(_: Connection, cursor: Any, statement: str, *__: Any) -> None:
        if "VACUUM" in statement:
            assert "," not in statement.rpartition(")")[2], "one table's vacuum must not wait for another's"
            settings = "current_setting('statement_timeout'), current_setting('lock_timeout')"
            timeouts.extend(cursor.execute(f"SELECT {settings}").fetchall())

    engine = create_engine(database, statement_timeout_seconds=600, lock_timeout_seconds=60)
    event.listen(engine, "before_cursor_execute", note)
    vacuum(engine)
    assert timeouts
    assert set(timeouts) == {("0", "0")}
    with connect(engine) as connection:
        assert connection.exec_driver_sql("SHOW statement_timeout").scalar_one() == "10min"
    engine.dispose()
