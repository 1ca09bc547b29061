"""Flips between snapshots have the cause that changed, also if the change was in the calibration points alone.

Why: a decision on a point whose own neighbours are the same may flip because the bands around it hold other points. It
was put down to new labels although no label had changed, but training data or parameters. And by a score of the network
alone, training data are no cause.
"""

from alembic import op

from venn_admit.service.store.database.routines import function_statements

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    for statement in function_statements("snapshot_diff_v1_since_0031"):
        op.execute(statement)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for statement in function_statements("snapshot_diff_v1"):
        op.execute(statement.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))
