"""A classifier's page: what is stored of it, and the report on a calibration."""

from fastapi import Request, Response

from venn_admit.service.api.routes.parts import ClassifierName
from venn_admit.service.api.security.guard import needs
from venn_admit.service.flows.exemplars.catalogue import show
from venn_admit.service.store.access.keys import Scope
from venn_admit.service.web.access import router
from venn_admit.service.web.rendering import page, runtime_of

routes = router()


@routes.get("/classifiers/{classifier}", dependencies=[needs(Scope.READ)])
def get_classifier(request: Request, classifier: ClassifierName) -> Response:
    """Show what is stored of a classifier."""
    found = show(runtime_of(request).engine, classifier)
    in_use = next((setting for setting in found.settings if setting.is_in_use), None)
    return page(request, "classifier", title=classifier, classifier=classifier, shown=found, in_use=in_use)
