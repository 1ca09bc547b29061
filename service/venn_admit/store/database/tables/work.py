"""Jobs, their chunks, requests for recalibration, and messages."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from venn_admit.store.database.tables.approximations import knn_parameters
from venn_admit.store.database.tables.base import IS_UNLOGGED, TIME, created_at, key, metadata, optional, required
from venn_admit.store.database.tables.calibrations import calibration, calibrator
from venn_admit.store.database.tables.exemplars import classifier, exemplar

job = sa.Table(
    "job",
    metadata,
    key("Key."),
    required("classifier_id", sa.ForeignKey(classifier.c.id), "Classifier that the work is for."),
    required("kind", sa.Text, "approximate, score, fit or certify."),
    required("state", sa.Text, "running, done, failed or cancelled."),
    optional(
        "knn_parameters_id",
        sa.ForeignKey(knn_parameters.c.id),
        "KNN parameters to use, or those that a fit made; null if only neighbours are computed, or if the "
        "classifier has logits only.",
    ),
    optional(
        "calibration_id",
        sa.ForeignKey(calibration.c.id, ondelete="SET NULL"),
        "Snapshot to score with; null for jobs of other kinds, and if it was let go after the job was removed.",
    ),
    optional("weighted", sa.Boolean, "Whether Venn probabilities are up-weighted; null unless the kind is score."),
    optional(
        "require_full_match", sa.Boolean, "Whether points with q < K are rejected; null unless the kind is score."
    ),
    optional(
        "support_version",
        sa.BigInteger,
        "Support version that all neighbour lists are complete to once it is done; null if not all are.",
    ),
    required("row_count", sa.Integer, "Number of rows in job_row."),
    optional("error", sa.Text, "Why it failed or was cancelled; null otherwise."),
    created_at("it was requested"),
    optional("finished_at", TIME, "When it was done, failed or was cancelled."),
    optional(
        "requested_by", sa.Text, "Key or token by which it was requested over HTTP, such as key 2; null otherwise."
    ),
    optional("removed_at", TIME, "When its rows, chunks and decisions were removed; null while they are kept."),
    optional(
        "removed_because",
        sa.Text,
        "Why: age, by the setting, or request, because somebody asked for it; null while they are kept.",
    ),
    optional("rows_done", sa.Integer, "Rows that were done when it was removed; null while its chunks are kept."),
    required(
        "is_emptied",
        sa.Boolean,
        "Whether all rows and chunks of a removed job are deleted.",
        server_default=sa.text("false"),
    ),
    sa.CheckConstraint("kind IN ('approximate', 'score', 'fit', 'certify')", name="kind"),
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
    required("job_id", sa.ForeignKey(job.c.id), "The job."),
    required("row_number", sa.Integer, "0, 1, ..., in the order of the request."),
    required("exemplar_id", sa.ForeignKey(exemplar.c.id), "Exemplar to compute."),
    sa.PrimaryKeyConstraint("job_id", "row_number"),
    # Whether another job asks for an exemplar.
    sa.Index(None, "exemplar_id"),
    comment="The exemplars of a job, in the order of the request.",
)


job_chunk = sa.Table(
    "job_chunk",
    metadata,
    required("job_id", sa.ForeignKey(job.c.id), "The job."),
    required("ordinal", sa.Integer, "0, 1, ... within the job."),
    required("first_row", sa.Integer, "First row number."),
    required("end_row", sa.Integer, "One past the last row number."),
    required("state", sa.Text, "pending, running, done or failed.", server_default="pending"),
    required("attempts", sa.SmallInteger, "Number of times that it was claimed.", server_default="0"),
    optional("sent_at", TIME, "When a message for it was last sent; null if none was sent yet."),
    optional("lease_token", sa.Uuid, "Token of the current claim; a result with another token is refused."),
    optional("lease_until", TIME, "When the claim expires."),
    optional("worker", sa.Text, "Worker that claimed it last."),
    optional("error", sa.Text, "Error of the last attempt that failed."),
    optional("finished_at", TIME, "When it was done or failed."),
    optional("not_before", TIME, "Earliest time of the next attempt; null if it need not wait."),
    required(
        "is_last",
        sa.Boolean,
        "Whether it waits until all other chunks of the job are done.",
        server_default=sa.text("false"),
    ),
    optional(
        "claimed_at", TIME, "When it was last claimed; null if it was not, or by a version of the program before 0041."
    ),
    optional(
        "late_at", TIME, "When its claim was found to last much longer than others of the job, once at most; else null."
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
    required("first_requested_at", TIME, "When the first request that is not served yet was made."),
    required("last_requested_at", TIME, "When the last request was made."),
    required("reason", sa.Text, "What changed, such as labels."),
    optional(
        "job_id",
        sa.ForeignKey(job.c.id),
        "Job that brings the approximations up to date; null if none is recorded yet.",
    ),
    optional(
        "error",
        sa.Text,
        "Why it could not be served; it then waits for the next request, or until somebody intervenes.",
    ),
    sa.CheckConstraint("first_requested_at <= last_requested_at", name="requested"),
    comment="Recalibrations that are due or will be. Requests are gathered in one row per calibrator.",
)


message = sa.Table(
    "message",
    metadata,
    key("Key; ascends in order of sending."),
    required("queue", sa.Text, "Celery's queue."),
    required("payload", JSONB, "Content that Celery sends: the task, its job and its chunk."),
    comment="Messages to workers if the database is the broker; deleted on receipt, and lost in a crash.",
    prefixes=["UNLOGGED"],
    info={IS_UNLOGGED: True},
)
