"""The first page: every classifier at a glance."""

from fastapi import Request, Response

from venn_admit.flows.data.glance import glance_at_classifiers
from venn_admit.flows.reports.lamps import lit_lamps
from venn_admit.http.guards.guard import needs
from venn_admit.store.access.keys import Scope
from venn_admit.web.access import router
from venn_admit.web.rendering import page, runtime_of

routes = router()


@routes.get("/", dependencies=[needs(Scope.READ)])
def get_overview(request: Request) -> Response:
    """List the classifiers that the key is for."""
    engine, own = runtime_of(request).engine, request.state.caller.classifier
    found = [one for one in glance_at_classifiers(engine) if own in (None, one.classifier.shared_name)]
    return page(request, "overview", title="Classifiers", listed=found, lit=lit_lamps(engine))
