"""Functions say which labels stand since the last was taken back, and which row stands for a stretch of rows.

Why: statements of reports and evaluations said each of them two or three times, and could come to say different things.
"""

from alembic import op

from venn_admit.store.database.routines import routine_statements

revision = "0119"
down_revision = "0118"
branch_labels = None
depends_on = None

FUNCTIONS = {"label_events_since_retraction_v1": "bigint", "row_of_stretch_v1": "bigint, bigint, bigint"}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for name in FUNCTIONS:
        for statement in routine_statements(f"functions/{name}"):
            op.execute(statement)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for name, arguments in FUNCTIONS.items():
        op.execute(f"DROP FUNCTION venn_admit.{name}({arguments})")
