"""Views from which the tables of a report on a calibration can be had by a query.

Why: a report offers the query behind each of its tables, for whoever doubts a figure or wants it every day. The views
there were count points by partition and label, which is too coarse for some of these tables. Nothing is taken away, so
older programs go on.
"""

from pathlib import Path

from alembic import op

from venn_admit.service.store.database.routines import view_statements

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

ROUTINES = Path(__file__).parents[1] / "routines"
PRIVATE = ("snapshot_change_v1",)
NEW = (
    "calibration_point_v1",
    "calibration_change_v1",
    "cell_v1",
    "discrepancy_v1",
    "exemplar_count_v1",
    "policy_proposal_v1",
    "recent_decision_v1",
)


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    for view in PRIVATE:
        op.execute((ROUTINES / "views" / f"{view}.sql").read_text())
    for view in NEW:
        for statement in view_statements(view):
            op.execute(statement)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for view in reversed(NEW):
        op.execute(f"DROP VIEW report.{view}")
    for view in reversed(PRIVATE):
        op.execute(f"DROP VIEW venn_admit.{view}")
