"""Whether the service is up and ready, its figures, and the audit ledger."""

from collections.abc import Callable
from typing import Any

import structlog
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from venn_admit import broker
from venn_admit.api.models.operation import AuditEvents, Live, Ready
from venn_admit.api.routes.parts import FIRST_PAGE, Cursor, Limit, Routes, finite, problems, runtime_of
from venn_admit.errors import VennAdmitError
from venn_admit.flows.jobs.listing import live_workers
from venn_admit.flows.keys.keys import list_events
from venn_admit.flows.reports.gauges import standing
from venn_admit.http.guards.guard import GuardedRoute, needs
from venn_admit.http.metrics import MEDIA_TYPE, Metrics
from venn_admit.http.paging import key_before, page
from venn_admit.http.threads import FOR_READINESS
from venn_admit.results import rows_json
from venn_admit.runtime.workspace import Runtime
from venn_admit.store.access.keys import Scope

_WORDS = {True: "ready", False: "failed"}

log = structlog.get_logger()

routes = APIRouter(route_class=GuardedRoute, tags=["operation"], generate_unique_id_function=lambda route: route.name)
audit = Routes("audit")


@routes.get("/health/live", name="get_liveness", response_model=Live)
async def get_live() -> dict[str, str]:
    """Say that the process answers."""
    return {"status": "live"}


@routes.get(
    "/health/ready",
    name="get_readiness",
    response_model=Ready,
    responses={503: {"model": Ready, "description": "Not ready."}},
)
async def get_ready(request: Request) -> Response:
    """Say whether requests can be served: what of database, schema and broker is ready, and how many workers are up.

    A service without workers is ready: most requests need none, files to score wait for one, and the others say so.
    """
    return await FOR_READINESS.run(_readiness, runtime_of(request))


def _readiness(runtime: Runtime) -> Response:
    found = _ready(runtime)
    is_ready = all(found.values())
    answer: dict[str, Any] = {
        "status": _WORDS[is_ready],
        **{what: _WORDS[state] for what, state in found.items()},
        "workers": live_workers(runtime.engine) if is_ready else 0,
    }
    return JSONResponse(answer, 200 if is_ready else 503)


def _ready(runtime: Runtime) -> dict[str, bool]:
    """Return what the service needs, each with whether it is ready."""
    return {
        "database": _is_ready("database", runtime.check_server),
        "schema": _is_ready("schema", runtime.check_schema),
        "broker": _is_ready("broker", lambda: broker.waiting(runtime.broker)),
    }


def _is_ready(what: str, check: Callable[[], object]) -> bool:
    try:
        check()
    except VennAdmitError as error:
        log.warning("not ready", what=what, reason=str(error))
        return False
    return True


@routes.get(
    "/metrics",
    dependencies=[needs(Scope.READ, every_classifier=True)],
    response_class=Response,
    responses={
        200: {"description": "The figures.", "content": {"text/plain": {"schema": {"type": "string"}}}},
        **problems(401, 403, 429, 503),
    },
)
def get_metrics(request: Request) -> Response:
    """Return the figures of this process, and what is watched of the service, as Prometheus reads them."""
    runtime = runtime_of(request)
    metrics: Metrics = request.app.state.metrics
    return Response(metrics.text(standing(runtime.engine), _ready(runtime)), media_type=MEDIA_TYPE)


@audit.answer("GET", "/audit", Scope.ADMIN, AuditEvents, name="list_audit_events", every_classifier=True)
def get_audit(request: Request, limit: Limit = FIRST_PAGE, cursor: Cursor = None) -> dict[str, Any]:
    """List who did what, the newest first: requests that store something, refused keys, and changes of keys."""
    found = list_events(runtime_of(request).engine, limit=limit + 1, before=key_before(cursor))
    rows, follows = page(found, limit, lambda row: int(row.event))
    return finite({"events": rows_json(rows), "next_cursor": follows})
