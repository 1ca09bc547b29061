"""A decision names one of the known reasons.

Why: pages, tables and charts have words for the reasons that the program knows. Another one in the table, from whatever
wrote it, would reach people without any.
"""

from alembic import op

revision = "0054"
down_revision = "0053"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    # One that an interrupted migration left, or that knows fewer reasons.
    op.execute(
        "-- squawk-ignore ban-drop-constraint\n"
        "ALTER TABLE venn_admit.decision DROP CONSTRAINT IF EXISTS decision_known_reason_check"
    )
    op.execute(
        "ALTER TABLE venn_admit.decision ADD CONSTRAINT decision_known_reason_check CHECK (reason IN ("
        "'band below kappa', 'set not a singleton', 'policy not certified', 'probability below threshold', 'q below K'"
        ")) NOT VALID"
    )
    # Apart, so that decisions can be read and written while those that there are get read.
    with op.get_context().autocommit_block():
        op.execute("ALTER TABLE venn_admit.decision VALIDATE CONSTRAINT decision_known_reason_check")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("ALTER TABLE venn_admit.decision DROP CONSTRAINT decision_known_reason_check")
