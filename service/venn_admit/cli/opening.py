"""Opening what a verb works with, which is imported only then: help needs none of it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from venn_admit.cli.session import Session


def open_session(*, migrate: bool | None = None) -> "Session":
    """Connect, and make sure that the database has the schema of this program. migrate: as in `Runtime.open_schema`."""
    session = _started()
    session.open_schema(migrate=migrate)
    return session


def connect_unchecked() -> "Session":
    """Connect, and make sure that the server is usable, whatever its schema."""
    session = _started()
    session.check_server()
    return session


def _started() -> "Session":
    from venn_admit.cli.session import Session
    from venn_admit.runtime.settings import get_settings

    return Session.start(get_settings())
