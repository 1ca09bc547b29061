"""Jobs, their chunks, requests for recalibration, and messages."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from venn_admit.store.database.tables.approximations import knn_parameters
from venn_admit.store.database.tables.base import IS_UNLOGGED, created_at, metadata
from venn_admit.store.database.tables.calibrations import calibration, calibrator
from venn_admit.store.database.tables.exemplars import classifier, exemplar

job = sa.Table(
    "job",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True, comment="Key."),
    sa.Column(
        "classifier_id", sa.ForeignKey(classifier.c.id), nullable=False, comment="Classifier that the work is for."
    ),
    sa.Column("kind", sa.Text, nullable=False, comment="approximate, score or fit."),
    sa.Column("state", sa.Text, nullable=False, comment="running, done, failed or cancelled."),
    sa.Column(
        "knn_parameters_id",
        sa.ForeignKey(knn_parameters.c.id),
        comment="KNN parameters to use, or those that a fit made; null if only neighbours are computed, or if the "
        "classifier has logits only.",
    ),
    sa.Column(
        "calibration_id",
        sa.ForeignKey(calibration.c.id, ondelete="SET NULL"),
        comment="Snapshot to score with; null for jobs of other kinds, and if it was let go after the job was removed.",
    ),
    sa.Column(
        "weighted", sa.Boolean, comment="Whether Venn probabilities are up-weighted; null unless the kind is score."
    ),
    sa.Column(
        "require_full_match",
        sa.Boolean,
        comment="Whether points with q < K are rejected; null unless the kind is score.",
    ),
    sa.Column(
        "support_version",
        sa.BigInteger,
        comment="Support version that all neighbour lists are complete to once it is done; null if not all are.",
    ),
    sa.Column("row_count", sa.Integer, nullable=False, comment="Number of rows in job_row."),
    sa.Column("error", sa.Text, comment="Why it failed or was cancelled; null otherwise."),
    created_at("it was requested"),
    sa.Column("finished_at", sa.DateTime(timezone=True), comment="When it was done, failed or was cancelled."),
    sa.Column(
        "requested_by",
        sa.Text,
        comment="Key or token by which it was requested over HTTP, such as key 2; null otherwise.",
    ),
    sa.Column(
        "removed_at",
        sa.DateTime(timezone=True),
        comment="When its rows, chunks and decisions were removed; null while they are kept.",
    ),
    sa.Column(
        "removed_because",
        sa.Text,
        comment="Why: age, by the setting, or request, because somebody asked for it; null while they are kept.",
    ),
    sa.Column(
        "rows_done", sa.Integer, comment="Rows that were done when it was removed; null while its chunks are kept."
    ),
    sa.Column(
        "is_emptied",
        sa.Boolean,
        nullable=False,
        server_default=sa.text("false"),
        comment="Whether all rows and chunks of a removed job are deleted.",
    ),
    sa.CheckConstraint("kind IN ('approximate', 'score', 'fit')", name="kind"),
    sa.CheckConstraint("state IN ('running', 'done', 'failed', 'cancelled')", name="state"),
    sa.CheckConstraint("(state = 'running') = (finished_at IS NULL)", name="finished"),
    sa.CheckConstraint(
        "(kind = 'score') = (weighted IS NOT NULL AND require_full_match IS NOT NULL) "
        "AND (kind = 'score' OR calibration_id IS NULL) "
        "AND (kind <> 'score' OR calibration_id IS NOT NULL OR removed_at IS NOT NULL)",
        name="score",
    ),
    sa.CheckConstraint(
        "num_nulls(removed_at, removed_because, rows_done) IN (0, 3) AND removed_because IN ('age', 'request') "
        "AND (removed_at IS NULL OR state <> 'running') AND (removed_at IS NOT NULL OR NOT is_emptied)",
        name="removed",
    ),
    sa.Index("job_running_idx", "id", postgresql_where=sa.text("state = 'running'")),
    sa.Index(
        "job_finished_idx",
        "classifier_id",
        sa.text("(kind = 'score')"),
        "finished_at",
        postgresql_where=sa.text("finished_at IS NOT NULL"),
    ),
    # Those whose age counts, and those whose removal goes on.
    sa.Index("job_age_idx", "finished_at", postgresql_where=sa.text("removed_at IS NULL")),
    sa.Index("job_removal_idx", "id", postgresql_where=sa.text("removed_at IS NOT NULL AND NOT is_emptied")),
    comment="Requests for work. The chunks of a job are its record; a message to a worker only wakes it up.",
)


job_row = sa.Table(
    "job_row",
    metadata,
    sa.Column("job_id", sa.ForeignKey(job.c.id), nullable=False, comment="The job."),
    sa.Column("row_number", sa.Integer, nullable=False, comment="0, 1, ..., in the order of the request."),
    sa.Column("exemplar_id", sa.ForeignKey(exemplar.c.id), nullable=False, comment="Exemplar to compute."),
    sa.PrimaryKeyConstraint("job_id", "row_number"),
    # Whether another job asks for an exemplar.
    sa.Index(None, "exemplar_id"),
    comment="The exemplars of a job, in the order of the request.",
)


job_chunk = sa.Table(
    "job_chunk",
    metadata,
    sa.Column("job_id", sa.ForeignKey(job.c.id), nullable=False, comment="The job."),
    sa.Column("ordinal", sa.Integer, nullable=False, comment="0, 1, ... within the job."),
    sa.Column("first_row", sa.Integer, nullable=False, comment="First row number."),
    sa.Column("end_row", sa.Integer, nullable=False, comment="One past the last row number."),
    sa.Column("state", sa.Text, nullable=False, server_default="pending", comment="pending, running, done or failed."),
    sa.Column(
        "attempts", sa.SmallInteger, nullable=False, server_default="0", comment="Number of times that it was claimed."
    ),
    sa.Column(
        "sent_at", sa.DateTime(timezone=True), comment="When a message for it was last sent; null if none was sent yet."
    ),
    sa.Column("lease_token", sa.Uuid, comment="Token of the current claim; a result with another token is refused."),
    sa.Column("lease_until", sa.DateTime(timezone=True), comment="When the claim expires."),
    sa.Column("worker", sa.Text, comment="Worker that claimed it last."),
    sa.Column("error", sa.Text, comment="Error of the last attempt that failed."),
    sa.Column("finished_at", sa.DateTime(timezone=True), comment="When it was done or failed."),
    sa.Column(
        "not_before", sa.DateTime(timezone=True), comment="Earliest time of the next attempt; null if it need not wait."
    ),
    sa.Column(
        "is_last",
        sa.Boolean,
        nullable=False,
        server_default=sa.text("false"),
        comment="Whether it waits until all other chunks of the job are done.",
    ),
    sa.Column(
        "claimed_at",
        sa.DateTime(timezone=True),
        comment="When it was last claimed; null if it was not, or by a version of the program before 0041.",
    ),
    sa.Column(
        "late_at",
        sa.DateTime(timezone=True),
        comment="When its claim was found to last much longer than others of the job, once at most; else null.",
    ),
    sa.PrimaryKeyConstraint("job_id", "ordinal"),
    sa.CheckConstraint("state IN ('pending', 'running', 'done', 'failed')", name="state"),
    sa.CheckConstraint("end_row > first_row", name="rows"),
    sa.CheckConstraint("(state = 'running') = (lease_token IS NOT NULL)", name="lease"),
    sa.Index("job_chunk_open_idx", "job_id", "ordinal", postgresql_where=sa.text("state IN ('pending', 'running')")),
    sa.Index("job_chunk_claimed_idx", "job_id", "claimed_at", postgresql_where=sa.text("claimed_at IS NOT NULL")),
    comment="Runs of a job's rows, each of which one worker computes and writes in one transaction.",
)


recalibration_request = sa.Table(
    "recalibration_request",
    metadata,
    sa.Column(
        "calibrator_id",
        sa.ForeignKey(calibrator.c.id),
        primary_key=True,
        comment="Calibrator that must be recalibrated.",
    ),
    sa.Column(
        "first_requested_at",
        sa.DateTime(timezone=True),
        nullable=False,
        comment="When the first request that is not served yet was made.",
    ),
    sa.Column(
        "last_requested_at", sa.DateTime(timezone=True), nullable=False, comment="When the last request was made."
    ),
    sa.Column("reason", sa.Text, nullable=False, comment="What changed, such as labels."),
    sa.Column(
        "job_id",
        sa.ForeignKey(job.c.id),
        comment="Job that brings the approximations up to date; null if none is recorded yet.",
    ),
    sa.Column(
        "error",
        sa.Text,
        comment="Why it could not be served; it then waits for the next request, or until somebody intervenes.",
    ),
    sa.CheckConstraint("first_requested_at <= last_requested_at", name="requested"),
    comment="Recalibrations that are due or will be. Requests are gathered in one row per calibrator.",
)


message = sa.Table(
    "message",
    metadata,
    sa.Column(
        "id", sa.BigInteger, sa.Identity(always=True), primary_key=True, comment="Key; ascends in order of sending."
    ),
    sa.Column("queue", sa.Text, nullable=False, comment="Celery's queue."),
    sa.Column("payload", JSONB, nullable=False, comment="Content that Celery sends: the task, its job and its chunk."),
    comment="Messages to workers if the database is the broker; deleted on receipt, and lost in a crash.",
    prefixes=["UNLOGGED"],
    info={IS_UNLOGGED: True},
)
