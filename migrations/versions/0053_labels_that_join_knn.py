"""A label that joined knn after the KNN was fitted says something about the calibration, and counts.

Why: labels of scored points go to knn, mc and vp. Those of mc and vp counted in the views on what is admitted, as long
as the calibration was made without them; those of knn never did, although `decision_v2` shows them and monitors count
them. They are now left out only if the parameters of the calibration may have been fitted with them.
"""

from pathlib import Path

from alembic import op

from venn_admit.service.store.database.routines import view_statements

revision = "0053"
down_revision = "0052"
branch_labels = None
depends_on = None

VIEWS = Path(__file__).parents[1] / "routines" / "views"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    op.execute((VIEWS / "decided_point_v1_since_0053.sql").read_text())
    for statement in view_statements("selective_accuracy_v3_since_0053"):
        op.execute(statement)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    op.execute((VIEWS / "decided_point_v1_since_0029.sql").read_text())
    former, *comments = view_statements("selective_accuracy_v3")
    op.execute(former.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))
    for comment in comments:
        op.execute(comment)
