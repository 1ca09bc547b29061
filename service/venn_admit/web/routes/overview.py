"""The first page, with every classifier, and the page of one."""

from fastapi import Request, Response

from venn_admit.api.routes.parts import ClassifierName
from venn_admit.flows.data.catalogue import glance_at, glance_at_classifiers
from venn_admit.flows.reports.monitor import lit_lamps, lit_lamps_of
from venn_admit.http.guards.guard import needs
from venn_admit.report.wording import waiting_text
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


@routes.get("/classifiers/{classifier}", dependencies=[needs(Scope.READ)])
def get_classifier(request: Request, classifier: ClassifierName) -> Response:
    """Show a classifier."""
    engine = runtime_of(request).engine
    found = glance_at(engine, classifier)
    return page(
        request,
        "classifier",
        title=classifier,
        classifier=classifier,
        kind=found.classifier,
        lit=lit_lamps_of(engine, classifier),
        settings=found.settings,
        in_use=next((setting for setting in found.settings if setting.is_in_use), None),
        waiting=waiting_text(found.waiting) if found.waiting else None,
    )
