"""Random labels of points that were not drawn count beside those that were.

Why: while points were audited, a random label of a point that was not drawn counted for nothing in monitors, so that an
alarm came later the more was audited. Each weighs by the probability with which its point was left, as drawn ones do by
that with which they were drawn, so that all of them stand for the same traffic.
"""

from alembic import op

from venn_admit.store.database.routines import routine_statements

revision = "0102"
down_revision = "0101"
branch_labels = None
depends_on = None

VIEWS = ("audit_weight_v2", "monitored_label_v1", "standing_label_v2")


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for name in VIEWS:
        for statement in routine_statements(f"views/{name}"):
            op.execute(statement)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for name in reversed(VIEWS):
        op.execute(f"DROP VIEW venn_admit.{name}")
