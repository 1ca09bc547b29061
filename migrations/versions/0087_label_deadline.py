"""Monitors may count documents by their decisions, once a label deadline has passed.

Why: where errors are labelled sooner than right predictions, documents that count by their labels look worse than they
are, and lamps are lit far more often than their level. Monitors that are running go on as before.
"""

import sqlalchemy as sa
from alembic import op

from venn_admit.store.database.routines import oldest_program

revision = "0087"
down_revision = "0084"
branch_labels = None
depends_on = None

SCHEMA = "venn_admit"
DEADLINE = (
    "Time after the first decision on a document within which labels count, once it has passed; null if documents "
    "count by their labels."
)
NUMBERS = {
    "after_decision": (sa.BigInteger(), "Last decision that does not count, if there is a label deadline."),
    "passed_decision": (sa.BigInteger(), "Last decision up to which all label deadlines have passed."),
    "decided": (sa.Integer(), "Points decided on first between these two decisions."),
}
CHECKS = {
    "label_deadline": "label_deadline > interval '0'",
    "decided": "passed_decision >= after_decision AND decided >= 0",
}
FORMER_EVENT = "Label event by which the last of these documents counts."
EVENT = f"{FORMER_EVENT[:-1]}; if there is a label deadline, the first decision on it."


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.add_column("monitor", sa.Column("label_deadline", sa.Interval(), comment=DEADLINE), schema=SCHEMA)
    for name, (kind, comment) in NUMBERS.items():
        column = sa.Column(name, kind, nullable=False, server_default=sa.text("0"), comment=comment)
        op.add_column("monitor", column, schema=SCHEMA)
    for name, condition in CHECKS.items():
        op.execute(
            "-- squawk-ignore constraint-missing-not-valid\n"
            f"ALTER TABLE venn_admit.monitor ADD CONSTRAINT monitor_{name}_check CHECK ({condition})"
        )
    op.execute(f"COMMENT ON COLUMN venn_admit.monitor_state.event IS '{EVENT}'")
    op.execute(oldest_program(revision))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    # Their documents count by their labels from now on, and are counted again.
    op.execute(
        "DELETE FROM venn_admit.monitor_state AS state USING venn_admit.monitor AS monitor "
        "WHERE state.monitor_id = monitor.id AND monitor.label_deadline IS NOT NULL"
    )
    for name in ("label_deadline", *NUMBERS):
        op.drop_column("monitor", name, schema=SCHEMA)
    op.execute(f"COMMENT ON COLUMN venn_admit.monitor_state.event IS '{FORMER_EVENT}'")
    op.execute(oldest_program("0077"))
