"""The meaning of the driver's errors: which database failed, how, and what a reader can do."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy import Engine, exc

from venn_admit.errors import Code, DatabaseError
from venn_admit.secrets import MASK, mask

_UPGRADE = "upgrade the schema of the database"
# What a reader can do about an error, by SQLSTATE or a class of them (PostgreSQL documentation, appendix A).
_ADVICE = {
    "08": "check that it runs, and check host, user, password, database name and options in VENN_ADMIT_DATABASE_URL",
    "22": "the value does not fit its column; check the input",
    "23": "the input contradicts what is stored, or another program wrote to the tables",
    "25006": "the session may only read, as on a standby or as this user is set up; name a server and a user "
    "that write in VENN_ADMIT_DATABASE_URL",
    "25P03": "the session was idle for too long inside a transaction; try again",
    "3F000": _UPGRADE,
    "40": "another process interfered; try again",
    "42501": "grant the database user the privilege, or name another user in VENN_ADMIT_DATABASE_URL",
    "42P01": _UPGRADE,
    "42703": _UPGRADE,
    "42883": _UPGRADE,
    "53100": "free space on the server's disk",
    "53200": "give the server more memory, or set a lower VENN_ADMIT_WORKER_CONCURRENCY",
    "53300": "raise the limit of the server or of the role, or set a lower VENN_ADMIT_WORKER_CONCURRENCY or "
    "VENN_ADMIT_DATABASE_POOL_SIZE",
    "55P03": "another process held the lock; try again, or raise VENN_ADMIT_LOCK_TIMEOUT_SECONDS",
    "57014": "try again, or raise VENN_ADMIT_STATEMENT_TIMEOUT_SECONDS",
    "57P": "the server has stopped or is starting; try again when it is up",
}


_ADVICE_ELSE = "look at the server's log"


_UNREACHABLE = ("08", "53300", "57P")


# What a server says that has no connection left.
_NONE_LEFT = re.compile("too many (clients|connections)|connection slots are reserved")


# The options of an address that a message shows; any other may be a secret, even a misspelt one.
_SHOWN_OPTIONS = ("host", "hostaddr", "port", "user", "sslmode")


@contextmanager
def wrap_driver_errors(engine: Engine) -> Iterator[None]:
    """Turn an error of the driver into a DatabaseError that says which database failed, how, and what to do."""
    try:
        yield
    except exc.TimeoutError as error:
        raise DatabaseError(
            f"all connections of this process to {shown_name(engine)} are in use; try again, or raise "
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
    # The right that is lacking; details of other errors have values of rows.
    if state == "42501" and (detail := getattr(getattr(error, "diag", None), "message_detail", None)):
        words += f" ({_mask(detail, engine).rstrip('.')})"
    said = words if primary else " / ".join(line.strip() for line in words.splitlines()[:3])
    if not state and (isinstance(error, psycopg.OperationalError) or said.startswith("invalid connection option")):
        # A refused connection and libpq's own errors carry no SQLSTATE.
        state = "53300" if _NONE_LEFT.search(said) else "08"
    reached = not state.startswith(_UNREACHABLE)
    happened = "refused a statement" if reached else "cannot be reached"
    advice = next((_ADVICE[key] for key in (state, state[:3], state[:2]) if key in _ADVICE), _ADVICE_ELSE)
    code = Code.SCHEMA_MISMATCH if advice == _UPGRADE else Code.DATABASE if reached else Code.DATABASE_UNREACHABLE
    return DatabaseError(f"the database {shown_name(engine)} {happened}: {said}; {advice}", code=code)


def shown_name(engine: Engine) -> str:
    """Return the address without its secrets and without options that nobody needs to know."""
    query = {name: value for name, value in engine.url.query.items() if name in _SHOWN_OPTIONS}
    url = engine.url.set(drivername="postgresql", query=query)
    if re.search("[=:]", url.database or ""):  # libpq accepts an address or a keyword string as a name, too
        url = url.set(database=MASK)
    return _mask(url.render_as_string(hide_password=True), engine)


def _mask(text: str, engine: Engine) -> str:
    return mask(text, engine.url.render_as_string(hide_password=False))
