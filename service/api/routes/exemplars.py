"""Exemplars and labels that come in."""

from typing import Any

from fastapi import Request

from venn_admit.service.api.incoming import exemplar_source, label_source
from venn_admit.service.api.models.exemplars import IngestedAnswer, Labelled, NewExemplars, NewLabels
from venn_admit.service.api.routes.parts import ClassifierName, problems, router, runtime_of
from venn_admit.service.api.security.guard import needs
from venn_admit.service.flows.exemplars.catalogue import find
from venn_admit.service.flows.exemplars.ingest import ingest
from venn_admit.service.flows.exemplars.label import label
from venn_admit.service.payloads.exemplars import ingested_payload, labelled_payload
from venn_admit.service.store.access.keys import Scope

routes = router("exemplars and labels")


@routes.post(
    "/classifiers/{classifier}/exemplars",
    response_model=IngestedAnswer,
    dependencies=[needs(Scope.WRITE)],
    responses=problems(404, 409, 413),
)
def post_exemplars(request: Request, classifier: ClassifierName, given: NewExemplars) -> dict[str, Any]:
    """Store labelled exemplars: all of them, or none if one is refused. Sending them again is a no-op."""
    runtime = runtime_of(request)
    source = exemplar_source(given, find(runtime.engine, classifier), runtime.memory_budget)
    return ingested_payload(ingest(runtime.engine, classifier, source, given.split))


@routes.post(
    "/classifiers/{classifier}/labels",
    response_model=Labelled,
    dependencies=[needs(Scope.WRITE)],
    responses=problems(404, 409, 413),
)
def post_labels(request: Request, classifier: ClassifierName, given: NewLabels) -> dict[str, Any]:
    """Record labels of stored exemplars; the next recalibration uses them."""
    runtime = runtime_of(request)
    done = label(
        runtime.engine,
        classifier,
        label_source(given, runtime.memory_budget),
        selection=given.selection,
        retract=given.retract,
        join_train=given.join_train,
    )
    return labelled_payload(done)
