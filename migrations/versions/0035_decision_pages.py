"""Pages of decisions are found by snapshot and outcome.

Why: whoever lists the newest decisions of a classifier, of a snapshot, or those that were admitted, read all decisions
that are newer, of whichever classifier. The index is built without blocking writers, and older programs go on.
"""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

PAGES = "decision_page_idx"


def upgrade() -> None:
    # CONCURRENTLY blocks no writer, and works in no transaction. What an interrupted attempt left is built anew.
    with op.get_context().autocommit_block():
        op.execute("SET statement_timeout = 0")
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{PAGES}")
        op.create_index(
            PAGES,
            "decision",
            ["calibration_id", sa.text("(decision IS NOT NULL)"), "id"],
            schema="venn_admit",
            postgresql_concurrently=True,
        )
        op.execute("RESET statement_timeout")


def downgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{PAGES}")
