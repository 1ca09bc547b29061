"""What labels have shown a standing certificate stays once their points were forgotten.

Why: a correction counts the labels again from the corrected one on. Those that were forgotten were missing then, so that
forgetting points that are wrong let thresholds be certified which had not been.
"""

from alembic import op

from venn_admit.store.database.routines import table_statements

revision = "0104"
down_revision = "0103"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for statement in table_statements("tables/forgotten_evidence"):
        op.execute(statement)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.execute("-- squawk-ignore ban-drop-table\nDROP TABLE venn_admit.forgotten_evidence")
