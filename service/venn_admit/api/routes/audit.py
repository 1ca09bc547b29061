"""The audit ledger."""

from typing import Any

from fastapi import Request

from venn_admit.api.models.audit import AuditEvents
from venn_admit.api.routes.parts import FIRST_PAGE, Cursor, Limit, finite, router, runtime_of
from venn_admit.flows.keys.keys import list_events
from venn_admit.http.guards.guard import needs
from venn_admit.http.paging import key_before, page
from venn_admit.results import rows_json
from venn_admit.store.access.keys import Scope

routes = router("audit")


@routes.get(
    "/audit",
    name="list_audit_events",
    response_model=AuditEvents,
    dependencies=[needs(Scope.ADMIN, every_classifier=True)],
)
def get_audit(request: Request, limit: Limit = FIRST_PAGE, cursor: Cursor = None) -> dict[str, Any]:
    """List who did what, the newest first: requests that store something, refused keys, and changes of keys."""
    found = list_events(runtime_of(request).engine, limit=limit + 1, before=key_before(cursor))
    rows, follows = page(found, limit, lambda row: int(row.event))
    return finite({"events": rows_json(rows), "next_cursor": follows})
