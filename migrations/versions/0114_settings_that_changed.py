"""What a snapshot changed names losses, class shares, and whether it stands, is of a family, or is undivided.

Why: `snapshot_change_v1` knew the settings that there were when it was made, so that reports said that nothing had
changed between two calibrations which promise different things.
"""

from alembic import op

from venn_admit.store.database.routines import routine_statements

revision = "0114"
down_revision = "0113"
branch_labels = None
depends_on = None


def upgrade() -> None:
    replace("snapshot_change_v1_since_0114")


def downgrade() -> None:
    replace("snapshot_change_v1")


def replace(view: str) -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for statement in routine_statements(f"views/{view}", replace=True):
        op.execute(statement)
