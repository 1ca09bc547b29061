"""Classifiers and their generations: listing, showing, registering, and which generation a name stands for."""

from typing import Any

from fastapi import Request, Response

from venn_admit.api.models.classifiers import (
    ClassifierAnswer,
    Classifiers,
    CreatedClassifier,
    CurrentGeneration,
    Generations,
    NewClassifier,
    NewGeneration,
    StatedExtractor,
    SwitchAnswer,
)
from venn_admit.api.routes.parts import (
    FIRST_PAGE,
    OF_CLASSIFIER,
    ClassifierName,
    Cursor,
    Limit,
    Routes,
    finite,
    runtime_of,
)
from venn_admit.flows.calibration.generations import (
    Switch,
    create_generation,
    list_generations,
    state_extractor,
    switch,
)
from venn_admit.flows.data.catalogue import find, list_classifiers, show
from venn_admit.flows.data.create import create
from venn_admit.flows.keys.keys import Caller
from venn_admit.http.guards.idempotency import keeping
from venn_admit.http.paging import name_after, page
from venn_admit.http.paths import classifier_path
from venn_admit.results import classifier_json, created_json, generations_json, listed_json, switch_json
from venn_admit.store.access.keys import Scope
from venn_admit.store.exemplars.classifiers import Classifier

routes = Routes("classifiers")
generations = Routes("generations", OF_CLASSIFIER)


@routes.answer("GET", "/classifiers", Scope.READ, Classifiers, name="list_classifiers")
def get_classifiers(request: Request, limit: Limit = FIRST_PAGE, cursor: Cursor = None) -> dict[str, Any]:
    """List the classifiers that the key is for, by name."""
    caller: Caller = request.state.caller
    found = list_classifiers(
        runtime_of(request).engine, shared_name=caller.classifier, limit=limit + 1, after=name_after(cursor)
    )
    rows, follows = page(found, limit, lambda one: one.classifier.name)
    return finite({"classifiers": [listed_json(one) for one in rows], "next_cursor": follows})


@routes.answer(
    "POST",
    "/classifiers",
    Scope.ADMIN,
    CreatedClassifier,
    409,
    name="create_classifier",
    status_code=201,
    every_classifier=True,
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


@routes.answer("GET", "/classifiers/{classifier}", Scope.READ, ClassifierAnswer)
def get_classifier(request: Request, classifier: ClassifierName) -> dict[str, Any]:
    """Show a classifier: its data, settings, newest jobs and last decisions."""
    return finite(classifier_json(show(runtime_of(request).engine, classifier)))


@generations.answer("GET", "/generations", Scope.READ, Generations, name="list_generations")
def get_generations(request: Request, classifier: ClassifierName) -> dict[str, Any]:
    """List the generations of a classifier, in the order of their numbers."""
    return finite(generations_json(list_generations(runtime_of(request).engine, classifier)))


@generations.answer(
    "POST", "/generations", Scope.ADMIN, CreatedClassifier, 409, name="create_generation", status_code=201
)
def post_generation(
    request: Request, response: Response, classifier: ClassifierName, given: NewGeneration
) -> dict[str, Any]:
    """Add a generation, to be calibrated while the current one is in use.

    It has the classes, K and seed of the others. Every request takes it in place of the classifier, as NAME@NUMBER.
    """
    made = create_generation(
        runtime_of(request).engine,
        classifier,
        dimension=given.dimension,
        extractor=given.extractor,
        by=request.state.caller,
        on_stored=keeping(request, created_json, headers_of),
    )
    response.headers.update(headers_of(made))
    return created_json(made)


@generations.answer("PUT", "/generations/current", Scope.ADMIN, SwitchAnswer, 409, name="switch_generation")
def put_current_generation(request: Request, classifier: ClassifierName, given: CurrentGeneration) -> dict[str, Any]:
    """Have the classifier's name stand for another generation from now on; switching back works the same way.

    What is under way goes on with the generation that it began with. Keys for the classifier are for it as before.
    """
    engine = runtime_of(request).engine
    address = f"{find(engine, classifier).shared_name}@{given.generation}"
    switched = switch(
        engine, address, dry_run=given.dry_run, by=request.state.caller, on_stored=keeping(request, _switched)
    )
    return _switched(switched)


def _switched(switched: Switch) -> dict[str, Any]:
    return finite(switch_json(switched))


@generations.answer("PUT", "/extractor", Scope.ADMIN, CreatedClassifier, 409, name="state_extractor")
def put_extractor(request: Request, classifier: ClassifierName, given: StatedExtractor) -> dict[str, Any]:
    """State which extractor the vectors come from, or correct that while no exemplars are stored."""
    stated = state_extractor(
        runtime_of(request).engine,
        classifier,
        given.extractor,
        by=request.state.caller,
        on_stored=keeping(request, created_json),
    )
    return created_json(stated)
