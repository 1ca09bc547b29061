"""The whole service: what programs ask for, and the page."""

from fastapi import FastAPI

from venn_admit.service.api.application import create_application
from venn_admit.service.runtime import Runtime
from venn_admit.service.web.failures import register_failures
from venn_admit.service.web.routes import (
    assets,
    cells,
    classifier,
    decisions,
    jobs,
    keys,
    labels,
    overview,
    report,
    sign_in,
    trying,
)

PAGES = (assets, sign_in, overview, classifier, report, cells, decisions, labels, jobs, trying, keys)
ROUTERS = tuple(part.routes for part in PAGES)


def create_site(runtime: Runtime) -> FastAPI:
    """Return an application that serves programs and people; whoever makes it disposes of the runtime's engine."""
    app = create_application(runtime)
    for router in ROUTERS:
        app.include_router(router)
    register_failures(app)
    return app
