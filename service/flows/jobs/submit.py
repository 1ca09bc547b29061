"""How work is handed to workers: a job is recorded with everything that belongs to it, and then sent."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Connection, Engine

from venn_admit.service.core.types import IntArray
from venn_admit.service.store.database.engine import transaction
from venn_admit.service.store.exemplars.classifiers import Classifier
from venn_admit.service.store.work import jobs

# Sends the chunks of a recorded job to workers. Raises BrokerError.
Send = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Submission:
    """The transaction in which jobs are recorded, and those of them that have chunks to send."""

    connection: Connection
    unsent: list[int] = field(default_factory=list)

    def add_job(
        self,
        classifier: Classifier,
        *,
        kind: str,
        exemplar_ids: IntArray,
        chunk_rows: int,
        knn_parameters_id: int | None,
        completes_neighbours: bool = False,
        calibration_id: int | None = None,
        weighted: bool | None = None,
        require_full_match: bool | None = None,
    ) -> int:
        """Record a job as `jobs.add_job` does; it is sent once the transaction is committed."""
        job_id = jobs.add_job(
            self.connection,
            classifier,
            kind=kind,
            exemplar_ids=exemplar_ids,
            chunk_rows=chunk_rows,
            knn_parameters_id=knn_parameters_id,
            completes_neighbours=completes_neighbours,
            calibration_id=calibration_id,
            weighted=weighted,
            require_full_match=require_full_match,
        )
        if len(exemplar_ids):
            self.unsent.append(job_id)
        return job_id


@contextmanager
def submit_job(engine: Engine, send: Send | None) -> Iterator[Submission]:
    """Record jobs in the block, in one transaction, and send them after it.

    If the block fails, nothing is stored; if `send` fails, the jobs stay recorded.

    Args:
        engine: The database.
        send: Sends a job; None leaves that to whoever waits for the job, or to the sweeper.
    """
    with transaction(engine) as connection:
        submission = Submission(connection)
        yield submission
    if send is not None:
        for job_id in submission.unsent:
            send(job_id)
