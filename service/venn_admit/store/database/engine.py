"""Access to the database: engine, connections and transactions, and what the server must be.

Whatever opens a connection raises DatabaseError if the database cannot be reached, or refuses a statement of the block.
"""

import os
import re
import select
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import sqlalchemy
from psycopg.adapt import AdaptersMap, Dumper
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, event, exc
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from venn_admit.errors import DatabaseError
from venn_admit.store.database.address import embedded_home, parse
from venn_admit.store.database.driver_errors import shown_name, wrap_driver_errors
from venn_admit.store.database.statements import execute

Cursor = psycopg.Cursor[tuple[Any, ...]]

SEARCH_PATH = "venn_admit,public"
MINIMAL_SERVER = 15
MINIMAL_PGVECTOR = (0, 7)

# A connection that was idle for longer may have been forgotten on the way, where nothing tells of it.
_PING_SECONDS = 30.0
_RETURNED = "returned"
_IDENTITY = "identity"


class _IdsDumper(Dumper):
    """Sends an array of whole numbers as bigint[], in a ninth of the time that a list of them takes."""

    oid = psycopg.adapters.types["int8"].array_oid

    def dump(self, obj: Any) -> bytes:
        assert (obj.ndim, obj.dtype.kind) == (1, "i"), "an array of other values"
        return f"{{{','.join(map(str, obj.tolist()))}}}".encode()


_ADAPTERS = AdaptersMap(psycopg.adapters)
_ADAPTERS.register_dumper("numpy.ndarray", _IdsDumper)
_CONNECTED_WITH = {"context": _ADAPTERS}

_engines: "weakref.WeakSet[Engine]" = weakref.WeakSet()


def create_engine(
    url: str,
    *,
    application_name: str = "venn-admit",
    statement_timeout_seconds: int = 0,
    lock_timeout_seconds: int = 0,
    idle_in_transaction_seconds: int = 0,
    pool_size: int = 2,
) -> Engine:
    """Return an engine whose sessions search our schema first; it does not connect yet.

    Args:
        url: A libpq or SQLAlchemy URL. Its options take precedence over the defaults here, except for the search path.
        application_name: The name that sessions show to the server.
        statement_timeout_seconds: 0 means none.
        lock_timeout_seconds: 0 means none.
        idle_in_transaction_seconds: 0 means none. The server ends a session that stays idle inside a transaction for
            longer, and releases what the session holds.
        pool_size: How many connections stay open between uses; up to four more are opened for a time.

    Raises:
        InvalidInputError: `url` is not the address of a Postgres database.
    """
    address = parse(url)
    given = address.query.get("options", ())
    options = [
        "-c jit=off",  # compiling costs more than it saves in short statements
        f"-c statement_timeout={statement_timeout_seconds}s",
        f"-c lock_timeout={lock_timeout_seconds}s",
        f"-c idle_in_transaction_session_timeout={idle_in_transaction_seconds}s",
        *((given,) if isinstance(given, str) else given),
        f"-c search_path={SEARCH_PATH}",
    ]
    defaults = {"application_name": application_name, "connect_timeout": "10"}
    address = address.set(query={**defaults, **address.query, "options": " ".join(options)})
    engine = sqlalchemy.create_engine(address, pool_size=pool_size, max_overflow=4, connect_args=_CONNECTED_WITH)
    event.listen(engine, "do_connect", _start_again)
    event.listen(engine, "checkin", _note_return)
    event.listen(engine, "checkout", _require_open(engine))
    _engines.add(engine)
    return engine


@contextmanager
def unpooled(engine: Engine) -> Iterator[Engine]:
    """Yield an engine for the same database that keeps no connections.

    It is for a thread that nobody waits for: a pool that was disposed of meanwhile would keep its connections open.
    """
    own = sqlalchemy.create_engine(engine.url, poolclass=NullPool, connect_args=_CONNECTED_WITH)
    try:
        yield own
    finally:
        own.dispose()


def _start_again(_dialect: object, _entry: object, _arguments: object, parameters: dict[str, Any]) -> None:
    """Start an embedded server that has ended, before a connection to it is opened."""
    home = embedded_home(parameters.get("host", ""))
    if home is not None:
        from venn_admit.store.embedded.users import start_embedded_again

        start_embedded_again(home)


def _note_return(connection: object, entry: ConnectionPoolEntry) -> None:
    """Leave it to the server whether the next transaction may write, and note when the connection came back.

    After a read-only transaction, SQLAlchemy has the next one ask for write access, which a standby refuses.
    """
    entry.info[_RETURNED] = time.monotonic()
    if isinstance(connection, psycopg.Connection) and not connection.closed:
        connection.read_only = None


def _require_open(engine: Engine) -> Callable[[object, ConnectionPoolEntry, object], None]:
    """Have the pool replace a connection that the server closed, mostly without a question to the server.

    A server that ends a session says so: there is something to be read. Only then, or if the connection was idle for
    long, is the server asked.
    """

    def check(connection: object, entry: ConnectionPoolEntry, _: object) -> None:
        assert isinstance(connection, psycopg.Connection)
        if connection.closed:
            raise exc.DisconnectionError
        idle_seconds = time.monotonic() - entry.info.get(_RETURNED, time.monotonic())
        if idle_seconds > _PING_SECONDS or _has_something_to_read(connection):
            try:
                engine.dialect.do_ping(connection)  # type: ignore[arg-type]
            except psycopg.OperationalError as error:
                raise exc.DisconnectionError from error

    return check


def _has_something_to_read(connection: psycopg.Connection[object]) -> bool:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """Open a connection in a transaction, committed at the end and rolled back if the block raises."""
    with wrap_driver_errors(engine), engine.begin() as connection:
        yield connection


@contextmanager
def connect(engine: Engine) -> Iterator[Connection]:
    """Open a connection whose transactions the block begins and commits; a transaction left open is rolled back."""
    with wrap_driver_errors(engine), engine.connect() as connection:
        yield connection
        if not (connection.closed or connection.invalidated):
            _roll_back(connection)


def _roll_back(connection: Connection) -> None:
    """Roll back what a block that only reads left open, by libpq.

    When the driver rolls back, it lets the server forget every statement that the connection has prepared.
    """
    driver: Any = connection.connection.dbapi_connection  # also of a connection that left the pool
    if driver.info.transaction_status == TransactionStatus.INTRANS:
        driver.pgconn.exec_(b"ROLLBACK")


@contextmanager
def at_once(engine: Engine) -> Iterator[Connection]:
    """Open a connection on which the server commits each statement as it ends.

    This is for single statements: those that lock rows which others skip or wait for, because a process that is
    stopped after such a statement holds no lock, whereas one stopped between statement and commit would; and short ones
    that are asked often, because beginning and ending a transaction takes as long again.
    """
    with connect(engine) as connection:
        yield connection.execution_options(isolation_level="AUTOCOMMIT")


@contextmanager
def unlimited(engine: Engine) -> Iterator[Connection]:
    """Open a connection for work that is done outside of transactions and may take long; no timeout ends it."""
    with at_once(engine) as connection:
        execute(connection, "server.unlimited")
        try:
            yield connection
        finally:
            execute(connection, "server.limited")


@contextmanager
def consistent_view(engine: Engine) -> Iterator[Connection]:
    """Open a read-only transaction whose statements all see the database at one moment; it works on a standby too."""
    with connect(engine) as connection:
        connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        with connection.begin():
            yield connection


def check_server(connection: Connection) -> None:
    """Raise DatabaseError unless the server and its pgvector are recent enough."""
    versions = execute(connection, "server.versions").one()
    problem = _problem_of_server(versions.server, versions.available, versions.installed)
    if problem:
        raise DatabaseError(f"the database {shown_name(connection.engine)} cannot be used: {problem}")


def _problem_of_server(server: int, available: str | None, installed: str | None) -> str | None:
    wanted = ".".join(map(str, MINIMAL_PGVECTOR))
    if server < MINIMAL_SERVER:
        return f"it is Postgres {server}, expected {MINIMAL_SERVER} or newer; upgrade it or use another"
    usable = installed or available
    if usable is None:
        return (
            f"it has no pgvector, expected {wanted} or newer; install it on the server "
            f"(package postgresql-{server}-pgvector, or the image pgvector/pgvector:pg{server})"
        )
    if _version(usable) >= MINIMAL_PGVECTOR:
        return None
    if available is not None and _version(available) >= MINIMAL_PGVECTOR:
        return f"its pgvector is {usable}, expected {wanted} or newer; run ALTER EXTENSION vector UPDATE in it"
    return f"its pgvector is {usable}, expected {wanted} or newer; install a newer one on the server"


def _version(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version))


def database_identity(connection: Connection) -> str:
    """Return an identity that tells this database from all others, copies of it included."""
    known = connection.info  # of the driver's connection, which is to one database as long as it lives
    if _IDENTITY not in known:
        known[_IDENTITY] = execute(connection, "server.database_identity").scalar_one()
    identity: str = known[_IDENTITY]
    return identity


def _forget_inherited_connections() -> None:
    """Forget the parent's connections, left open for it: a connection serves one process, and a child opens its own."""
    for engine in list(_engines):
        engine.dispose(close=False)


os.register_at_fork(after_in_child=_forget_inherited_connections)


def driver_cursor(connection: Connection) -> Cursor:
    """Return a cursor of the driver in the connection's transaction, because SQLAlchemy has no COPY."""
    driver_connection = connection.connection.driver_connection
    assert isinstance(driver_connection, psycopg.Connection)
    return driver_connection.cursor()
