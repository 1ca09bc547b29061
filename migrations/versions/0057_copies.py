"""Exemplars have a digest of their vector and logits alone, by which copies are found.

Why: copies of held-out points are one unit of evidence and share a split, and none of them should train, whatever their
ids and documents are. The digest of the content names the document too. Where there is no document the two are the
same, and the new one is null.

Rows of documents get theirs as a program stores exemplars or labels of their classifier: SQL cannot compute it, and
programs from before leave it out while servers are upgraded one after the other. An index has the rows that lack it.
"""

import sqlalchemy as sa
from alembic import op

from venn_admit.store.database.routines import routine_statements

revision = "0057"
down_revision = "0056"
branch_labels = None
depends_on = None

INDEXES = {
    "exemplar_copy_idx": "(coalesce(point_digest, content_digest), split) WHERE split <> 'scored'",
    "exemplar_without_point_digest_idx": "(classifier_id, id) WHERE document_id IS NOT NULL AND point_digest IS NULL",
}
# The role has rights on single columns of this table.
GRANT = """
DO $block$
BEGIN
    IF to_regrole('venn_admit_service') IS NOT NULL THEN
        GRANT UPDATE (point_digest) ON venn_admit.exemplar TO venn_admit_service;
    END IF;
END
$block$
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.add_column(
        "exemplar",
        sa.Column(
            "point_digest",
            sa.LargeBinary,
            comment="BLAKE2b-128 of vector and logits alone, which copies share; null if it is the content digest, as "
            "there is no document, or was not computed yet.",
        ),
        schema="venn_admit",
        # An interrupted migration left it.
        if_not_exists=True,
    )
    for function in ("prepare_service_v5", "grant_service_v2"):
        op.execute(f"-- squawk-ignore ban-drop-function\nDROP FUNCTION IF EXISTS venn_admit.{function}")
        for statement in routine_statements(f"functions/{function}"):
            op.execute(statement)
    op.execute(GRANT)
    # The rows are many, and are read and written meanwhile.
    with op.get_context().autocommit_block():
        for name, rows in INDEXES.items():
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{name}")
            op.execute(f"CREATE INDEX CONCURRENTLY {name} ON venn_admit.exemplar {rows}")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP FUNCTION venn_admit.grant_service_v2(text)")
    op.execute("DROP FUNCTION venn_admit.prepare_service_v5()")
    # Its indexes go with it.
    op.drop_column("exemplar", "point_digest", schema="venn_admit")
