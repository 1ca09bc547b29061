"""Migrating a database to the schema that this version of the program needs, and the roles that others work under."""

from enum import StrEnum
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from venn_admit.errors import Code, NotFoundError, NotReadyError
from venn_admit.resources import bundled_folder
from venn_admit.store.database.driver_errors import wrap_driver_errors
from venn_admit.store.database.engine import connect, create_engine, transaction
from venn_admit.store.database.statements import execute

if TYPE_CHECKING:  # Alembic takes long to import, and is needed only to migrate
    from alembic.config import Config


def alembic_config() -> "Config":
    from alembic.config import Config

    config = Config()
    # Alembic reads this through configparser, in which a bare % starts an interpolation.
    config.set_main_option("script_location", str(bundled_folder("migrations")).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def head_revision() -> str:
    """Return the highest number of a migration; they stand in one line, each in a file that begins with its number."""
    return max(_revisions())


def _revisions() -> list[str]:
    return [file.name.partition("_")[0] for file in (bundled_folder("migrations") / "versions").glob("[0-9]*.py")]


def current_revision(engine: Engine) -> str | None:
    """Return the revision of the database; None if it was never migrated."""
    with wrap_driver_errors(engine), engine.connect() as connection:
        if not execute(connection, "server.is_migrated").scalar_one():
            return None
        return execute(connection, "server.revision").scalar_one_or_none()


def upgrade_engine(engine: Engine) -> None:
    """Migrate to the head revision; several callers at once wait for each other.

    A schema that a newer program has migrated further stays as it is; NotReadyError is raised unless it serves, and for
    one that is older than the baseline, from which migrations begin.
    """
    current = current_revision(engine)
    if _is_newer(current):
        require_usable(engine)
        return
    base = min(_revisions())
    if current is not None and current < base:
        raise NotReadyError(
            f"expected a database schema of revision {base} or newer, received {current}, which no released program "
            "has made: create the database again, and ingest the data"
        )
    from alembic import command

    config = alembic_config()
    with wrap_driver_errors(engine), engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def upgrade(url: str) -> None:
    """Migrate the database at `url` (a SQLAlchemy or libpq URL) to the head revision."""
    engine = create_engine(url)
    try:
        upgrade_engine(engine)
    finally:
        engine.dispose()


def require_usable(engine: Engine) -> None:
    """Raise NotReadyError unless the schema serves this program.

    It does at the program's own head revision, and at a newer one that says that older programs still work on it.
    """
    current, head = current_revision(engine), head_revision()
    if current == head:
        return
    if not _is_newer(current):
        raise NotReadyError(
            f"the database schema is at revision {current or 'none'}, this program needs {head}: upgrade the schema",
            code=Code.SCHEMA_OUTDATED,
        )
    with connect(engine) as connection:
        oldest: str = execute(connection, "server.oldest_program").scalar_one()
    if oldest > head:
        raise NotReadyError(
            f"the database schema is at revision {current}, which needs a program of revision {oldest} or newer; this "
            f"one is of revision {head}: install the newer version",
            code=Code.PROGRAM_OUTDATED,
        )


def require_checkable(engine: Engine) -> None:
    """Raise NotReadyError if the schema has a revision that is not this program's, even if it serves this program."""
    require_usable(engine)
    current, head = current_revision(engine), head_revision()
    if current != head:
        raise NotReadyError(
            f"the database schema is at revision {current}, and this program checks one of revision {head}: install "
            "the newer version",
            code=Code.PROGRAM_OUTDATED,
        )


def _is_newer(revision: str | None) -> bool:
    """Whether a newer program made this revision, so that this one does not know it."""
    # Revisions are numbered with leading zeros, so that text has the order of numbers.
    return revision is not None and revision > head_revision()


class Group(StrEnum):
    """A role without a login, whose members may do what it may."""

    READER = "venn_admit_reader"
    """Reads schema `report`, and nothing else of ours."""
    SERVICE = "venn_admit_service"
    """Runs commands and workers: reads and changes rows, but no table, and no event of the ledgers."""


GRANTS = {Group.READER: "server.grant_reader", Group.SERVICE: "server.grant_service"}


def grant(engine: Engine, group: Group, role: str) -> None:
    """Make a role of the server a member of the group; doing it twice changes nothing.

    Raises:
        NotFoundError: The server has no such role.
        DatabaseError: The database user may not grant it.
    """
    with transaction(engine) as connection:
        if not execute(connection, "server.role_exists", role=role).scalar_one():
            raise NotFoundError(f"the server has no role {role!r}: create it first, such as by CREATE ROLE ... LOGIN")
        execute(connection, GRANTS[group], role=role)
