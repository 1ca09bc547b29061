"""Requests for recalibration, chunks that wait before another attempt, and which calibrator is in use.

Why: labels that arrive are gathered into one recalibration; a chunk that failed is not tried again at once; and
calibrators kept current in turn must not change under which setting is scored.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.add_column(
        "job_chunk",
        sa.Column(
            "not_before",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="Before which it is not tried again; null where it need not wait.",
        ),
        schema="venn_admit",
    )
    op.add_column(
        "calibrator",
        sa.Column(
            "chosen_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When `calibrate` last asked for it; the latest of a classifier's is the one in use.",
        ),
        schema="venn_admit",
    )
    # There is one row for each setting that was ever asked for: few, and nothing else writes them.
    op.execute(
        """
        UPDATE venn_admit.calibrator
        SET chosen_at = coalesce(
            (
                SELECT max(calibration.created_at)
                FROM venn_admit.calibration
                WHERE calibration.calibrator_id = calibrator.id
            ),
            calibrator.created_at
        )
        """
    )
    op.create_table(
        "recalibration_request",
        sa.Column("calibrator_id", sa.Integer(), nullable=False, comment="What is to be recalibrated."),
        sa.Column(
            "first_requested_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When what is not served yet was first asked for.",
        ),
        sa.Column(
            "last_requested_at", sa.DateTime(timezone=True), nullable=False, comment="When it was last asked for."
        ),
        sa.Column("reason", sa.Text(), nullable=False, comment="What changed, such as labels."),
        sa.Column(
            "job_id",
            sa.BigInteger(),
            nullable=True,
            comment="The job that brings approximations up to date; null where none was recorded yet.",
        ),
        sa.Column(
            "error",
            sa.Text(),
            nullable=True,
            comment="Why it could not be served; it then waits for the next request, or for a person.",
        ),
        sa.CheckConstraint(
            "first_requested_at <= last_requested_at", name=op.f("recalibration_request_requested_check")
        ),
        sa.ForeignKeyConstraint(
            ["calibrator_id"], ["venn_admit.calibrator.id"], name=op.f("recalibration_request_calibrator_id_fkey")
        ),
        sa.ForeignKeyConstraint(["job_id"], ["venn_admit.job.id"], name=op.f("recalibration_request_job_id_fkey")),
        sa.PrimaryKeyConstraint("calibrator_id", name=op.f("recalibration_request_pkey")),
        schema="venn_admit",
        comment="Recalibrations that are due or will be: requests are gathered, one row a calibrator.",
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("recalibration_request", schema="venn_admit")
    op.drop_column("calibrator", "chosen_at", schema="venn_admit")
    op.drop_column("job_chunk", "not_before", schema="venn_admit")
