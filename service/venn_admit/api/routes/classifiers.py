"""Classifiers: listing, showing and registering them."""

from typing import Any

from fastapi import Request, Response

from venn_admit.api.models.classifiers import ClassifierAnswer, Classifiers, CreatedClassifier, NewClassifier
from venn_admit.api.routes.parts import (
    FIRST_PAGE,
    ClassifierName,
    Cursor,
    Limit,
    finite,
    problems,
    router,
    runtime_of,
)
from venn_admit.flows.data.catalogue import list_classifiers, show
from venn_admit.flows.data.create import create
from venn_admit.flows.keys.keys import Caller
from venn_admit.http.guards.guard import needs
from venn_admit.http.guards.idempotency import keeping
from venn_admit.http.paging import name_after, page
from venn_admit.http.paths import classifier_path
from venn_admit.results import classifier_json, created_json, listed_json
from venn_admit.store.access.keys import Scope
from venn_admit.store.exemplars.classifiers import Classifier

routes = router("classifiers")


@routes.get("/classifiers", name="list_classifiers", response_model=Classifiers, dependencies=[needs(Scope.READ)])
def get_classifiers(request: Request, limit: Limit = FIRST_PAGE, cursor: Cursor = None) -> dict[str, Any]:
    """List the classifiers that the key is for, by name."""
    caller: Caller = request.state.caller
    found = list_classifiers(
        runtime_of(request).engine, shared_name=caller.classifier, limit=limit + 1, after=name_after(cursor)
    )
    rows, follows = page(found, limit, lambda one: one.classifier.name)
    return finite({"classifiers": [listed_json(one) for one in rows], "next_cursor": follows})


@routes.post(
    "/classifiers",
    name="create_classifier",
    status_code=201,
    response_model=CreatedClassifier,
    dependencies=[needs(Scope.ADMIN, every_classifier=True)],
    responses=problems(409, 413),
)
def post_classifier(request: Request, response: Response, given: NewClassifier) -> dict[str, Any]:
    """Register a classifier."""
    created = create(
        runtime_of(request).engine,
        given.classifier,
        tuple(given.classes),
        dimension=given.dimension,
        neighbour_count=given.k,
        logits_only=given.logits_only,
        seed=given.seed,
        extractor=given.extractor,
        on_stored=keeping(request, created_json, headers_of),
    )
    response.headers.update(headers_of(created))
    return created_json(created)


def headers_of(created: Classifier) -> dict[str, str]:
    """Return the headers that say where a classifier, or a generation of it, is from now on."""
    return {"Location": classifier_path(created.name)}


@routes.get(
    "/classifiers/{classifier}",
    response_model=ClassifierAnswer,
    dependencies=[needs(Scope.READ)],
    responses=problems(404),
)
def get_classifier(request: Request, classifier: ClassifierName) -> dict[str, Any]:
    """Show a classifier: its data, settings, newest jobs and last decisions."""
    return finite(classifier_json(show(runtime_of(request).engine, classifier)))
