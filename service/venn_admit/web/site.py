"""The whole service: what programs ask for, and the page."""

from functools import partial

from fastapi import FastAPI

from venn_admit.api.application import create_application, methods_at
from venn_admit.runtime.workspace import Runtime
from venn_admit.web.caches import MethodsCache, ReportCache
from venn_admit.web.failures import register_failures
from venn_admit.web.routes import cascades, decisions, jobs, keys, labels, overview, public, report, reviews

PAGES = (public, keys, overview, report, decisions, labels, reviews, jobs, cascades)
ROUTERS = tuple(part.routes for part in PAGES)


def create_site(runtime: Runtime) -> FastAPI:
    """Return an application that serves programs and people; its caller disposes of the runtime's engine."""
    app = create_application(runtime)
    app.state.report_cache = ReportCache(runtime)
    app.state.methods_cache = MethodsCache(runtime)
    for router in ROUTERS:
        app.include_router(router)
    register_failures(app, partial(methods_at, routers=ROUTERS))
    return app
