"""Jobs, their chunks, requests for recalibration, and messages."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from venn_admit.store.database.tables.approximations import knn_parameters
from venn_admit.store.database.tables.base import IS_UNLOGGED, created_at, metadata
from venn_admit.store.database.tables.calibrations import calibration, calibrator
from venn_admit.store.database.tables.exemplars import classifier, exemplar

job = Table(
    "job",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True, comment="Key."),
    Column("classifier_id", ForeignKey(classifier.c.id), nullable=False, comment="Classifier that the work is for."),
    Column("kind", Text, nullable=False, comment="approximate, score or fit."),
    Column("state", Text, nullable=False, comment="running, done, failed or cancelled."),
    Column(
        "knn_parameters_id",
        ForeignKey(knn_parameters.c.id),
        comment="KNN parameters to use, or those that a fit made; null if only neighbours are computed, or if the "
        "classifier has logits only.",
    ),
    Column(
        "calibration_id",
        ForeignKey(calibration.c.id, ondelete="SET NULL"),
        comment="Snapshot to score with; null for jobs of other kinds, and if it was let go after the job was removed.",
    ),
    Column("weighted", Boolean, comment="Whether Venn probabilities are up-weighted; null unless the kind is score."),
    Column(
        "require_full_match", Boolean, comment="Whether points with q < K are rejected; null unless the kind is score."
    ),
    Column(
        "support_version",
        BigInteger,
        comment="Support version that all neighbour lists are complete to once it is done; null if not all are.",
    ),
    Column("row_count", Integer, nullable=False, comment="Number of rows in job_row."),
    Column("error", Text, comment="Why it failed or was cancelled; null otherwise."),
    created_at("it was requested"),
    Column("finished_at", DateTime(timezone=True), comment="When it was done, failed or was cancelled."),
    Column(
        "requested_by",
        Text,
        comment="Key or token by which it was requested over HTTP, such as key 2; null otherwise.",
    ),
    Column(
        "removed_at",
        DateTime(timezone=True),
        comment="When its rows, chunks and decisions were removed; null while they are kept.",
    ),
    Column(
        "removed_because",
        Text,
        comment="Why: age, by the setting, or request, because somebody asked for it; null while they are kept.",
    ),
    Column("rows_done", Integer, comment="Rows that were done when it was removed; null while its chunks are kept."),
    Column(
        "is_emptied",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether all rows and chunks of a removed job are deleted.",
    ),
    CheckConstraint("kind IN ('approximate', 'score', 'fit')", name="kind"),
    CheckConstraint("state IN ('running', 'done', 'failed', 'cancelled')", name="state"),
    CheckConstraint("(state = 'running') = (finished_at IS NULL)", name="finished"),
    CheckConstraint(
        "(kind = 'score') = (weighted IS NOT NULL AND require_full_match IS NOT NULL) "
        "AND (kind = 'score' OR calibration_id IS NULL) "
        "AND (kind <> 'score' OR calibration_id IS NOT NULL OR removed_at IS NOT NULL)",
        name="score",
    ),
    CheckConstraint(
        "num_nulls(removed_at, removed_because, rows_done) IN (0, 3) AND removed_because IN ('age', 'request') "
        "AND (removed_at IS NULL OR state <> 'running') AND (removed_at IS NOT NULL OR NOT is_emptied)",
        name="removed",
    ),
    Index("job_running_idx", "id", postgresql_where=text("state = 'running'")),
    Index(
        "job_finished_idx",
        "classifier_id",
        text("(kind = 'score')"),
        "finished_at",
        postgresql_where=text("finished_at IS NOT NULL"),
    ),
    # Those whose age counts, and those whose removal goes on.
    Index("job_age_idx", "finished_at", postgresql_where=text("removed_at IS NULL")),
    Index("job_removal_idx", "id", postgresql_where=text("removed_at IS NOT NULL AND NOT is_emptied")),
    comment="Requests for work. The chunks of a job are its record; a message to a worker only wakes it up.",
)


job_row = Table(
    "job_row",
    metadata,
    Column("job_id", ForeignKey(job.c.id), nullable=False, comment="The job."),
    Column("row_number", Integer, nullable=False, comment="0, 1, ..., in the order of the request."),
    Column("exemplar_id", ForeignKey(exemplar.c.id), nullable=False, comment="Exemplar to compute."),
    PrimaryKeyConstraint("job_id", "row_number"),
    # Whether another job asks for an exemplar.
    Index(None, "exemplar_id"),
    comment="The exemplars of a job, in the order of the request.",
)


job_chunk = Table(
    "job_chunk",
    metadata,
    Column("job_id", ForeignKey(job.c.id), nullable=False, comment="The job."),
    Column("ordinal", Integer, nullable=False, comment="0, 1, ... within the job."),
    Column("first_row", Integer, nullable=False, comment="First row number."),
    Column("end_row", Integer, nullable=False, comment="One past the last row number."),
    Column("state", Text, nullable=False, server_default="pending", comment="pending, running, done or failed."),
    Column(
        "attempts", SmallInteger, nullable=False, server_default="0", comment="Number of times that it was claimed."
    ),
    Column(
        "sent_at", DateTime(timezone=True), comment="When a message for it was last sent; null if none was sent yet."
    ),
    Column("lease_token", Uuid, comment="Token of the current claim; a result with another token is refused."),
    Column("lease_until", DateTime(timezone=True), comment="When the claim expires."),
    Column("worker", Text, comment="Worker that claimed it last."),
    Column("error", Text, comment="Error of the last attempt that failed."),
    Column("finished_at", DateTime(timezone=True), comment="When it was done or failed."),
    Column(
        "not_before",
        DateTime(timezone=True),
        comment="Earliest time of the next attempt; null if it need not wait.",
    ),
    Column(
        "is_last",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether it waits until all other chunks of the job are done.",
    ),
    Column(
        "claimed_at",
        DateTime(timezone=True),
        comment="When it was last claimed; null if it was not, or by a version of the program before 0041.",
    ),
    Column(
        "late_at",
        DateTime(timezone=True),
        comment="When its claim was found to last much longer than others of the job, once at most; else null.",
    ),
    PrimaryKeyConstraint("job_id", "ordinal"),
    CheckConstraint("state IN ('pending', 'running', 'done', 'failed')", name="state"),
    CheckConstraint("end_row > first_row", name="rows"),
    CheckConstraint("(state = 'running') = (lease_token IS NOT NULL)", name="lease"),
    Index("job_chunk_open_idx", "job_id", "ordinal", postgresql_where=text("state IN ('pending', 'running')")),
    Index("job_chunk_claimed_idx", "job_id", "claimed_at", postgresql_where=text("claimed_at IS NOT NULL")),
    comment="Runs of a job's rows, each of which one worker computes and writes in one transaction.",
)


recalibration_request = Table(
    "recalibration_request",
    metadata,
    Column(
        "calibrator_id", ForeignKey(calibrator.c.id), primary_key=True, comment="Calibrator that must be recalibrated."
    ),
    Column(
        "first_requested_at",
        DateTime(timezone=True),
        nullable=False,
        comment="When the first request that is not served yet was made.",
    ),
    Column("last_requested_at", DateTime(timezone=True), nullable=False, comment="When the last request was made."),
    Column("reason", Text, nullable=False, comment="What changed, such as labels."),
    Column(
        "job_id",
        ForeignKey(job.c.id),
        comment="Job that brings the approximations up to date; null if none is recorded yet.",
    ),
    Column(
        "error",
        Text,
        comment="Why it could not be served; it then waits for the next request, or until somebody intervenes.",
    ),
    CheckConstraint("first_requested_at <= last_requested_at", name="requested"),
    comment="Recalibrations that are due or will be. Requests are gathered in one row per calibrator.",
)


message = Table(
    "message",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True, comment="Key; ascends in order of sending."),
    Column("queue", Text, nullable=False, comment="Celery's queue."),
    Column("payload", JSONB, nullable=False, comment="Content that Celery sends: the task, its job and its chunk."),
    comment="Messages to workers if the database is the broker; deleted on receipt, and lost in a crash.",
    prefixes=["UNLOGGED"],
    info={IS_UNLOGGED: True},
)
