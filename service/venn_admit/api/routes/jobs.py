"""Jobs and their progress."""

from functools import partial
from typing import Annotated, Any

from fastapi import Header, Path, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from venn_admit.api.events import MEDIA_TYPE
from venn_admit.api.models.common import LARGEST_KEY
from venn_admit.api.models.operation import Jobs, ShownJobAnswer
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
from venn_admit.flows.jobs.listing import list_jobs, show_job
from venn_admit.flows.jobs.removal import delete_job as remove_job
from venn_admit.http.guards.guard import is_still_accepted, needs
from venn_admit.http.paging import key_before, page
from venn_admit.results import job_json, rows_json
from venn_admit.store.access.keys import Scope

routes = router("jobs")

JobNumber = Annotated[int, Path(ge=1, le=LARGEST_KEY, description="Number of a job.", examples=[12])]


@routes.get(
    "/classifiers/{classifier}/jobs",
    name="list_jobs",
    response_model=Jobs,
    dependencies=[needs(Scope.READ)],
    responses=problems(404),
)
def get_jobs(
    request: Request, classifier: ClassifierName, limit: Limit = FIRST_PAGE, cursor: Cursor = None
) -> dict[str, Any]:
    """List jobs with their state, progress and times, the newest first."""
    found = list_jobs(runtime_of(request).engine, classifier, limit=limit + 1, before=key_before(cursor))
    rows, follows = page(found, limit, lambda row: int(row.job))
    return finite({"jobs": rows_json(rows), "next_cursor": follows})


@routes.get(
    "/classifiers/{classifier}/jobs/{job}",
    response_model=ShownJobAnswer,
    dependencies=[needs(Scope.READ)],
    responses=problems(404),
)
def get_job(
    request: Request,
    classifier: ClassifierName,
    job: JobNumber,
) -> dict[str, Any]:
    """Show one job: its progress, and its chunks by state and one by one."""
    found = show_job(runtime_of(request).engine, job, with_chunks=True, name=classifier)
    return finite(job_json(found))


@routes.delete(
    "/classifiers/{classifier}/jobs/{job}",
    response_model=ShownJobAnswer,
    dependencies=[needs(Scope.ADMIN)],
    responses=problems(404, 409),
)
def delete_job(request: Request, classifier: ClassifierName, job: JobNumber) -> dict[str, Any]:
    """Remove a job that is over: its rows, its chunks, and the decisions that no other job asks for.

    Decisions on exemplars that have ever been labelled stay, and so does the job in the list, which says when it was
    removed. It has no decisions to download from then on; workers delete what was stored.
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


@routes.get(
    "/classifiers/{classifier}/jobs/{job}/events",
    response_class=Response,
    dependencies=[needs(Scope.READ)],
    responses={
        200: {"description": "The events.", "content": {MEDIA_TYPE: {"schema": _EVENT}}},
        204: {"description": "The job is over, and the end of it was sent before."},
        **problems(404, 429),
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
    """Tell of a job as it advances, by server-sent events: `progress`, and `end` once it is over.

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
