"""One function that says which calibration points a snapshot was made with.

Why: five statements and a view each had the condition, and they have to agree. The view keeps its columns and its rows,
so it keeps its name. Nothing is taken away, so older programs go on.
"""

from pathlib import Path

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

ROUTINES = Path(__file__).parents[1] / "routines"

WRITTEN_OUT = """point.valid_from <= calibration.number
                AND (point.valid_until IS NULL OR point.valid_until > calibration.number)"""
CALLED = "venn_admit.is_in_snapshot_v1(calibration.number, point.valid_from, point.valid_until)"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute((ROUTINES / "functions" / "is_in_snapshot_v1.sql").read_text())
    _replace_view(CALLED)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    _replace_view(WRITTEN_OUT)
    op.execute("-- squawk-ignore ban-drop-function\nDROP FUNCTION venn_admit.is_in_snapshot_v1")


def _replace_view(condition: str) -> None:
    """Define selective_accuracy_v1 as its file does, with the condition in this form."""
    view = (ROUTINES / "views" / "selective_accuracy_v1.sql").read_text()
    before, after = view.split(WRITTEN_OUT)
    op.execute(f"{before}{condition}{after}".replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))
