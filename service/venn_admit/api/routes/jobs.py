"""Jobs: a file of exemplars to decide on, progress and events, decisions out, cancelling and deleting."""

from collections.abc import Iterator
from functools import partial
from typing import IO, Annotated, Any

from fastapi import Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from venn_admit.api.events import MEDIA_TYPE
from venn_admit.api.models.decisions import HowToScore
from venn_admit.api.models.operation import Jobs, ShownJobAnswer, SubmittedJob
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
from venn_admit.errors import BrokerError
from venn_admit.flows.calibration.fit import FitRequest
from venn_admit.flows.data.catalogue import find
from venn_admit.flows.decisions.score import ScoreRequest, request_score, require_finished_scores, write_scores
from venn_admit.flows.jobs.control import cancel
from venn_admit.flows.jobs.listing import list_jobs, progress, show_job
from venn_admit.flows.jobs.removal import delete_job as remove_job
from venn_admit.flows.jobs.submit import require_room
from venn_admit.http.guards.guard import is_still_accepted
from venn_admit.http.guards.idempotency import keeper_of, keeping
from venn_admit.http.guards.running_jobs import refusing_too_many_jobs, requester_of
from venn_admit.http.paging import LARGEST_KEY, key_before, page
from venn_admit.http.paths import job_path
from venn_admit.http.problems import Refused
from venn_admit.http.uploads import EXEMPLAR_FILES, body_of, received, temporary_file
from venn_admit.results import job_json, rows_json
from venn_admit.store.access.keys import Scope
from venn_admit_client.bodies import ARROW_STREAM, PARQUET
from venn_admit_client.codes import Problem

routes = Routes("jobs", OF_CLASSIFIER)

JobNumber = Annotated[int, Path(ge=1, le=LARGEST_KEY, description="Number of a job.", examples=[12])]


@routes.answer("GET", "/jobs", Scope.READ, Jobs, name="list_jobs")
def get_jobs(
    request: Request, classifier: ClassifierName, limit: Limit = FIRST_PAGE, cursor: Cursor = None
) -> dict[str, Any]:
    """List jobs with their state, progress and times, the newest first."""
    found = list_jobs(runtime_of(request).engine, classifier, limit=limit + 1, before=key_before(cursor))
    rows, follows = page(found, limit, lambda row: int(row.job))
    return finite({"jobs": rows_json(rows), "next_cursor": follows})


@routes.answer("GET", "/jobs/{job}", Scope.READ, ShownJobAnswer)
def get_job(request: Request, classifier: ClassifierName, job: JobNumber) -> dict[str, Any]:
    """Show one job: its progress, and its chunks by state and one by one."""
    found = show_job(runtime_of(request).engine, job, with_chunks=True, name=classifier)
    return finite(job_json(found))


@routes.answer("DELETE", "/jobs/{job}", Scope.ADMIN, ShownJobAnswer, 409)
def delete_job(request: Request, classifier: ClassifierName, job: JobNumber) -> dict[str, Any]:
    """Remove a job that is over: its rows, its chunks, and the decisions that no other job asks for.

    Decisions on points that ever had a random label or one of a review, or were drawn to be audited, stay, and so does
    the job in the list, which says when it was removed. It has no decisions to download from then on; workers delete
    what was stored.
    """
    runtime = runtime_of(request)
    remove_job(runtime.engine, job, name=classifier, origin=None)
    runtime.send_removal()
    return finite(job_json(show_job(runtime.engine, job, with_chunks=True, name=classifier)))


_EVENT = {
    "type": "object",
    "description": "Each event.",
    "properties": {
        "id": {"type": "string", "examples": ["512-running"]},
        "event": {"type": "string", "enum": ["progress", "end"]},
        "data": {"type": "string", "description": "A JSON object: job, state, rows, rows_done and error."},
    },
}


@routes.answer(
    "GET",
    "/jobs/{job}/events",
    Scope.READ,
    None,
    responses={
        200: {"description": "The events.", "content": {MEDIA_TYPE: {"schema": _EVENT}}},
        204: {"description": "The job is over, and its end was sent before."},
    },
)
async def get_job_events(
    request: Request,
    classifier: ClassifierName,
    job: JobNumber,
    last_event_id: Annotated[
        str | None,
        Header(max_length=100, description="The id of the last event that was received.", examples=["512-running"]),
    ] = None,
) -> Response:
    """Send the progress of a job as server-sent events: `progress`, and `end` once it is over.

    The data of an event are a JSON object: job, state, rows, rows_done and error.
    """
    engine, events = runtime_of(request).engine, request.app.state.events
    await run_in_threadpool(lambda: show_job(engine, job, name=classifier))
    if await events.is_known(job, last_event_id):
        return Response(status_code=204)
    caller = request.state.caller.identity
    events.require_room(caller)
    told = events.of(job, last_event_id, caller, partial(is_still_accepted, request))
    return StreamingResponse(told, media_type=MEDIA_TYPE)


_BLOCK_BYTES = 1 << 20
_BINARY = {"schema": {"type": "string", "format": "binary"}}


@routes.answer(
    "POST",
    "/jobs",
    Scope.SCORE,
    SubmittedJob,
    409,
    name="score_file",
    status_code=202,
    openapi_extra=body_of(EXEMPLAR_FILES),
)
async def post_job(
    request: Request, response: Response, classifier: ClassifierName, how: Annotated[HowToScore, Query()]
) -> dict[str, Any]:
    """Store the exemplars of a file, Parquet or an Arrow stream, and have workers decide on each.

    The answer comes once they are stored; the job goes on without it.
    """
    runtime = runtime_of(request)
    found = await run_in_threadpool(find, runtime.engine, classifier)
    requester = requester_of(runtime, request.state.caller)
    with refusing_too_many_jobs():
        await run_in_threadpool(require_room, runtime.engine, requester)
        async with received(request, runtime, EXEMPLAR_FILES, how.source, how.stated) as file:
            submit = partial(
                request_score,
                runtime,
                found.address,
                file,
                weighted=how.weighted,
                require_full_match=how.require_full_match,
                calibration_id=how.calibration,
                requester=requester,
                on_stored=keeping(request, _submitted, partial(place_of, classifier)),
            )
            submitted = await run_in_threadpool(submit)
        await run_in_threadpool(send_submitted, request, submitted.job_id)
    response.headers.update(place_of(classifier, submitted))
    return _submitted(submitted)


def place_of(classifier: str, submitted: ScoreRequest | FitRequest) -> dict[str, str]:
    """Return the header that says where the job is."""
    return {"Location": job_path(classifier, submitted.job_id)}


def _submitted(submitted: ScoreRequest) -> dict[str, Any]:
    return {
        "job": submitted.job_id,
        "calibration": submitted.calibration_id,
        "rows": submitted.rows,
        "weighted": submitted.weighted,
    }


@routes.answer(
    "GET",
    "/jobs/{job}/scores",
    Scope.READ,
    None,
    406,
    409,
    responses={200: {"description": "The decisions.", "content": {PARQUET: _BINARY, ARROW_STREAM: _BINARY}}},
)
def get_scores(
    request: Request,
    classifier: ClassifierName,
    job: JobNumber,
    accept: Annotated[
        str, Header(max_length=1000, description="Parquet, or an Arrow stream.", examples=[PARQUET, ARROW_STREAM])
    ] = "*/*",
) -> Response:
    """Return the decisions of a job that is done, a row for each of its file, in its order.

    They are Parquet unless an Arrow stream is asked for. The columns are those that the command line writes.
    """
    runtime = runtime_of(request)
    kind = _kind(accept)
    show_job(runtime.engine, job, name=classifier)
    require_finished_scores(runtime.engine, job)
    # A client that reads slowly keeps a file open, and no connection to the database.
    with temporary_file(runtime.settings.home, EXEMPLAR_FILES[kind]) as path:
        write_scores(runtime.engine, job, path)
        size, file = path.stat().st_size, path.open("rb")
    return StreamingResponse(_blocks(file), media_type=kind, headers={"Content-Length": str(size)})


@routes.answer("POST", "/jobs/{job}/cancel", Scope.WRITE, ShownJobAnswer, 409, name="cancel_job")
def post_cancel(request: Request, classifier: ClassifierName, job: JobNumber) -> dict[str, Any]:
    """End a running job: what is done stays, and chunks that are being computed do not count."""
    engine = runtime_of(request).engine
    show_job(engine, job, name=classifier)
    cancel(engine, job)
    return finite(job_json(show_job(engine, job, with_chunks=True, name=classifier)))


def _kind(accept: str) -> str:
    """The media type of the answer: of those that are accepted, the first; Parquet if any is."""
    accepted = [one.partition(";")[0].strip().lower() for one in accept.split(",")]
    for kind in accepted:
        if kind in EXEMPLAR_FILES:
            return kind
    if {"*/*", "application/*", ""} & set(accepted):
        return PARQUET
    raise Refused(
        406,
        Problem.NOT_ACCEPTABLE,
        f"expected a request that accepts {PARQUET} or {ARROW_STREAM}; ask for one of them in the header Accept",
    )


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while block := file.read(_BLOCK_BYTES):
            yield block


def send_submitted(request: Request, job_id: int) -> None:
    """Send the job that a request has recorded. Raises BrokerError if no worker can know of it.

    The job is cancelled then, and the answer that was kept is forgotten: the same request, sent again, submits another
    job. If workers may know of some of its chunks, the sweeper sends the others.
    """
    runtime, keeper = runtime_of(request), keeper_of(request)
    try:
        runtime.send(job_id)
    except BrokerError:
        if progress(runtime.engine, job_id).state != "cancelled":
            return
        if keeper is not None:
            keeper.forget(runtime)
        raise
