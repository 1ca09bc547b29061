"""The roles that others work under: one reads schema `report`, one runs the service and changes no table."""

from enum import StrEnum

from sqlalchemy import Engine

from venn_admit.errors import NotFoundError
from venn_admit.store.database.engine import transaction
from venn_admit.store.database.statements import statement


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
        if not connection.execute(statement("server.role_exists"), {"role": role}).scalar_one():
            raise NotFoundError(f"the server has no role {role!r}: create it first, such as by CREATE ROLE ... LOGIN")
        connection.execute(statement(GRANTS[group]), {"role": role})
