"""Access to the database: engine, transactions, and the meaning of the driver's errors."""

import os
import re
import select
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import psycopg
import sqlalchemy
from sqlalchemy import URL, Connection, Engine, event, exc, make_url
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from venn_admit.errors import Code, DatabaseError, InvalidInputError
from venn_admit.secrets import MASK, mask
from venn_admit.store.database.statements import execute

SEARCH_PATH = "venn_admit,public"
MINIMAL_SERVER = 15
MINIMAL_PGVECTOR = (0, 7)

_DRIVER = "postgresql+psycopg"
_ALIASES = ("postgresql", "postgres", _DRIVER)

_UPGRADE = "upgrade the schema of the database"
# What a reader can do about an error, by SQLSTATE or a class of them (PostgreSQL documentation, appendix A).
_ADVICE = {
    "08": "check that it runs, and check host, user, password and database name in VENN_ADMIT_DATABASE_URL",
    "22": "the value does not fit its column; check the input",
    "23": "the input contradicts what is stored, or another program wrote to the tables",
    "25P03": "the session was idle for too long inside a transaction; try again",
    "3F000": _UPGRADE,
    "40": "another process interfered; try again",
    "42501": "grant the database user the privilege, or name another user in VENN_ADMIT_DATABASE_URL",
    "42P01": _UPGRADE,
    "42703": _UPGRADE,
    "42883": _UPGRADE,
    "53100": "free space on the server's disk",
    "53200": "give the server more memory, or set a lower VENN_ADMIT_WORKER_CONCURRENCY",
    "53300": "raise the server's max_connections, or set a lower VENN_ADMIT_WORKER_CONCURRENCY",
    "55P03": "another process held the lock; try again, or raise VENN_ADMIT_LOCK_TIMEOUT_SECONDS",
    "57014": "try again, or raise VENN_ADMIT_STATEMENT_TIMEOUT_SECONDS",
    "57P": "the server has stopped or is starting; try again when it is up",
}
_ADVICE_ELSE = "look at the server's log"
_UNREACHABLE = ("08", "57P")
# A connection that was idle for longer may have been forgotten on the way, where nothing tells of it.
_PING_SECONDS = 30.0
_RETURNED = "returned"
# The options of an address that a message shows; any other may be a secret, even a misspelt one.
_SHOWN_OPTIONS = ("host", "hostaddr", "port", "user", "sslmode")


class DatabaseSettings(Protocol):
    """The settings that say where the database is."""

    @property
    def home(self) -> Path: ...

    @property
    def database_url(self) -> str | None: ...

    @property
    def database_password_file(self) -> Path | None: ...


_engines: "weakref.WeakSet[Engine]" = weakref.WeakSet()
# The homes of embedded servers that this process uses, by the host in their addresses.
_homes: dict[str, Path] = {}


def database_url(settings: DatabaseSettings) -> str:
    """Return the URL of the server that the settings name, or of the embedded one, which is started if necessary.

    Raises:
        DatabaseError: The embedded server does not start.
        InvalidInputError: The file of the password cannot be used.
    """
    if settings.database_password_file is not None:
        return _with_password(settings.database_url, settings.database_password_file)
    if settings.database_url is not None:
        return settings.database_url
    from venn_admit.store.embedded.users import start_embedded  # not needed with a server of one's own

    url = start_embedded(settings.home)
    _homes[str(make_url(url).query["host"])] = settings.home
    return url


def _with_password(url: str | None, file: Path) -> str:
    """The address with the password in the file, which is encoded as an address needs it."""
    if url is None:
        raise InvalidInputError(
            "VENN_ADMIT_DATABASE_PASSWORD_FILE is set without VENN_ADMIT_DATABASE_URL; set both, or unset it"
        )
    address = _parse(url)
    if address.password is not None:
        raise InvalidInputError(
            "both VENN_ADMIT_DATABASE_URL and VENN_ADMIT_DATABASE_PASSWORD_FILE hold a password; "
            "remove the one from the address, or unset the file"
        )
    try:
        password = file.read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInputError(
            f"VENN_ADMIT_DATABASE_PASSWORD_FILE: {file} cannot be read as text: "
            f"{getattr(error, 'strerror', None) or 'it is not UTF-8'}; name a file that this user may read"
        ) from error
    if not password:
        raise InvalidInputError(f"VENN_ADMIT_DATABASE_PASSWORD_FILE: {file} is empty; write the password into it")
    return address.set(password=password).render_as_string(hide_password=False)


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
    address = _parse(url)
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
    engine = sqlalchemy.create_engine(address, pool_size=pool_size, max_overflow=4)
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
    own = sqlalchemy.create_engine(engine.url, poolclass=NullPool)
    try:
        yield own
    finally:
        own.dispose()


def _start_again(_dialect: object, _entry: object, _arguments: object, parameters: dict[str, Any]) -> None:
    """Start an embedded server that has ended, before a connection to it is opened."""
    home = _homes.get(parameters.get("host", ""))
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


def _parse(url: str) -> URL:
    try:
        address = make_url(url)
    except (exc.ArgumentError, ValueError):
        address = URL.create("unknown")
    if address.drivername not in _ALIASES:
        # The message shows neither the address nor the parser's message, because both may hold a password.
        raise InvalidInputError(
            "the database address is not that of a Postgres: expected postgresql://user:password@host:port/name "
            f"in VENN_ADMIT_DATABASE_URL, got one that starts with {address.drivername!r}"
        )
    before_query, _, query = url.partition("?")
    if before_query.count("@") > 1 or ("@" in query and "@" not in before_query):
        raise InvalidInputError(
            "the database address in VENN_ADMIT_DATABASE_URL is ambiguous: "
            "write @ as %40 and ? as %3F in its user, password and options"
        )
    return address.set(drivername=_DRIVER)


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """Open a connection in a transaction, committed at the end and rolled back if the block raises.

    Raises:
        DatabaseError: The database cannot be reached, or it refused a statement of the block.
    """
    with wrap_driver_errors(engine), engine.begin() as connection:
        yield connection


@contextmanager
def connect(engine: Engine) -> Iterator[Connection]:
    """Open a connection whose transactions the block begins and commits; a transaction left open is rolled back.

    Raises:
        DatabaseError: As in `transaction`.
    """
    with wrap_driver_errors(engine), engine.connect() as connection:
        yield connection


@contextmanager
def at_once(engine: Engine) -> Iterator[Connection]:
    """Open a connection on which the server commits each statement as it ends.

    This is for single statements: those that lock rows which others skip or wait for, because a process that is
    stopped after such a statement holds no lock, whereas one stopped between statement and commit would; and short ones
    that are asked often, because beginning and ending a transaction takes as long again.

    Raises:
        DatabaseError: As in `transaction`.
    """
    with connect(engine) as connection:
        yield connection.execution_options(isolation_level="AUTOCOMMIT")


@contextmanager
def unlimited(engine: Engine) -> Iterator[Connection]:
    """Open a connection for work that is done outside of transactions and may take long; no timeout ends it.

    Raises:
        DatabaseError: As in `transaction`.
    """
    with at_once(engine) as connection:
        execute(connection, "server.unlimited")
        try:
            yield connection
        finally:
            execute(connection, "server.limited")


@contextmanager
def consistent_view(engine: Engine) -> Iterator[Connection]:
    """Open a read-only transaction whose statements all see the database at one moment; it works on a standby too.

    Raises:
        DatabaseError: As in `transaction`.
    """
    with connect(engine) as connection:
        connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        with connection.begin():
            yield connection


@contextmanager
def wrap_driver_errors(engine: Engine) -> Iterator[None]:
    """Turn an error of the driver into a DatabaseError that says which database failed, how, and what to do."""
    try:
        yield
    except exc.TimeoutError as error:
        raise DatabaseError(
            f"all connections of this process to {_name(engine)} are in use; try again, or raise "
            "VENN_ADMIT_DATABASE_POOL_SIZE",
            code=Code.DATABASE_BUSY,
        ) from error
    except exc.DBAPIError as error:
        raise _database_error(engine, error.orig or error) from error
    except psycopg.Error as error:
        raise _database_error(engine, error) from error


def _database_error(engine: Engine, error: BaseException) -> DatabaseError:
    """Keep only the first lines from the driver, because the parameters of a statement may be megabytes of vectors."""
    state = (error.sqlstate if isinstance(error, psycopg.Error) else None) or ""
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    words = _mask(primary or str(error), engine)
    said = words if primary else " / ".join(line.strip() for line in words.splitlines()[:3])
    if not state and isinstance(error, psycopg.OperationalError):
        state = "08"  # libpq's own errors carry no SQLSTATE
    reached = not state.startswith(_UNREACHABLE)
    happened = "refused a statement" if reached else "cannot be reached"
    advice = next((_ADVICE[key] for key in (state, state[:3], state[:2]) if key in _ADVICE), _ADVICE_ELSE)
    code = Code.SCHEMA_MISMATCH if advice == _UPGRADE else Code.DATABASE if reached else Code.DATABASE_UNREACHABLE
    return DatabaseError(f"the database {_name(engine)} {happened}: {said}; {advice}", code=code)


def _name(engine: Engine) -> str:
    """The address without its secrets and without options that nobody needs to know."""
    query = {name: value for name, value in engine.url.query.items() if name in _SHOWN_OPTIONS}
    url = engine.url.set(drivername="postgresql", query=query)
    if re.search("[=:]", url.database or ""):  # libpq accepts an address or a keyword string as a name, too
        url = url.set(database=MASK)
    return _mask(url.render_as_string(hide_password=True), engine)


def _mask(text: str, engine: Engine) -> str:
    return mask(text, engine.url.render_as_string(hide_password=False))


def check_server(connection: Connection) -> None:
    """Raise DatabaseError unless the server and its pgvector are recent enough."""
    versions = execute(connection, "server.versions").one()
    problem = _problem_of_server(versions.server, versions.available, versions.installed)
    if problem:
        raise DatabaseError(f"the database {_name(connection.engine)} cannot be used: {problem}")


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


def _forget_inherited_connections() -> None:
    """Forget the parent's connections, left open for it: a connection serves one process, and a child opens its own."""
    for engine in list(_engines):
        engine.dispose(close=False)


os.register_at_fork(after_in_child=_forget_inherited_connections)
