"""The role that may read schema `report` and nothing else of ours."""

from sqlalchemy import Engine

from venn_admit.service.errors import NotFoundError
from venn_admit.service.store.database.engine import transaction
from venn_admit.service.store.database.statements import statement

READER = "venn_admit_reader"


def grant_reader(engine: Engine, role: str) -> None:
    """Let a role of the server read schema `report`, as a member of `READER`; doing it twice changes nothing.

    Raises:
        NotFoundError: The server has no such role.
        DatabaseError: The database user may not grant it.
    """
    with transaction(engine) as connection:
        if not connection.execute(statement("server.role_exists"), {"role": role}).scalar_one():
            raise NotFoundError(f"the server has no role {role!r}: create it first, such as by CREATE ROLE ... LOGIN")
        connection.execute(statement("server.grant_reader"), {"role": role})
