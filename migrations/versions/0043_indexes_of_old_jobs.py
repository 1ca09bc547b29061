"""Whether another job asks for an exemplar is a look-up, and a day's decisions are found wherever they are.

Why: a decision is removed with the last job that asks for it, and without an index each look would read the rows of all
jobs. New decisions take the room of removed ones, so that an index of ranges of pages no longer tells days apart: after
half of the decisions were removed and as many came, a day took eleven times as long. An index of each decision takes
7 MB a million. Both indexes are built without blocking writers, and so is the new constraint checked.
Older programs go on.
"""

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None

ROWS = "job_row_exemplar_id_idx"
DAYS, RANGES_OF_DAYS = "decision_date_idx", "decision_day_idx"
DAY = "((created_at AT TIME ZONE 'UTC')::date)"


def upgrade() -> None:
    # CONCURRENTLY blocks no writer, waits for transactions, and works in none. What an interrupted attempt left is
    # built anew.
    with op.get_context().autocommit_block():
        op.execute("SET statement_timeout = 0")
        op.execute("SET lock_timeout = 0")
        op.execute("ALTER TABLE venn_admit.audit_event VALIDATE CONSTRAINT audit_event_origin_check")
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{ROWS}")
        op.create_index(ROWS, "job_row", ["exemplar_id"], schema="venn_admit", postgresql_concurrently=True)
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{DAYS}")
        op.create_index(DAYS, "decision", [sa.text(DAY)], schema="venn_admit", postgresql_concurrently=True)
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{RANGES_OF_DAYS}")
        op.execute("RESET lock_timeout")
        op.execute("RESET statement_timeout")


def downgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute("SET statement_timeout = 0")
        op.execute("SET lock_timeout = 0")
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{RANGES_OF_DAYS}")
        op.create_index(
            RANGES_OF_DAYS,
            "decision",
            [sa.text(DAY)],
            schema="venn_admit",
            postgresql_using="brin",
            postgresql_with={"pages_per_range": 32, "autosummarize": "on"},
            postgresql_concurrently=True,
        )
        for index in (DAYS, ROWS):
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{index}")
        op.execute("RESET lock_timeout")
        op.execute("RESET statement_timeout")
