"""A view of selective accuracy whose verdict follows from the interval.

Why: a share above the target proves little if its sample is small. The first version of the view judged by the share.
"""

from pathlib import Path

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

ROUTINES = Path(__file__).parents[1] / "routines" / "views"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute((ROUTINES / "selective_accuracy_v2.sql").read_text())


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP VIEW report.selective_accuracy_v2")
