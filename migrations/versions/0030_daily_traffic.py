"""A view of the traffic of each day, all jobs of the day together.

Why: where jobs are small, a job says little about the traffic, and shares of several jobs cannot be added up.
"""

from alembic import op

from venn_admit.service.store.database.routines import view_statements

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    for statement in view_statements("daily_traffic_v1"):
        op.execute(statement)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP VIEW report.daily_traffic_v1")
