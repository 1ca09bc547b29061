"""A view of how often Venn-ADMIT is right about what it admits.

Why: reporting tools read the figures of `venn-admit evaluate` without running it.
"""

from pathlib import Path

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

ROUTINES = Path(__file__).parents[1] / "routines" / "views"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute((ROUTINES / "selective_accuracy_v1.sql").read_text())


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP VIEW report.selective_accuracy_v1")
