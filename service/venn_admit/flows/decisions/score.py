"""Batch scoring: exemplars in, a job that workers compute, decisions out in the order of the exemplars."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection, Engine, Row

from venn_admit.core.evidence import Kind
from venn_admit.core.types import IntArray
from venn_admit.errors import InvalidInputError, NotReadyError
from venn_admit.files.output.exports import SCORE_FIELDS, SCORES_SCHEMA, classes_of
from venn_admit.files.output.tables import TableWriter
from venn_admit.files.sources import ExemplarSource
from venn_admit.flows.calibration.approximate import Approximated, approximate_points, require_support, take_in_waiting
from venn_admit.flows.data.ingest import store_scored
from venn_admit.flows.decisions import logits_only
from venn_admit.flows.decisions.logits_only import ScoredLogits, require_decidable
from venn_admit.flows.jobs.chunks import ChunkWork
from venn_admit.flows.jobs.submit import Requester, Send, Submission, submit_job
from venn_admit.flows.shell import OnRows
from venn_admit.methods import registry
from venn_admit.methods.method import PointsToDecide, Snapshot
from venn_admit.store.calibrations import calibrations
from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.engine import connect, consistent_view
from venn_admit.store.decisions import decisions
from venn_admit.store.decisions.decisions import Decided
from venn_admit.store.exemplars import classifiers, exemplars
from venn_admit.store.exemplars.classifiers import Classifier
from venn_admit.store.work import jobs
from venn_admit.store.work.new_jobs import NewJob
from venn_admit.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ScoreRequest:
    """A job that was recorded: its key, the snapshot it is pinned to, its rows, and whether it is weighted."""

    job_id: int
    calibration_id: int
    rows: int
    weighted: bool


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Decisions on some exemplars, and the approximations they rest on."""

    job: jobs.Job
    approximated: Approximated
    decided: Decided

    def apply(self, connection: Connection) -> None:
        """Store the decisions, and of the approximations what is new, or raise as `logits_only.store` does."""
        found = self.approximated
        found.apply(connection)
        logits_only.store(connection, self.job, found.classifier, found.exemplar_ids, self.decided)


def request_score(
    workspace: Workspace,
    name: str,
    source: ExemplarSource,
    *,
    weighted: bool | None,
    require_full_match: bool,
    calibration_id: int | None,
    on_rows: OnRows = lambda _: None,
    send: Send | None = None,
    requester: Requester | None = None,
    on_stored: Callable[[Connection, ScoreRequest], object] = lambda *_: None,
) -> ScoreRequest:
    """Store a source's exemplars and submit the job that scores them, recorded in the same transaction.

    Args:
        weighted: Whether probabilities are weighted by the localizer, or plain; None: as is usual for the method.
        require_full_match: Whether points with q < K are rejected.

    Raises:
        InvalidInputError: The source is invalid, or what is asked for needs vectors that the classifier does
            not have, or a certified calibration is asked for weights; nothing is stored then.
        TooManyJobsError: The requester has as many unfinished jobs as it may have.
    """
    take_in_waiting(workspace.engine, name)
    with submit_job(workspace, send, requester=requester) as submission:
        connection = submission.connection
        classifier = classifiers.by_name(connection, name)
        calibration = calibrations.held(connection, classifier, calibration_id)
        calibrations.require_whole(connection, classifier, calibration)
        weighted = registry.settled_weights(calibration, weighted)
        require_decidable(classifier, weighted=weighted, require_full_match=require_full_match)
        if classifier.knn is not None:
            require_support(connection, classifier)
        exemplar_ids = store_scored(connection, classifier, source, on_rows)
        job_id = add_score_job(
            submission, classifier, calibration, exemplar_ids, weighted=weighted, require_full_match=require_full_match
        )
        request = ScoreRequest(job_id, calibration.id, rows=len(exemplar_ids), weighted=weighted)
        on_stored(connection, request)
    return request


def add_score_job(
    submission: Submission,
    classifier: Classifier,
    calibration: Calibration,
    exemplar_ids: IntArray,
    *,
    weighted: bool,
    require_full_match: bool,
) -> int:
    """Record the job that decides on these exemplars by a calibration, and return its key."""
    job = NewJob(
        "score",
        exemplar_ids,
        calibration.knn_parameters_id,
        calibration_id=calibration.id,
        weighted=weighted,
        require_full_match=require_full_match,
    )
    return submission.add_job(classifier, job)


def score_points(
    workspace: Workspace, classifier: Classifier, job: jobs.Job, snapshot: Snapshot, exemplar_ids: IntArray
) -> Scored | ScoredLogits:
    """Decide on those of the exemplars that the job's snapshot and options have not decided on yet."""
    with connect(workspace.engine) as connection:
        wanted = decisions.undecided(
            connection,
            exemplar_ids,
            calibration_id=snapshot.calibration.id,
            weighted=job.weighted,
            require_full_match=job.require_full_match,
        )
        queries = exemplars.vectors(connection, classifier, wanted) if job.weighted else None
        logits = exemplars.network_logits(connection, classifier, wanted) if snapshot.needs_logits else None
        groups = exemplars.groups(connection, wanted, snapshot.calibration.group_attributes)
    if classifier.knn is None:
        points = PointsToDecide(None, None, logits, groups)
        return ScoredLogits(job, classifier, wanted, snapshot.decide(points, require_full_match=False))
    approximated = approximate_points(workspace, classifier, wanted, snapshot.parameters, vectors=queries)
    assert approximated.approximation is not None

    decided = snapshot.decide(
        PointsToDecide(approximated.approximation, queries, logits, groups),
        require_full_match=bool(job.require_full_match),
    )
    return Scored(job, approximated, decided)


class ScoreChunks:
    """Computes the chunks of a job that scores; keeps the snapshots used last, which never change."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._snapshot = lru_cache(maxsize=4)(self._load_snapshot)

    def __call__(self, work: ChunkWork) -> Scored | ScoredLogits:
        """Decisions on a chunk's exemplars that the job's snapshot and options have not decided on yet."""
        assert work.job.calibration_id is not None, "a job that scores names a calibration"
        return score_points(
            self._workspace,
            work.classifier,
            work.job,
            self._snapshot(work.classifier.id, work.job.calibration_id),
            work.exemplar_ids,
        )

    def _load_snapshot(self, classifier_id: int, calibration_id: int) -> Snapshot:
        with connect(self._workspace.engine) as connection:
            classifier = classifiers.by_id(connection, classifier_id)
        return registry.load_snapshot(self._workspace, classifier, calibration_id)


def require_scores(engine: Engine, job_id: int) -> None:
    """Raise InvalidInputError unless the job scores; NotFoundError where there is none, or it was removed."""
    with connect(engine) as connection:
        job = jobs.unremoved(connection, job_id)
    if job.kind != "score":
        raise InvalidInputError(f"job {job_id} is of kind {job.kind}, expected score: it has no decisions to write")


def require_finished_scores(engine: Engine, job_id: int) -> None:
    """Raise as `require_scores` does, and NotReadyError unless the job is done."""
    require_scores(engine, job_id)
    with connect(engine) as connection:
        job = jobs.by_id(connection, job_id)
    if job.state != "done":
        raise NotReadyError(f"job {job_id} is {job.state}, expected one that is done: wait until it is")


@dataclass(frozen=True, slots=True)
class ScoreCounts:
    """A job's decisions, counted in rows of its file, and the names of the classes that they number."""

    class_names: tuple[str, ...]
    counts: Sequence[decisions.DecisionCount]


def count_scores(engine: Engine, job_id: int) -> ScoreCounts:
    """Count what a job decided. Raises NotFoundError if there is no such job, or it was removed."""
    with consistent_view(engine) as connection:
        classifier = classifiers.by_id(connection, jobs.unremoved(connection, job_id).classifier_id)
        return ScoreCounts(classifier.class_names, decisions.counts(connection, job_id))


def write_scores(engine: Engine, job_id: int, out: Path) -> None:
    """Write a finished job's decisions, one row for each row of its file, in its order; .parquet, .csv or .arrows."""
    with consistent_view(engine) as connection:
        class_names = classifiers.by_id(connection, jobs.unremoved(connection, job_id).classifier_id).class_names
        with TableWriter(out, SCORES_SCHEMA) as writer:
            for rows in decisions.job_rows(connection, job_id):
                writer.write(_score_columns(rows, class_names))


def read_scores(engine: Engine, job_id: int) -> pa.Table:
    """Return a finished job's decisions as `write_scores` writes them, with the columns of `SCORES_SCHEMA`."""
    with consistent_view(engine) as connection:
        class_names = classifiers.by_id(connection, jobs.unremoved(connection, job_id).classifier_id).class_names
        batches = [
            pa.RecordBatch.from_pydict(_score_columns(rows, class_names), schema=SCORES_SCHEMA)
            for rows in decisions.job_rows(connection, job_id)
        ]
    return pa.Table.from_batches(batches, SCORES_SCHEMA)


def _score_columns(rows: Sequence[Row[Any]], class_names: Sequence[str]) -> dict[str, Any]:
    # Turned at once, because a row takes ten times as long to look a column up.
    found = dict(zip(rows[0]._fields, zip(*rows, strict=True), strict=True))
    columns: dict[str, Any] = {
        "external_id": found["external_id"],
        "calibration": found["calibration_id"],
        "predicted_class": [class_names[number] for number in found["predicted"]],
        "decided_class": [None if number is None else class_names[number] for number in found["decision"]],
        "method": found["method"],
    }
    for column, field in SCORE_FIELDS.items():
        values: Sequence[Any] = found[field.name]
        if field.kind is Kind.BITS:
            classes = {value: None if value is None else classes_of(value) for value in set(values)}
            values = [classes[value] for value in values]
        columns[column] = values
    return columns
