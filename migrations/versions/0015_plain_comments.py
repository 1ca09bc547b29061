"""Comments of tables and columns in plain English.

Why: the comments are the reference of the schema. Some were hard to understand, and some no longer said everything:
`job.error` also tells why a job was cancelled. Only comments change, so the migration takes no time.
"""

from pathlib import Path

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

COMMENTS = Path(__file__).parents[1] / "comments"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute((COMMENTS / "0015.sql").read_text())


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute((COMMENTS / "before_0015.sql").read_text())
