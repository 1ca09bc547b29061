"""Fits that workers compute.

Why: the process that serves HTTP must not fit by itself, which takes minutes and torch. A fit is one job: the chunks
that search neighbours, and a last one that fits on them once all others are done. A new column with a default, and a
check that allows more: it takes no time. Older programs go on, but a worker of the version before fails the chunks of a
fit, so upgrade workers before the service is asked for one.
"""

import sqlalchemy as sa
from alembic import op

from venn_admit.service.store.database.routines import view_statements

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None

KIND = "approximate or score."
PARAMETERS = "KNN parameters to use; null if only neighbours are computed, or if the classifier has logits only."


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    op.add_column(
        "job_chunk",
        sa.Column(
            "is_last",
            sa.Boolean(),
            server_default=sa.text("false"),
            nullable=False,
            comment="Whether it waits until all other chunks of the job are done.",
        ),
        schema="venn_admit",
    )
    _allow_kinds("'approximate', 'score', 'fit'")
    _comment("kind", "approximate, score or fit.")
    _comment(
        "knn_parameters_id",
        "KNN parameters to use, or those that a fit made; null if only neighbours are computed, or if the classifier "
        "has logits only.",
    )
    _replace_view("job_v2_since_0036")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    _replace_view("job_v2")
    op.execute("UPDATE venn_admit.job SET kind = 'approximate' WHERE kind = 'fit'")
    _comment("kind", KIND)
    _comment("knn_parameters_id", PARAMETERS)
    _allow_kinds("'approximate', 'score'")
    op.drop_column("job_chunk", "is_last", schema="venn_admit")


def _allow_kinds(kinds: str) -> None:
    op.execute("-- squawk-ignore ban-drop-constraint\nALTER TABLE venn_admit.job DROP CONSTRAINT job_kind_check")
    # Jobs are few: each is a request.
    op.execute(
        "-- squawk-ignore constraint-missing-not-valid\n"
        f"ALTER TABLE venn_admit.job ADD CONSTRAINT job_kind_check CHECK (kind IN ({kinds}))"
    )


def _comment(column: str, comment: str) -> None:
    op.execute(f"COMMENT ON COLUMN venn_admit.job.{column} IS '{comment}'")


def _replace_view(name: str) -> None:
    for statement in view_statements(name):
        op.execute(statement.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))
