"""Statements that each connection prepares once, past SQLAlchemy."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, event, text

from venn_admit.errors import Code, DatabaseError
from venn_admit.store.calibrations.calibrations import Latest, latest_with
from venn_admit.store.database.engine import at_once, create_engine
from venn_admit.store.database.prepared import ask
from venn_admit.store.database.statements import execute


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    """One connection, so that each statement finds what those before left."""
    engine = create_engine(database, pool_size=1)
    yield engine
    engine.dispose()


def asked(engine: Engine) -> Latest:
    return latest_with(engine, "nothing", [1], [2])


def test_a_statement_is_prepared_once_and_heard_of_each_time(engine: Engine) -> None:
    said = list[str]()
    event.listen(engine, "before_cursor_execute", lambda _connection, _cursor, text, *_others: said.append(text))
    assert [asked(engine) for _ in range(3)] == [Latest(None)] * 3
    assert len(said) == 3
    with at_once(engine) as connection:
        (name,) = connection.execute(text("SELECT name FROM pg_prepared_statements")).scalars()
    assert name.startswith("venn_admit_")


def test_values_are_those_of_the_driver(engine: Engine) -> None:
    with at_once(engine) as connection:
        assert ask(engine, "server.versions") == [tuple(execute(connection, "server.versions").one())]


@pytest.mark.parametrize(
    "harm", ["DEALLOCATE ALL", "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE pid = :pid"]
)
def test_what_the_server_forgot_is_prepared_again(engine: Engine, database: str, harm: str) -> None:
    asked(engine)
    with at_once(engine) as connection:
        process = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        if ":pid" not in harm:
            connection.execute(text(harm))
    if ":pid" in harm:
        other = create_engine(database)
        with at_once(other) as connection:
            connection.execute(text(harm), {"pid": process})
        other.dispose()
    assert asked(engine) == Latest(None)


def test_an_error_is_that_of_the_database(engine: Engine) -> None:
    with at_once(engine) as connection:
        connection.execute(text("SET search_path TO public"))
    with pytest.raises(DatabaseError, match="refused a statement") as caught:
        asked(engine)
    assert caught.value.code == Code.SCHEMA_MISMATCH
    with at_once(engine) as connection:
        connection.execute(text("SET search_path TO venn_admit, public"))
    assert asked(engine) == Latest(None)
