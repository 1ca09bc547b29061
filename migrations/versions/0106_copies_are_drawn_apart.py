"""Copies of a point whose label was taken back are found, and comments say what the draws of audits are made of.

Why: a label that was taken back counted again for a chain by a copy of the point, unless it was drawn. Copies shared a
draw, and generations a key; draws from before stay as they are, and what was hashed stands beside them.
"""

from alembic import op

revision = "0106"
down_revision = "0105"
branch_labels = None
depends_on = None

INDEX = "standing_evidence_taken_back_idx"
COMMENTS = {
    "audit_rule.key": (
        "Key of the draws, the same for all rules of a classifier.",
        "Key of the draws, the same for all rules of a generation.",
    ),
    "audit_draw.content": (
        "What of it was hashed: a digest of what it holds, or its id.",
        "What of it was hashed: its id and, before that, a digest of what it holds if there are vectors. Draws from "
        "before copies were drawn apart have the digest alone.",
    ),
}


def upgrade() -> None:
    # It blocks no writer, and works in no transaction. What an interrupted attempt left is built again.
    with op.get_context().autocommit_block():
        op.execute("SET statement_timeout = 0")
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{INDEX}")
        op.execute(
            f"CREATE INDEX CONCURRENTLY {INDEX} ON venn_admit.standing_evidence (chain_id, exemplar_id) "
            "WHERE label IS NULL"
        )
        op.execute("RESET statement_timeout")
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for column, (_, after) in COMMENTS.items():
        op.execute(f"COMMENT ON COLUMN venn_admit.{column} IS '{after}'")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for column, (before, _) in COMMENTS.items():
        op.execute(f"COMMENT ON COLUMN venn_admit.{column} IS '{before}'")
    op.execute(f"DROP INDEX venn_admit.{INDEX}")
