"""The ledger of who did what: adding to it and reading it."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Engine, Row

from venn_admit.store.access import audit
from venn_admit.store.access.audit import Event
from venn_admit.store.database.engine import connect, transaction


def record(engine: Engine, event: Event) -> None:
    """Add an event."""
    with transaction(engine) as connection:
        audit.add(connection, event)


def list_events(engine: Engine, *, limit: int, before: int | None = None) -> Sequence[Row[Any]]:
    """Return the newest events; before: only those older than this one."""
    with connect(engine) as connection:
        return audit.newest(connection, limit=limit, before=before)
