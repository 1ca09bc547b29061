"""Generations of a classifier: listing them, adding one, and having the classifier's name stand for another."""

from typing import Any

from fastapi import Request, Response

from venn_admit.api.models.classifiers import (
    CreatedClassifier,
    CurrentGeneration,
    Generations,
    NewGeneration,
    StatedExtractor,
    SwitchAnswer,
)
from venn_admit.api.routes.classifiers import headers_of
from venn_admit.api.routes.parts import ClassifierName, finite, problems, router, runtime_of
from venn_admit.flows.calibration.generations import (
    Switch,
    create_generation,
    list_generations,
    state_extractor,
    switch,
)
from venn_admit.flows.data.catalogue import find
from venn_admit.http.guards.guard import needs
from venn_admit.http.guards.idempotency import keeping
from venn_admit.results import created_json, generations_json, switch_json
from venn_admit.store.access.keys import Scope

routes = router("generations")


@routes.get(
    "/classifiers/{classifier}/generations",
    name="list_generations",
    response_model=Generations,
    dependencies=[needs(Scope.READ)],
    responses=problems(404),
)
def get_generations(request: Request, classifier: ClassifierName) -> dict[str, Any]:
    """List the generations of a classifier, in the order of their numbers."""
    return finite(generations_json(list_generations(runtime_of(request).engine, classifier)))


@routes.post(
    "/classifiers/{classifier}/generations",
    name="create_generation",
    status_code=201,
    response_model=CreatedClassifier,
    dependencies=[needs(Scope.ADMIN)],
    responses=problems(404, 409, 413),
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


@routes.put(
    "/classifiers/{classifier}/generations/current",
    name="switch_generation",
    response_model=SwitchAnswer,
    dependencies=[needs(Scope.ADMIN)],
    responses=problems(404, 409, 413),
)
def put_current_generation(request: Request, classifier: ClassifierName, given: CurrentGeneration) -> dict[str, Any]:
    """Have the classifier's name stand for another generation from now on; switching back works the same way.

    What is under way goes on with the generation that it began with. Keys for the classifier are for it as before.
    """
    engine = runtime_of(request).engine
    address = f"{find(engine, classifier).shared_name}@{given.generation}"
    switched = switch(
        engine,
        address,
        dry_run=given.dry_run,
        by=request.state.caller,
        on_stored=keeping(request, _switched_payload),
    )
    return _switched_payload(switched)


def _switched_payload(switched: Switch) -> dict[str, Any]:
    return finite(switch_json(switched))


@routes.put(
    "/classifiers/{classifier}/extractor",
    name="state_extractor",
    response_model=CreatedClassifier,
    dependencies=[needs(Scope.ADMIN)],
    responses=problems(404, 409, 413),
)
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
