"""Monitors read the labels that are new, and an exemplar's decisions are found without its snapshots.

Why: an update of a monitor read all labels since its start, and became slower with each of them. It now goes on from
the last state before what changed, so states say by which event their last document counts, and monitors which events
need not be read again. States are computed from the ledger, and those that are stored lack the event, so they go; the
next update makes them again. The indexes find the documents and the decisions of a label; they are built without
blocking writers. Programs of before would store states without the event, so they no longer work on this schema.

The view on decisions says that an exemplar is its classifier's, so that reports on one classifier look up the decisions
of its exemplars alone.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

VIEWS = Path(__file__).parents[1] / "routines" / "views"
DOCUMENTS, DECISIONS = "exemplar_classifier_id_document_id_idx", "decision_exemplar_id_calibration_id_idx"


def upgrade() -> None:
    # CONCURRENTLY blocks no writer, and works in no transaction. What an interrupted attempt left is built anew.
    with op.get_context().autocommit_block():
        op.execute("SET statement_timeout = 0")
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{DOCUMENTS}")
        op.create_index(
            op.f(DOCUMENTS),
            "exemplar",
            ["classifier_id", "document_id"],
            schema="venn_admit",
            postgresql_where=sa.text("document_id IS NOT NULL"),
            postgresql_concurrently=True,
        )
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{DECISIONS}")
        op.create_index(
            op.f(DECISIONS),
            "decision",
            ["exemplar_id", "calibration_id"],
            schema="venn_admit",
            postgresql_concurrently=True,
        )
        op.execute("RESET statement_timeout")
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.execute("DELETE FROM venn_admit.monitor_state")
    op.execute("-- squawk-ignore adding-required-field\nALTER TABLE venn_admit.monitor_state ADD event bigint NOT NULL")
    op.execute(
        "COMMENT ON COLUMN venn_admit.monitor_state.event IS 'Label event by which the last of these documents counts.'"
    )
    _comment_seen(
        "Newest label event, of any classifier, that was seen; settled once those of awaited are over.",
        before="Newest label event, of any classifier, when labels were last read.",
    )
    op.add_column(
        "monitor",
        sa.Column(
            "awaited",
            postgresql.ARRAY(sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
            comment="Virtual ids of the transactions that were under way when seen_event was.",
        ),
        schema="venn_admit",
    )
    op.add_column(
        "monitor",
        sa.Column(
            "settled_event",
            sa.BigInteger(),
            server_default=sa.text("0"),
            nullable=False,
            comment=(
                "Last label event that need not be read again: no transaction can add one before it, or a decision."
            ),
        ),
        schema="venn_admit",
    )
    op.execute("UPDATE venn_admit.monitor SET settled_event = after_event, seen_event = after_event")
    op.execute((VIEWS / "decided_point_v1_since_0029.sql").read_text())
    _let_programs_work_from("0029")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    _let_programs_work_from("0024")
    before = (VIEWS / "decided_point_v1.sql").read_text()
    op.execute(before.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))
    op.drop_column("monitor", "settled_event", schema="venn_admit")
    op.drop_column("monitor", "awaited", schema="venn_admit")
    _comment_seen(
        "Newest label event, of any classifier, when labels were last read.",
        before="Newest label event, of any classifier, that was seen; settled once those of awaited are over.",
    )
    op.execute("DELETE FROM venn_admit.monitor_state")
    op.drop_column("monitor_state", "event", schema="venn_admit")
    with op.get_context().autocommit_block():
        for index in (DECISIONS, DOCUMENTS):
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{index}")


def _comment_seen(comment: str, *, before: str) -> None:
    op.alter_column(
        "monitor",
        "seen_event",
        existing_type=sa.BigInteger(),
        existing_nullable=False,
        existing_server_default=sa.text("0"),
        existing_comment=before,
        comment=comment,
        schema="venn_admit",
    )


def _let_programs_work_from(revision: str) -> None:
    op.execute(
        "CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE "
        f"RETURN '{revision}'"
    )
