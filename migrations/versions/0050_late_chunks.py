"""When a chunk was late, so that a worker without work may take it over from a slow one.

Why: a job waited for the last chunk of its slowest worker, however many others had nothing to do. The column has no
default, so nothing is rewritten. Nothing is taken away, so older programs go on: they take over no chunk that is late,
and drop their result if theirs was taken over.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None

FUNCTIONS = ("is_chunk_claimable_v1", "is_chunk_unsent_v2")
ROUTINES = Path(__file__).parents[1] / "routines" / "functions"
COMMENT = "When its claim was found to last much longer than others of the job, once at most; else null."


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.add_column("job_chunk", sa.Column("late_at", sa.DateTime(timezone=True), comment=COMMENT), schema="venn_admit")
    for function in FUNCTIONS:
        op.execute((ROUTINES / f"{function}.sql").read_text())


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for function in reversed(FUNCTIONS):
        op.execute(f"-- squawk-ignore ban-drop-function\nDROP FUNCTION venn_admit.{function}")
    op.drop_column("job_chunk", "late_at", schema="venn_admit")
