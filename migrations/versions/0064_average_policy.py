"""What the average promise admits is a view, and whether an alarm means harm is said in one place.

Why: dashboards read views, and statements of the program read none of schema report.
"""

from alembic import op

from venn_admit.store.database.routines import routine_statements

revision = "0064"
down_revision = "0063"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for view in ("average_policy_v1", "alarm_row_v1", "alarm_v1_of_rows"):
        for statement in routine_statements(f"views/{view}"):
            op.execute(statement)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for statement in routine_statements("views/alarm_v1"):
        op.execute(statement.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))
    op.execute("-- squawk-ignore ban-drop-view\nDROP VIEW venn_admit.alarm_row_v1")
    op.execute("-- squawk-ignore ban-drop-view\nDROP VIEW report.average_policy_v1")
