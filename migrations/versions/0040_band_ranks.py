"""The threshold score of a band is looked up by its rank, after one sort.

Why: two window functions ranked every point of a band, and compared each rank as a decimal, to find one of them. With
50,000 points in mc that was a good part of a decision on one point; the same score now takes a quarter of the time.
"""

from pathlib import Path

from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None

FUNCTIONS = Path(__file__).parents[1] / "routines" / "functions"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    op.execute((FUNCTIONS / "band_thresholds_v1_since_0040.sql").read_text())


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    former = (FUNCTIONS / "band_thresholds_v1.sql").read_text()
    op.execute(former.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))
