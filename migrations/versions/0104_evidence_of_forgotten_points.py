"""What labels have shown stays once their points were forgotten.

Why: labels are counted again, by standing certificates from one that is corrected on, and by monitors from a state that
they keep. Those that were forgotten were missing then, so that forgetting points that are wrong let thresholds be
certified which had not been, and ended alarms.
"""

from alembic import op

from venn_admit.store.database.routines import table_statements

revision = "0104"
down_revision = "0103"
branch_labels = None
depends_on = None

IS_KEPT = "Whether points that count were forgotten while it stood, so that nothing but a new monitor ends it."


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for statement in table_statements("tables/forgotten_evidence"):
        op.execute(statement)
    op.execute("ALTER TABLE venn_admit.monitor_alarm ADD COLUMN is_kept boolean NOT NULL DEFAULT FALSE")
    op.execute(f"COMMENT ON COLUMN venn_admit.monitor_alarm.is_kept IS '{IS_KEPT}'")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.execute("-- squawk-ignore ban-drop-column\nALTER TABLE venn_admit.monitor_alarm DROP COLUMN is_kept")
    op.execute("-- squawk-ignore ban-drop-table\nDROP TABLE venn_admit.forgotten_evidence")
