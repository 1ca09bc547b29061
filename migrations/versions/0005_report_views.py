"""Views for reports and for outsiders, in schema `report`.

Why: tables are private and may change; these views keep their columns, and a new version is a new view.
"""

from pathlib import Path

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

ROUTINES = Path(__file__).parents[1] / "routines" / "views"
VIEWS = ("calibration_v1", "partition_v1", "decision_v1", "job_v1")


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("CREATE SCHEMA report")
    for view in VIEWS:
        op.execute((ROUTINES / f"{view}.sql").read_text())


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for view in reversed(VIEWS):
        op.execute(f"DROP VIEW report.{view}")
    op.execute("DROP SCHEMA report")
