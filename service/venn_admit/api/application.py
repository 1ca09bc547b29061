"""The HTTP application: its routes, what surrounds them, and its document."""

import math
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.routing import Match
from starlette.types import Scope

from venn_admit import __version__
from venn_admit.api.events import JobEvents
from venn_admit.api.models.common import InvalidValue, ProblemAnswer
from venn_admit.api.routes import (
    audits,
    calibrations,
    cascades,
    classifiers,
    decisions,
    exemplars,
    fits,
    jobs,
    monitoring,
    operation,
    removal,
    reviews,
    settings,
)
from venn_admit.api.routes.parts import problems
from venn_admit.api.together import Together
from venn_admit.core.calibrators.promises import CERTIFIED_SENTENCE, Promised
from venn_admit.http.guards.guard import describe_guards
from venn_admit.http.guards.ledger import Ledger
from venn_admit.http.guards.rates import Concurrency, Rates
from venn_admit.http.guards.token_settings import accepted_tokens
from venn_admit.http.headers import Surroundings
from venn_admit.http.heads import Heads
from venn_admit.http.limits import BodyLimit
from venn_admit.http.metrics import Metrics
from venn_admit.http.paging import LARGEST_KEY
from venn_admit.http.problems import register_problems
from venn_admit.http.tracing import Tracing
from venn_admit.http.uploads import Uploads
from venn_admit.runtime.workspace import Runtime

DOCUMENT = "/v1/openapi.json"
ROUTERS = (
    classifiers.routes,
    classifiers.generations,
    settings.routes,
    audits.routes,
    removal.routes,
    calibrations.routes,
    fits.routes,
    cascades.routes,
    exemplars.routes,
    reviews.routes,
    decisions.routes,
    monitoring.routes,
    jobs.routes,
    operation.routes,
    operation.audit,
)
_TITLE = "venn-admit"
# What a route does is said before the first of these, and what else there is to say follows.
_SUMMARY_END = re.compile(r"[.:;](?=\s|$)")
_OF_FRAMEWORK = "Successful Response"
_SUCCESS = {
    "200": "What was asked for.",
    "201": "It was made.",
    "202": "It was accepted, and workers do it.",
}
_DESCRIPTION = f"""\
May I act on this prediction? Every request except those of health shows a key, in the header `Authorization: Bearer
KEY`; each route says which scope it needs, and each scope includes those before it: read, score, write, admin. Errors
are application/problem+json (RFC 9457), with the codes and the words of the command line.

What is promised of admitted points, for traffic like the calibration data. With a certificate: {CERTIFIED_SENTENCE}.
With `promise` `average`: {Promised.AVERAGE.sentence}. With neither: {Promised.POINTWISE.sentence}."""


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document, which depends on nothing but the program; callers leave it as it is."""
    app = FastAPI()
    for router in ROUTERS:
        app.include_router(router)
    found = get_openapi(
        title=_TITLE,
        version=__version__,
        description=_DESCRIPTION,
        routes=app.routes,
        separate_input_output_schemas=False,
    )
    schemas = found["components"]["schemas"]
    for model in (ProblemAnswer, InvalidValue):
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schema.pop("$defs", None)
        schemas[model.__name__] = schema
    of_bodies = {str(status): answer for status, answer in problems(408, 413, 415).items()}
    for methods in found["paths"].values():
        for method, described in methods.items():
            described["summary"] = _SUMMARY_END.split(described["description"], maxsplit=1)[0]
            for status, answer in described["responses"].items():
                if answer["description"] == _OF_FRAMEWORK:
                    answer["description"] = _SUCCESS[status]
            if method != "get":
                described["responses"].update(of_bodies)
    _make_bounds_exact(found)
    describe_guards(found, ROUTERS)
    return found


def _make_bounds_exact(part: Any) -> None:
    """Write bounds of integers as integers: the framework keeps them as floats, and none is 2 ** 63 - 1."""
    if isinstance(part, list):
        for one in part:
            _make_bounds_exact(one)
    elif isinstance(part, dict):
        for name, value in part.items():
            if name in ("minimum", "maximum") and isinstance(value, float) and value.is_integer():
                part[name] = min(int(value), LARGEST_KEY)
            else:
                _make_bounds_exact(value)


def methods_at(scope: Scope, routers: Iterable[APIRouter] = ROUTERS) -> set[str]:
    """Return the methods that the address of a request takes; the framework knows those of its first route alone."""
    routes = (route for router in routers for route in router.routes if isinstance(route, APIRoute))
    found = {method for route in routes if route.matches(scope)[0] is not Match.NONE for method in route.methods or ()}
    return found | {"HEAD"} if "GET" in found else found


class Application(FastAPI):
    """FastAPI with a document that has our errors instead of the framework's."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        if self.openapi_schema is None:
            root = self.state.runtime.settings.root_path
            self.openapi_schema = document() | ({"servers": [{"url": root}]} if root else {})
        return self.openapi_schema


@asynccontextmanager
async def _with_threads(app: FastAPI) -> AsyncIterator[None]:
    """Let every request that is being answered have a thread.

    They are more than the connections to the database: requests that last wait for workers, or until another one
    has computed what they need too, and hold no connection meanwhile.
    """
    runtime: Runtime = app.state.runtime
    to_thread.current_default_thread_limiter().total_tokens = runtime.settings.concurrent_requests or math.inf
    yield


def create_application(runtime: Runtime) -> FastAPI:
    """Return an application that serves a runtime; its caller disposes of the runtime's engine."""
    app = Application(
        title=_TITLE,
        version=__version__,
        openapi_url=DOCUMENT,
        # Their pages load scripts from other hosts; the service has one of its own.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_with_threads,
        # There are spans and metrics of our own, without what paths name.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.runtime = runtime
    app.state.metrics = Metrics()
    app.state.uploads = Uploads()
    app.state.events = JobEvents(runtime)
    app.state.tokens = accepted_tokens(runtime.settings)
    app.state.ledger = Ledger(runtime)
    app.state.rates = Rates(runtime.settings)
    app.state.together = Together(runtime)
    # Found before the framework asks its routers, since requests to decide are the most.
    app.routes.append(decisions.decide)
    for router in ROUTERS:
        app.include_router(router)
    register_problems(app, methods_at)
    # The one added last is the outermost.
    settings = runtime.settings
    app.add_middleware(Heads)
    app.add_middleware(BodyLimit, budget=settings.body_budget_mb << 20)
    app.add_middleware(
        Concurrency, most=settings.concurrent_requests, most_per_key=settings.concurrent_requests_per_key
    )
    app.add_middleware(Surroundings, metrics=app.state.metrics, root_path=settings.root_path)
    app.add_middleware(Tracing)
    return app
