"""How often network and KNN are right on calibration data is a view, and the view of jobs names all their kinds.

Why: an evaluation shows accuracy and F0.5 of the calibration data, and SQL had the partitions alone. Jobs may certify
since 0071.
"""

from alembic import op

from venn_admit.store.database.routines import routine_statements

revision = "0072"
down_revision = "0071"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for statement in routine_statements("views/point_accuracy_v1"):
        op.execute(statement)
    describe_jobs(of_baseline=False)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("-- squawk-ignore ban-drop-view\nDROP VIEW report.point_accuracy_v1")
    describe_jobs(of_baseline=True)


def describe_jobs(*, of_baseline: bool) -> None:
    for statement in routine_statements("views/job_v2", of_baseline=of_baseline):
        op.execute(statement.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))
