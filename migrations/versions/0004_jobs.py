"""Jobs, their chunks, and the decisions they make.

Why: Work is recorded here before any message is sent, so that losing the broker loses nothing.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.create_table(
        "job",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False, comment="Key."),
        sa.Column("classifier_id", sa.Integer(), nullable=False, comment="Whose work."),
        sa.Column("kind", sa.Text(), nullable=False, comment="approximate or score."),
        sa.Column("state", sa.Text(), nullable=False, comment="running, done, failed or cancelled."),
        sa.Column(
            "knn_parameters_id", sa.Integer(), nullable=True, comment="Parameters to use; null: neighbours only."
        ),
        sa.Column(
            "calibration_id", sa.BigInteger(), nullable=True, comment="Snapshot to score with; null for other kinds."
        ),
        sa.Column(
            "weighted",
            sa.Boolean(),
            nullable=True,
            comment="Score: whether the Venn probabilities are up-weighted; null otherwise.",
        ),
        sa.Column(
            "require_full_match",
            sa.Boolean(),
            nullable=True,
            comment="Score: whether q < K is rejected; null otherwise.",
        ),
        sa.Column("row_count", sa.Integer(), nullable=False, comment="Rows in job_row."),
        sa.Column("error", sa.Text(), nullable=True, comment="Why it failed."),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was requested.",
        ),
        sa.Column(
            "finished_at",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="When it was done, failed or was cancelled.",
        ),
        sa.CheckConstraint(
            "(kind = 'score') = "
            "(calibration_id IS NOT NULL AND weighted IS NOT NULL AND require_full_match IS NOT NULL)",
            name=op.f("job_score_check"),
        ),
        sa.CheckConstraint("(state = 'running') = (finished_at IS NULL)", name=op.f("job_finished_check")),
        sa.CheckConstraint("kind IN ('approximate', 'score')", name=op.f("job_kind_check")),
        sa.CheckConstraint("state IN ('running', 'done', 'failed', 'cancelled')", name=op.f("job_state_check")),
        sa.ForeignKeyConstraint(
            ["calibration_id"], ["venn_admit.calibration.id"], name=op.f("job_calibration_id_fkey")
        ),
        sa.ForeignKeyConstraint(["classifier_id"], ["venn_admit.classifier.id"], name=op.f("job_classifier_id_fkey")),
        sa.ForeignKeyConstraint(
            ["knn_parameters_id"], ["venn_admit.knn_parameters.id"], name=op.f("job_knn_parameters_id_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("job_pkey")),
        schema="venn_admit",
        comment="Work to do. Its chunks are the record; a message to a worker is only a wake-up.",
    )
    op.create_index(
        "job_running_idx",
        "job",
        ["id"],
        unique=False,
        schema="venn_admit",
        postgresql_where=sa.text("state = 'running'"),
    )
    op.create_table(
        "job_row",
        sa.Column("job_id", sa.BigInteger(), nullable=False, comment="The job."),
        sa.Column("row_number", sa.Integer(), nullable=False, comment="0, 1, ...: the order of the request."),
        sa.Column("exemplar_id", sa.BigInteger(), nullable=False, comment="What to compute."),
        sa.ForeignKeyConstraint(["exemplar_id"], ["venn_admit.exemplar.id"], name=op.f("job_row_exemplar_id_fkey")),
        sa.ForeignKeyConstraint(["job_id"], ["venn_admit.job.id"], name=op.f("job_row_job_id_fkey")),
        sa.PrimaryKeyConstraint("job_id", "row_number", name=op.f("job_row_pkey")),
        schema="venn_admit",
        comment="The exemplars of a job, in the order of the request.",
    )
    op.create_table(
        "job_chunk",
        sa.Column("job_id", sa.BigInteger(), nullable=False, comment="The job."),
        sa.Column("ordinal", sa.Integer(), nullable=False, comment="0, 1, ... within the job."),
        sa.Column("first_row", sa.Integer(), nullable=False, comment="First row number."),
        sa.Column("end_row", sa.Integer(), nullable=False, comment="One past the last row number."),
        sa.Column(
            "state", sa.Text(), server_default="pending", nullable=False, comment="pending, running, done or failed."
        ),
        sa.Column(
            "attempts", sa.SmallInteger(), server_default="0", nullable=False, comment="How often it was claimed."
        ),
        sa.Column(
            "sent_at",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="When a message for it was last sent; null: not yet.",
        ),
        sa.Column(
            "lease_token", sa.Uuid(), nullable=True, comment="Of the claim in force; a result with another is refused."
        ),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True, comment="When the claim ends."),
        sa.Column("worker", sa.Text(), nullable=True, comment="Who claimed it last."),
        sa.Column("error", sa.Text(), nullable=True, comment="What went wrong last."),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True, comment="When it was done or failed."),
        sa.CheckConstraint("(state = 'running') = (lease_token IS NOT NULL)", name=op.f("job_chunk_lease_check")),
        sa.CheckConstraint("state IN ('pending', 'running', 'done', 'failed')", name=op.f("job_chunk_state_check")),
        sa.CheckConstraint("end_row > first_row", name=op.f("job_chunk_rows_check")),
        sa.ForeignKeyConstraint(["job_id"], ["venn_admit.job.id"], name=op.f("job_chunk_job_id_fkey")),
        sa.PrimaryKeyConstraint("job_id", "ordinal", name=op.f("job_chunk_pkey")),
        schema="venn_admit",
        comment="A run of a job's rows that one worker computes and writes in one transaction.",
    )
    op.create_index(
        "job_chunk_open_idx",
        "job_chunk",
        ["job_id", "ordinal"],
        unique=False,
        schema="venn_admit",
        postgresql_where=sa.text("state IN ('pending', 'running')"),
    )
    op.create_table(
        "decision",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False, comment="Key."),
        sa.Column("calibration_id", sa.BigInteger(), nullable=False, comment="The snapshot it rests on."),
        sa.Column("exemplar_id", sa.BigInteger(), nullable=False, comment="What was decided on."),
        sa.Column("weighted", sa.Boolean(), nullable=False, comment="Whether up-weighted by the localizer."),
        sa.Column("require_full_match", sa.Boolean(), nullable=False, comment="Whether q < K was rejected."),
        sa.Column(
            "complete_to",
            sa.BigInteger(),
            nullable=False,
            comment="Newest training exemplar its neighbours are from.",
        ),
        sa.Column("predicted", sa.Integer(), nullable=False, comment="KNN's prediction."),
        sa.Column("match_count", sa.Integer(), nullable=False, comment="q."),
        sa.Column("distance", sa.Double(), nullable=False, comment="d."),
        sa.Column("logits", postgresql.ARRAY(sa.Double()), nullable=False, comment="KNN(x), one a class."),
        sa.Column("admit_set", postgresql.BIT(varying=True), nullable=False, comment="ADMIT set, a bit a class."),
        sa.Column(
            "band_size",
            postgresql.ARRAY(sa.Integer()),
            nullable=False,
            comment="n_c, points of each class in the band, in mc.",
        ),
        sa.Column(
            "threshold",
            postgresql.ARRAY(sa.Double()),
            nullable=False,
            comment="tau_c of each class; -infinity allowed.",
        ),
        sa.Column(
            "category_size", sa.Integer(), nullable=False, comment="|T|, in vp; 0 where the set is no singleton."
        ),
        sa.Column(
            "upweight",
            sa.Double(),
            nullable=True,
            comment="w; infinite where psi' = 0; null where the set is no singleton.",
        ),
        sa.Column(
            "lower",
            sa.Double(),
            nullable=True,
            comment="Lower probability of the prediction; null where the set is no singleton.",
        ),
        sa.Column(
            "upper",
            sa.Double(),
            nullable=True,
            comment="Upper probability of the prediction; null where the set is no singleton.",
        ),
        sa.Column("decision", sa.Integer(), nullable=True, comment="The admitted class; null = rejected."),
        sa.Column("reason", sa.Text(), nullable=True, comment="Why it was rejected; null where admitted."),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was decided.",
        ),
        sa.CheckConstraint("(decision IS NULL) = (reason IS NOT NULL)", name=op.f("decision_reason_check")),
        sa.CheckConstraint("decision = predicted", name=op.f("decision_decision_check")),
        sa.ForeignKeyConstraint(
            ["calibration_id"], ["venn_admit.calibration.id"], name=op.f("decision_calibration_id_fkey")
        ),
        sa.ForeignKeyConstraint(["exemplar_id"], ["venn_admit.exemplar.id"], name=op.f("decision_exemplar_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("decision_pkey")),
        sa.UniqueConstraint("calibration_id", "exemplar_id", "weighted", "require_full_match", name="decision_key"),
        schema="venn_admit",
        comment="Admit or reject, with the evidence, pinned to a snapshot.",
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("decision", schema="venn_admit")
    op.drop_table("job_chunk", schema="venn_admit")
    op.drop_table("job_row", schema="venn_admit")
    op.drop_table("job", schema="venn_admit")
