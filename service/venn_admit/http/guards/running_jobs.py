"""How many jobs a key may have running at a time, so that one program does not keep the workers from all others."""

from collections.abc import Iterator
from contextlib import contextmanager

from venn_admit.flows.jobs.submit import Requester, TooManyJobsError
from venn_admit.flows.keys.keys import Caller
from venn_admit.http.problems import Refused
from venn_admit.runtime.workspace import Runtime
from venn_admit_client.codes import Problem

RETRY_SECONDS = 10


def requester_of(runtime: Runtime, caller: Caller) -> Requester:
    """Return a caller as one whose jobs are counted, in all processes together."""
    return Requester(caller.identity, runtime.settings.jobs_per_key)


@contextmanager
def refusing_too_many_jobs() -> Iterator[None]:
    """Raise Refused if the block records one job more than a key may have running."""
    try:
        yield
    except TooManyJobsError as error:
        raise Refused(429, Problem.TOO_MANY, str(error), headers={"Retry-After": str(RETRY_SECONDS)}) from error
