"""The jobs of a classifier, which show their progress as long as the page is open."""

from typing import Annotated

from fastapi import Header, Request, Response

from venn_admit.api.routes.jobs import JobNumber
from venn_admit.api.routes.jobs import get_job_events as job_events
from venn_admit.api.routes.parts import ClassifierName, Cursor, runtime_of
from venn_admit.flows.jobs.listing import list_jobs
from venn_admit.http.guards.guard import needs
from venn_admit.http.paging import key_before
from venn_admit.http.paging import page as page_of
from venn_admit.store.access.keys import Scope
from venn_admit.web.rendering import page
from venn_admit.web.visitors import router

routes = router()

ROWS = 50


@routes.get("/classifiers/{classifier}/jobs", dependencies=[needs(Scope.READ)])
def get_jobs(request: Request, classifier: ClassifierName, cursor: Cursor = None) -> Response:
    """List jobs, the newest first."""
    found = list_jobs(runtime_of(request).engine, classifier, limit=ROWS + 1, before=key_before(cursor))
    rows, follows = page_of(found, ROWS, lambda row: int(row.job))
    return page(
        request, "jobs", title=f"{classifier}: jobs", classifier=classifier, rows=rows, follows=follows, cursor=cursor
    )


@routes.get("/classifiers/{classifier}/jobs/{job}/events", dependencies=[needs(Scope.READ)])
async def get_job_events(
    request: Request,
    classifier: ClassifierName,
    job: JobNumber,
    last_event_id: Annotated[str | None, Header(max_length=100)] = None,
) -> Response:
    """Report the progress of a job as the API does, to a visitor who is signed in."""
    return await job_events(request, classifier, job, last_event_id)
