"""Pages of decisions are found by outcome first, then by snapshot.

Why: an index that begins with the snapshot looked as good for the decision on one exemplar as the key does, as long as
the statistics did not know the snapshot, so that each look-up of a job read all decisions of its snapshot. The new
index is built before the old one goes, without blocking writers. Older programs go on: they read a page of decisions
more slowly, by the key.
"""

import sqlalchemy as sa
from alembic import op

revision = "0051"
down_revision = "0050"
branch_labels = None
depends_on = None

OLD = "decision_page_idx"
NEW = "decision_outcome_idx"
OUTCOME = "(decision IS NOT NULL)"


def upgrade() -> None:
    _replace(OLD, NEW, [OUTCOME, "calibration_id", "id"])


def downgrade() -> None:
    _replace(NEW, OLD, ["calibration_id", OUTCOME, "id"])


def _replace(old: str, new: str, columns: list[str]) -> None:
    # CONCURRENTLY blocks no writer, waits for transactions, and works in none. What an interrupted attempt left is
    # built again.
    with op.get_context().autocommit_block():
        op.execute("SET statement_timeout = 0")
        op.execute("SET lock_timeout = 0")
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{new}")
        op.create_index(
            new, "decision", [sa.text(column) for column in columns], schema="venn_admit", postgresql_concurrently=True
        )
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{old}")
        op.execute("RESET lock_timeout")
        op.execute("RESET statement_timeout")
