"""Exemplars and labels that come in."""

from typing import Annotated, Any

from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool

from venn_admit.api.incoming import exemplar_source, label_source
from venn_admit.api.models.exemplars import HowToRecord, HowToStore, IngestedAnswer, Labelled, NewExemplars, NewLabels
from venn_admit.api.routes.parts import OF_CLASSIFIER, ClassifierName, Routes, runtime_of
from venn_admit.files.label_sources import LabelSource
from venn_admit.files.sources import ExemplarSource
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.data.ingest import ingest
from venn_admit.flows.data.label import label
from venn_admit.http.guards.idempotency import keeping
from venn_admit.http.uploads import EXEMPLAR_FILES, LABEL_FILES, body_of, received
from venn_admit.store.access.keys import Scope
from venn_admit_client.members import as_json

routes = Routes("exemplars and labels", OF_CLASSIFIER)


@routes.answer("POST", "/exemplars", Scope.WRITE, IngestedAnswer, 409, name="store_exemplars")
def post_exemplars(request: Request, classifier: ClassifierName, given: NewExemplars) -> dict[str, Any]:
    """Store labelled exemplars: all of them, or none if one is refused. Sending them again is a no-op."""
    runtime = runtime_of(request)
    found = find(runtime.engine, classifier)
    return _stored(request, found.address, exemplar_source(given, found, runtime.memory_budget), given)


def _stored(request: Request, address: str, source: ExemplarSource, how: HowToStore) -> dict[str, Any]:
    stored = ingest(
        runtime_of(request).engine,
        address,
        source,
        how.split,
        allow_training_rows=how.allow_training_rows,
        on_stored=keeping(request, as_json),
    )
    return as_json(stored)


@routes.answer(
    "POST",
    "/exemplars/file",
    Scope.WRITE,
    IngestedAnswer,
    409,
    name="store_exemplar_file",
    openapi_extra=body_of(EXEMPLAR_FILES),
)
async def post_exemplar_file(
    request: Request, classifier: ClassifierName, how: Annotated[HowToStore, Query()]
) -> dict[str, Any]:
    """Store the labelled exemplars of a file, Parquet or an Arrow stream: all of them, or none if one is refused.

    The columns are those of the command line's files. Sending it again is a no-op.
    """
    runtime = runtime_of(request)
    found = await run_in_threadpool(find, runtime.engine, classifier)
    async with received(request, runtime, EXEMPLAR_FILES, how.source, how.stated) as file:
        return await run_in_threadpool(_stored, request, found.address, file, how)


@routes.answer("POST", "/labels", Scope.WRITE, Labelled, 409, name="record_labels")
def post_labels(request: Request, classifier: ClassifierName, given: NewLabels) -> dict[str, Any]:
    """Record labels of stored exemplars; the next recalibration uses them."""
    return _recorded(request, classifier, label_source(given, runtime_of(request).memory_budget), given)


def _recorded(request: Request, address: str, source: LabelSource, how: HowToRecord) -> dict[str, Any]:
    recorded = label(
        runtime_of(request).engine,
        address,
        source,
        selection=how.selection,
        retract=how.retract,
        join_train=how.join_train,
        on_stored=keeping(request, as_json),
    )
    return as_json(recorded)


@routes.answer(
    "POST", "/labels/file", Scope.WRITE, Labelled, 409, name="record_label_file", openapi_extra=body_of(LABEL_FILES)
)
async def post_label_file(
    request: Request, classifier: ClassifierName, how: Annotated[HowToRecord, Query()]
) -> dict[str, Any]:
    """Record the labels of a file, CSV, Parquet or an Arrow stream: all of them, or none if one is refused."""
    runtime = runtime_of(request)
    found = await run_in_threadpool(find, runtime.engine, classifier)
    async with received(request, runtime, LABEL_FILES, how.source) as file:
        return await run_in_threadpool(_recorded, request, found.address, file, how)
