"""How many jobs a key may have running at a time, so that one program does not keep the workers from all others."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from venn_admit.service.api.problems import Problem, Refused
from venn_admit.service.flows.access.keys import Caller
from venn_admit.service.flows.jobs.listing import running_jobs
from venn_admit.service.runtime import Runtime

RETRY_SECONDS = 10


class SubmittedJobs:
    """The running jobs that keys have submitted to this process."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._jobs: defaultdict[str, set[int]] = defaultdict(set)
        self._arriving: defaultdict[str, int] = defaultdict(int)

    def forget_finished(self, caller: Caller) -> None:
        """Forget which of a key's jobs are over; this asks the database."""
        known = self._jobs[caller.identity]
        if known:
            known -= known - running_jobs(self._runtime.engine, known)

    @contextmanager
    def one_more(self, caller: Caller) -> Iterator[Callable[[int], None]]:
        """Let a key submit another job in the block, which calls what it is given with the job's number.

        Raises Refused if as many as allowed are running or arriving.
        """
        key, most = caller.identity, self._runtime.settings.jobs_per_key
        if len(self._jobs[key]) + self._arriving[key] >= most:
            raise Refused(
                429,
                Problem.TOO_MANY,
                f"expected at most {most} running jobs with a key, got another; wait until one is done, or cancel one",
                headers={"Retry-After": str(RETRY_SECONDS)},
            )
        self._arriving[key] += 1
        try:
            yield self._jobs[key].add
        finally:
            self._arriving[key] -= 1
