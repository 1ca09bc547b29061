"""The ledger of who did what, which is only added to."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row

from venn_admit.store.database.statements import execute


class Origin(StrEnum):
    """Where something was asked for."""

    HTTP = "http"
    COMMAND_LINE = "command line"
    PYTHON = "python"
    SCHEDULE = "schedule"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that was done, or refused; without what the request held, which may be secret.

    action: the operationId of the route, authenticate, or create_key, revoke_key, create_generation, switch_generation,
    state_extractor, delete_job, prune_jobs, forget_exemplars, delete_classifier or delete_generation. route: method
    and path template. target: the classifier, key or job that the path or command names.
    """

    origin: Origin
    action: str
    key_id: int | None = None
    subject: str | None = None
    route: str | None = None
    target: str | None = None
    status: int | None = None
    is_replay: bool = False
    request_id: str | None = None
    client_address: str | None = None


def add(connection: Connection, event: Event) -> None:
    """Add an event."""
    execute(connection, "audit.add", **asdict(event))


def newest(connection: Connection, *, limit: int, before: int | None) -> Sequence[Row[Any]]:
    """Return the newest events; before: only those older than this one."""
    return execute(connection, "audit.events", row_limit=limit, before=before).all()
