"""Short statements that are asked with every request, without SQLAlchemy, which takes several times as long as they."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import psycopg
from psycopg import errors
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGresult
from sqlalchemy import Engine
from sqlalchemy.pool import PoolProxiedConnection

from venn_admit.store.database.driver_errors import wrap_driver_errors
from venn_admit.store.database.statements import numbered

# Where a pooled connection has the names under which the server knows statements.
_PREPARED = "prepared"
# The server has forgotten the statement, or it has another result than before: since a migration, for example.
_OUTDATED = (errors.InvalidSqlStatementName, errors.FeatureNotSupported)
_numbers: Iterator[int] = count(1)


def ask(engine: Engine, name: str, /, **parameters: Any) -> list[tuple[Any, ...]]:
    """Return the rows of the statement `file.name`, which is a transaction of its own.

    Each connection of the pool prepares it once. Listeners to the engine's statements hear of this one too.

    Raises:
        DatabaseError: The database cannot be reached, or refuses the statement.
    """
    text, names = numbered(name)
    for listener in engine.dispatch.before_cursor_execute:
        listener(None, None, text, parameters, None, False)
    values = [parameters[one] for one in names]
    with wrap_driver_errors(engine):
        held = engine.raw_connection()
        try:
            try:
                return _rows(held, text, values)
            except _OUTDATED:
                del held.info[_PREPARED][text]
                return _rows(held, text, values)
        except psycopg.Error as error:
            if _driver(held).pgconn.status != ConnStatus.OK:
                held.invalidate(error)
            raise
        finally:
            held.close()


def _driver(held: PoolProxiedConnection) -> psycopg.Connection[Any]:
    connection = held.driver_connection
    assert isinstance(connection, psycopg.Connection)
    return connection


def _rows(held: PoolProxiedConnection, text: str, values: list[Any]) -> list[tuple[Any, ...]]:
    """Outside of a transaction, the server commits each statement as it ends."""
    connection, known = _driver(held), held.info.setdefault(_PREPARED, {})
    if text not in known:
        name = f"venn_admit_{next(_numbers)}".encode()
        _checked(connection, connection.pgconn.prepare(name, text.encode()), ExecStatus.COMMAND_OK)
        known[text] = name
    adapting = Transformer.from_context(connection)
    given = adapting.dump_sequence(values, [PyFormat.TEXT] * len(values))
    answer = connection.pgconn.exec_prepared(known[text], given)  # type: ignore[arg-type] # it takes None too
    result = _checked(connection, answer, ExecStatus.TUPLES_OK)
    adapting.set_pgresult(result)
    return adapting.load_rows(0, result.ntuples, tuple)


def _checked(connection: psycopg.Connection[Any], result: PGresult, expected: ExecStatus) -> PGresult:
    if result.status != expected:
        raise errors.error_from_result(result, encoding=connection.info.encoding)
    return result
