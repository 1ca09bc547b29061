"""One chunk of a job: what a worker does when a message wakes it.

It claims the chunk that is next in turn, of whichever job, computes it, and writes results and completion in one
transaction, so a chunk is either done or as if it had never been touched. If a message is delivered twice, the second
leads to a chunk that others would have computed later, or to none.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import Connection, Engine
from structlog.typing import FilteringBoundLogger

from venn_admit import logger
from venn_admit.core.types import IntArray
from venn_admit.errors import ConflictError, DatabaseError, JobError, NotFoundError
from venn_admit.flows.jobs.control import POLL_SECONDS, require_done
from venn_admit.flows.jobs.leases import renewed_lease
from venn_admit.store.database.engine import at_once, connect, transaction
from venn_admit.store.exemplars import classifiers
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.exemplars.support import SupportChangedError
from venn_admit.store.work import jobs, leases, recalibrations

# How often a chunk is computed whose training exemplars change meanwhile, before it is given back for a while.
_TRIES = 3
# The longest that new training exemplars wait for a chunk: one that takes longer would be disturbed again and again.
_HELD_SECONDS = 600.0
# How many chunks in a row may overtake scoring, so that of four that a process computes while it waits, one is of it.
_OVERTAKING = 3
_OVER = ("done", "failed")


class ChunkSettings(Protocol):
    """The settings that a chunk depends on."""

    @property
    def lease_seconds(self) -> int: ...

    @property
    def max_attempts(self) -> int: ...

    @property
    def retry_seconds(self) -> float: ...


@dataclass(frozen=True, slots=True, eq=False)
class ChunkWork:
    """What a chunk is computed from.

    classifier: as it is now. exemplar_ids: (n,) int64, in the order of the request. is_last: whether the chunk has
    waited until all others of the job were done.
    """

    job: jobs.Job
    classifier: Classifier
    exemplar_ids: IntArray
    is_last: bool = False


class ChunkResult(Protocol):
    """What was computed of a chunk, ready to be stored in the transaction that completes it."""

    def apply(self, connection: Connection) -> None: ...


ComputeChunk = Callable[[ChunkWork], ChunkResult]


class ChunkRunner:
    """Claims chunks and computes each by the function that is registered for the kind of its job."""

    def __init__(
        self,
        engine: Engine,
        kinds: Mapping[str, ComputeChunk],
        settings: ChunkSettings,
        *,
        worker: str,
        log: FilteringBoundLogger | None = None,
    ) -> None:
        """kinds: what computes a chunk, by the kind of its job. worker: how chunks that it claims name this process."""
        self._engine = engine
        self._kinds = kinds
        self._settings = settings
        self._worker = worker
        self._log = logger.log if log is None else log
        self._overtaking = 0

    def claim(self, job_id: int, ordinal: int) -> leases.Claim | None:
        """Claim one chunk, for `compute`; None if it is not free."""
        with at_once(self._engine) as connection:
            claim = leases.claim(
                connection, job_id, ordinal, worker=self._worker, lease_seconds=self._settings.lease_seconds
            )
        if claim is None:
            self._log.info(
                "chunk is finished or waits, or another worker has it", job=job_id, chunk=ordinal, worker=self._worker
            )
        return claim

    def claim_next(self) -> leases.Claim | None:
        """Claim the chunk that is next in turn, for `compute`; None if none is free."""
        with at_once(self._engine) as connection:
            claim = leases.claim_next(
                connection,
                bulk_first=self._overtaking >= _OVERTAKING,
                worker=self._worker,
                lease_seconds=self._settings.lease_seconds,
            )
        if claim is None:
            self._log.info("no chunk is free", worker=self._worker)
        else:
            self._overtaking = 0 if claim.is_bulk else self._overtaking + 1
        return claim

    def compute(self, claim: leases.Claim) -> int:
        """Compute a chunk that was claimed, and return how many of its rows were completed: 0 if it failed.

        An error is recorded with the chunk, which is tried again after a while; after the last attempt it has failed.
        If training exemplars changed meanwhile, that is no attempt, unless it has taken longer than others wait for it.
        Those that waited for the job join once it is done.
        """
        rows = self._compute_claimed(claim)
        if rows:
            self._let_join(claim)
        return rows

    def _compute_claimed(self, claim: leases.Claim) -> int:
        chunk_log = self._log.bind(job=claim.job_id, chunk=claim.ordinal, worker=self._worker)
        chunk_log = chunk_log.bind(classifier=claim.classifier, attempt=claim.attempts)
        began = time.monotonic()
        if claim.taken_from is not None:
            chunk_log.info("chunk is late, it is taken over")
        try:
            self._check_attempts(claim)
            with renewed_lease(self._engine, claim, self._settings.lease_seconds, chunk_log):
                finished = self._compute_and_apply(claim)
        except Exception as error:  # any error is recorded with the chunk, and other chunks go on
            was_disturbed = isinstance(error, SupportChangedError) and time.monotonic() - began < _HELD_SECONDS
            with transaction(self._engine) as connection:
                state = self._give_back(connection, claim, error, is_attempt=not was_disturbed)
            if state is None:  # another worker has written the chunk, which may have caused the error
                chunk_log.warning("lease was lost, result is dropped", error=str(error))
            elif was_disturbed:
                chunk_log.warning("chunk was disturbed, it is computed again later", error=str(error))
            else:
                chunk_log.exception("chunk failed", chunk_state=state)
            return 0
        if not finished:
            chunk_log.warning("lease was lost, result is dropped")
            return 0
        chunk_log.info("chunk is done", rows=claim.end_row - claim.first_row)
        return claim.end_row - claim.first_row

    def _give_back(
        self, connection: Connection, claim: leases.Claim, error: Exception, *, is_attempt: bool
    ) -> str | None:
        """Record an error with the chunk, and return its new state; None if the lease was lost."""
        leases.begin_writing(connection, claim, lease_seconds=self._settings.lease_seconds)
        said, retry_seconds = f"{type(error).__name__}: {error}", self._settings.retry_seconds
        if not is_attempt:
            return leases.postpone(connection, claim, error=said, retry_seconds=retry_seconds)
        most = self._most_attempts(claim)
        return leases.fail(connection, claim, error=said, max_attempts=most, retry_seconds=retry_seconds)

    def _let_join(self, claim: leases.Claim) -> None:
        """Let training exemplars that waited for a job train, once it is done."""
        try:
            with transaction(self._engine) as connection:
                job = jobs.by_id(connection, claim.job_id)
                if job.state == "done":
                    recalibrations.take_in_waiting(connection, job.classifier_id)
        except (ConflictError, DatabaseError, NotFoundError) as error:  # the next one to look lets them join
            self._log.warning("training exemplars that wait could not join", job=claim.job_id, error=str(error))

    def _check_attempts(self, claim: leases.Claim) -> None:
        """Raise JobError if all attempts are used up, which happens if workers are killed and record no error."""
        if claim.attempts > self._most_attempts(claim):
            raise JobError(
                f"{self._settings.max_attempts} attempts ended without a result or an error: look in the logs "
                "whether workers ran out of memory, or raise VENN_ADMIT_CHUNK_SECONDS"
            )

    def _most_attempts(self, claim: leases.Claim) -> int:
        """An attempt that was taken over from a slow worker has not failed."""
        return self._settings.max_attempts + claim.was_late

    def _compute_and_apply(self, claim: leases.Claim) -> bool:
        for _ in range(_TRIES):
            try:
                return self._apply(claim, self._compute(claim))
            except SupportChangedError as error:
                changed = error
        raise changed

    def _apply(self, claim: leases.Claim, result: ChunkResult) -> bool:
        with connect(self._engine) as connection, connection.begin() as open_transaction:
            leases.begin_writing(connection, claim, lease_seconds=self._settings.lease_seconds)
            result.apply(connection)
            finished = leases.finish(connection, claim)
            if not finished:
                open_transaction.rollback()
        return finished

    def _compute(self, claim: leases.Claim) -> ChunkResult:
        with connect(self._engine) as connection:
            job = jobs.by_id(connection, claim.job_id)
            work = ChunkWork(
                job,
                classifiers.by_id(connection, job.classifier_id),
                leases.chunk_exemplars(connection, claim),
                is_last=claim.is_last,
            )
        return self._kinds[job.kind](work)


def compute_job(
    engine: Engine, runner: ChunkRunner, job_id: int, on_progress: Callable[[jobs.Progress], None] = lambda _: None
) -> None:
    """Compute a job's chunks until the job is over; chunks that a worker has are left to it unless they are late.

    on_progress: Called as it begins, and after each chunk.

    Raises JobError if the job failed or was cancelled.
    """
    while True:
        with connect(engine) as connection:
            progress = jobs.progress(connection, job_id)
            open_chunks = [row.chunk for row in jobs.chunks(connection, job_id) if row.state not in _OVER]
        on_progress(progress)
        if progress.state != "running":
            break
        computed = False
        for ordinal in open_chunks:
            claim = runner.claim(job_id, ordinal)
            if claim is not None and runner.compute(claim):
                computed = True
                with connect(engine) as connection:
                    progress = jobs.progress(connection, job_id)
                on_progress(progress)
        if not computed:
            time.sleep(POLL_SECONDS)
            with at_once(engine) as connection:
                jobs.mark_late(connection, job_id)
    require_done(job_id, progress)
