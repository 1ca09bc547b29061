"""How work is handed to workers: a job is recorded with everything that belongs to it, and then sent."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine

from venn_admit.errors import JobError
from venn_admit.store.database.engine import connect, transaction
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.work import jobs, new_jobs
from venn_admit.store.work.new_jobs import NewJob
from venn_admit.store.workspace import Workspace

# Sends the chunks of a recorded job to workers. Raises BrokerError.
Send = Callable[[int], object]


class TooManyJobsError(JobError):
    """A requester has as many unfinished jobs as it may have."""


@dataclass(frozen=True, slots=True)
class Requester:
    """Who asks for a job, and how many unfinished ones it may have, whichever processes it asks."""

    identity: str
    most_jobs: int

    def require_room(self, connection: Connection) -> None:
        """Raise TooManyJobsError if another job would be one too many."""
        if jobs.running_of(connection, self.identity) >= self.most_jobs:
            raise TooManyJobsError(
                f"expected at most {self.most_jobs} running jobs with a key, got another; wait until one is done, or "
                "cancel one"
            )


def require_room(engine: Engine, requester: Requester) -> None:
    """Raise TooManyJobsError if a requester has as many unfinished jobs as it may have; recording one looks again."""
    with connect(engine) as connection:
        requester.require_room(connection)


@dataclass(frozen=True, slots=True)
class Submission:
    """The transaction in which jobs are recorded, and those of them that have chunks to send.

    requester: who asks for them; None: somebody whose jobs are not limited.
    """

    workspace: Workspace
    connection: Connection
    requester: Requester | None = None
    unsent: list[int] = field(default_factory=list)

    def add_job(self, classifier: Classifier, job: NewJob) -> int:
        """Record a job as `new_jobs.add_job` does; it is sent once the transaction is committed.

        Raises TooManyJobsError if the requester has as many as it may have.
        """
        if self.requester is not None:
            jobs.lock_requester(self.connection, self.requester.identity)
            self.requester.require_room(self.connection)
        job_id = new_jobs.add_job(
            self.connection,
            classifier,
            job,
            chunk_rows=self.workspace.chunk_rows,
            requested_by=None if self.requester is None else self.requester.identity,
        )
        if len(job.exemplar_ids) or job.last_ids is not None:
            self.unsent.append(job_id)
        return job_id


@contextmanager
def submit_job(
    workspace: Workspace, send: Send | None = None, *, requester: Requester | None = None
) -> Iterator[Submission]:
    """Record jobs in the block, in one transaction, and send them after it.

    If the block fails, nothing is stored; if `send` fails, the jobs stay recorded.

    send: None leaves that to the one that waits for the job, or to the sweeper. requester: None: not limited.
    """
    with transaction(workspace.engine) as connection:
        submission = Submission(workspace, connection, requester)
        yield submission
    if send is not None:
        for job_id in submission.unsent:
            send(job_id)
