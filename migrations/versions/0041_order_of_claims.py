"""When a chunk was last claimed, by which jobs of several classifiers take turns.

Why: a message no longer names the chunk that is computed. Whoever receives one claims what is next in turn, and that
depends on which classifier was served last. The column has no default, so nothing is rewritten; the indexes are built
without blocking writers, and that of chunks holds only those that are claimed from now on. The column comes first, so
an attempt that follows an interrupted one may find it. Older programs go on: they claim the chunk that a message names,
and leave the column as it is.
"""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None

COMMENT = "When it was last claimed; null if it was not, or by a version of the program before 0041."
CLAIMS, FINISHED = "job_chunk_claimed_idx", "job_finished_idx"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("ALTER TABLE venn_admit.job_chunk ADD COLUMN IF NOT EXISTS claimed_at timestamptz")
    op.execute(f"COMMENT ON COLUMN venn_admit.job_chunk.claimed_at IS '{COMMENT}'")
    # CONCURRENTLY blocks no writer, waits for transactions, and works in none. What an interrupted attempt left is
    # built anew.
    with op.get_context().autocommit_block():
        op.execute("SET statement_timeout = 0")
        op.execute("SET lock_timeout = 0")
        _drop_indexes()
        op.create_index(
            CLAIMS,
            "job_chunk",
            ["job_id", "claimed_at"],
            schema="venn_admit",
            postgresql_where=sa.text("claimed_at IS NOT NULL"),
            postgresql_concurrently=True,
        )
        op.create_index(
            FINISHED,
            "job",
            ["classifier_id", sa.text("(kind = 'score')"), "finished_at"],
            schema="venn_admit",
            postgresql_where=sa.text("finished_at IS NOT NULL"),
            postgresql_concurrently=True,
        )
        op.execute("RESET lock_timeout")
        op.execute("RESET statement_timeout")


def downgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute("SET lock_timeout = 0")
        _drop_indexes()
        op.execute("RESET lock_timeout")
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_column("job_chunk", "claimed_at", schema="venn_admit")


def _drop_indexes() -> None:
    for index in (CLAIMS, FINISHED):
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{index}")
