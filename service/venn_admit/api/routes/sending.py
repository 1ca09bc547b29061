"""Sending the jobs that requests have recorded."""

from fastapi import Request

from venn_admit.api.routes.parts import runtime_of
from venn_admit.errors import BrokerError
from venn_admit.flows.jobs.listing import progress
from venn_admit.http.guards.idempotency import keeper_of


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
