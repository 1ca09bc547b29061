"""What certificates for groups admit of each, and how much of it is right, is a view.

Why: it is what a certificate for groups promises, and dashboards read views.
"""

from alembic import op

from venn_admit.store.database.routines import routine_statements

revision = "0062"
down_revision = "0061"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for statement in routine_statements("views/group_accuracy_v1"):
        op.execute(statement)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("-- squawk-ignore ban-drop-view\nDROP VIEW report.group_accuracy_v1")
