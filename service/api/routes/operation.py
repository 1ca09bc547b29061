"""Whether the service is up and ready, and its figures."""

from typing import Any

import structlog
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from venn_admit.service import broker
from venn_admit.service.api.metrics import MEDIA_TYPE
from venn_admit.service.api.models.operation import Live, Ready
from venn_admit.service.api.routes.parts import problems, runtime_of
from venn_admit.service.api.security.guard import GuardedRoute, needs
from venn_admit.service.errors import VennAdmitError
from venn_admit.service.flows.jobs.listing import live_workers
from venn_admit.service.store.access.keys import Scope

log = structlog.get_logger()

routes = APIRouter(route_class=GuardedRoute, tags=["operation"], generate_unique_id_function=lambda route: route.name)


@routes.get("/health/live", response_model=Live)
def get_live() -> dict[str, str]:
    """Say that the process answers."""
    return {"status": "live"}


@routes.get("/health/ready", response_model=Ready, responses={503: {"model": Ready, "description": "Not ready."}})
def get_ready(request: Request) -> Response:
    """Say whether requests can be served: what of database, schema and broker is ready, and how many workers are up."""
    runtime = runtime_of(request)
    found: dict[str, Any] = {
        "database": _state("database", runtime.check_server),
        "schema": _state("schema", runtime.check_schema),
        "broker": _state("broker", lambda: broker.waiting(runtime.broker)),
    }
    is_ready = all(state == "ready" for state in found.values())
    found["workers"] = live_workers(runtime.engine) if is_ready else 0
    return JSONResponse({"status": "ready" if is_ready else "failed", **found}, 200 if is_ready else 503)


def _state(what: str, check: Any) -> str:
    try:
        check()
    except VennAdmitError as error:
        log.warning("not ready", what=what, reason=str(error))
        return "failed"
    return "ready"


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
    """Return the figures of this process as Prometheus reads them."""
    workers = live_workers(runtime_of(request).engine)
    return Response(request.app.state.metrics.text(workers), media_type=MEDIA_TYPE)
