"""Points are drawn to be audited when they are decided on, and labels of drawn points count by their probability.

Why: labels of reviewed points were lost for calibration, because nobody knew with which probability a point had come to
be reviewed. Decisions and labels from before have no draw, and stay as they are.
"""

import sqlalchemy as sa
from alembic import op

from venn_admit.store.database.routines import oldest_program, routine_statements, table_statements

revision = "0094"
down_revision = "0091"
branch_labels = None
depends_on = None

LEDGER = "Append-only ledger of labels."
SELECTION = "(by a person or by a rule)."


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for statement in table_statements("tables/audits"):
        op.execute(statement)
    op.add_column(
        "standing_evidence",
        sa.Column(
            "weight",
            sa.Double,
            comment="That of a drawn point: the smallest probability of its predicted class divided by its own; null "
            "for 1.",
        ),
        schema="venn_admit",
    )
    op.execute(
        "-- squawk-ignore constraint-missing-not-valid\nALTER TABLE venn_admit.standing_evidence "
        "ADD CONSTRAINT standing_evidence_weight_check CHECK (weight BETWEEN 0 AND 1)"
    )
    know_selections(
        "'random', 'review', 'selected'",
        f"random, review if it was drawn with a known probability, or selected {SELECTION}",
    )
    op.execute(
        f"COMMENT ON TABLE venn_admit.label_event IS '{LEDGER} Selected points do not represent the traffic, and never "
        "calibrate.'"
    )
    replace("audit_draw_v1", "standing_label_v1", "label_v1_since_0094")
    op.execute(oldest_program(revision))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.execute("DROP VIEW report.audit_draw_v1")
    op.execute("DROP VIEW venn_admit.standing_label_v1")
    replace("label_v1")
    op.execute("UPDATE venn_admit.label_event SET selection = 'selected' WHERE selection = 'review'")
    know_selections("'random', 'selected'", f"random, or selected {SELECTION}")
    op.execute(
        f"COMMENT ON TABLE venn_admit.label_event IS '{LEDGER} Only random ones calibrate: selected points do not "
        "represent the traffic.'"
    )
    op.execute("-- squawk-ignore ban-drop-column\nALTER TABLE venn_admit.standing_evidence DROP COLUMN weight")
    op.drop_table("audit_draw", schema="venn_admit")
    op.drop_table("audit_rule", schema="venn_admit")
    op.execute(oldest_program("0091"))


def know_selections(known: str, comment: str) -> None:
    """Change which ways there are to choose labels."""
    op.execute(
        "-- squawk-ignore ban-drop-constraint\n"
        "ALTER TABLE venn_admit.label_event DROP CONSTRAINT label_event_selection_check"
    )
    op.execute(
        "ALTER TABLE venn_admit.label_event ADD CONSTRAINT label_event_selection_check "
        f"CHECK (selection IN ({known})) NOT VALID"
    )
    op.execute(
        "-- squawk-ignore constraint-missing-not-valid\n"
        "ALTER TABLE venn_admit.label_event VALIDATE CONSTRAINT label_event_selection_check"
    )
    op.execute(f"COMMENT ON COLUMN venn_admit.label_event.selection IS '{comment}'")


def replace(*views: str) -> None:
    for view in views:
        for statement in routine_statements(f"views/{view}", replace=True):
            op.execute(statement)
