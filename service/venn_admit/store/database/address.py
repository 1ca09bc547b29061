"""The address of the database, as the settings or the embedded server have it."""

from pathlib import Path
from typing import Protocol

from sqlalchemy import URL, exc, make_url

from venn_admit.errors import InvalidInputError

_DRIVER = "postgresql+psycopg"
_ALIASES = ("postgresql", "postgres", _DRIVER)


class DatabaseSettings(Protocol):
    """The settings that say where the database is."""

    @property
    def home(self) -> Path: ...

    @property
    def database_url(self) -> str | None: ...

    @property
    def database_password_file(self) -> Path | None: ...


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
    address = parse(url)
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


def parse(url: str) -> URL:
    """Return an address as SQLAlchemy has it; InvalidInputError unless it is that of a Postgres database."""
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


def embedded_home(host: str) -> Path | None:
    """Return the home of the embedded server at a host, if this process uses it."""
    return _homes.get(host)
