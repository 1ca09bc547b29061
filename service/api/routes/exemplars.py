"""Exemplars and labels that come in."""

from functools import partial
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool

from venn_admit.service.api.incoming import exemplar_source, label_source
from venn_admit.service.api.models.exemplars import IngestedAnswer, Labelled, NewExemplars, NewLabels
from venn_admit.service.api.routes.parts import ClassifierName, Source, problems, router, runtime_of
from venn_admit.service.api.security.guard import needs
from venn_admit.service.api.uploads import EXEMPLAR_FILES, LABEL_FILES, body_of, received
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
    "/classifiers/{classifier}/exemplars/file",
    response_model=IngestedAnswer,
    dependencies=[needs(Scope.WRITE)],
    responses=problems(404, 408, 409, 413, 415, 429),
    openapi_extra=body_of(EXEMPLAR_FILES),
)
async def post_exemplar_file(
    request: Request,
    classifier: ClassifierName,
    split: Annotated[
        Literal["train", "held-out", "knn", "mc", "vp"],
        Query(description="held-out is divided by a hash into knn, mc and vp.", examples=["held-out"]),
    ],
    source: Source = "http",
) -> dict[str, Any]:
    """Store the labelled exemplars of a file, Parquet or an Arrow stream: all of them, or none if one is refused.

    The columns are those of the command line's files. Sending it again is a no-op.
    """
    runtime = runtime_of(request)
    await run_in_threadpool(find, runtime.engine, classifier)
    async with received(request, runtime, EXEMPLAR_FILES, source) as file:
        return ingested_payload(await run_in_threadpool(ingest, runtime.engine, classifier, file, split))


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


@routes.post(
    "/classifiers/{classifier}/labels/file",
    response_model=Labelled,
    dependencies=[needs(Scope.WRITE)],
    responses=problems(404, 408, 409, 413, 415, 429),
    openapi_extra=body_of(LABEL_FILES),
)
async def post_label_file(
    request: Request,
    classifier: ClassifierName,
    selection: Annotated[
        Literal["random", "selected"],
        Query(description="Of rows for which the file names none.", examples=["random"]),
    ] = "random",
    retract: Annotated[bool, Query(description="Let an empty label retract the stored one.", examples=[False])] = False,
    join_train: Annotated[
        bool,
        Query(
            description="Add the exemplars, whose labels must be selected, to the training exemplars.",
            examples=[False],
        ),
    ] = False,
    source: Source = "http",
) -> dict[str, Any]:
    """Record the labels of a file, CSV or Parquet: all of them, or none if one is refused."""
    runtime = runtime_of(request)
    await run_in_threadpool(find, runtime.engine, classifier)
    async with received(request, runtime, LABEL_FILES, source) as file:
        recorded = partial(
            label,
            runtime.engine,
            classifier,
            file,
            selection=selection,
            retract=retract,
            join_train=join_train,
        )
        return labelled_payload(await run_in_threadpool(recorded))
