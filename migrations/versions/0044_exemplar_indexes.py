"""Indexes by exemplar on every table that refers to one.

Why: an exemplar that is deleted is looked for in each of these tables, and their keys begin with something else, so
that each look read a whole table. Indexes of what holds rows are built without blocking writers. That of a partitioned
table cannot be: it holds no rows and takes an instant, but waits for whoever writes, and writers wait behind it. So it
gives up after five seconds, as while something large is ingested; the migration is then run again and goes on from
there. Older programs go on.
"""

from collections.abc import Iterator

import sqlalchemy as sa
from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None

TABLES = ("approximation", "calibration_point", "support_change")
PARTITIONED = "exemplar_vector"

CHILDREN = """
SELECT c.relname
FROM pg_inherits AS i
INNER JOIN pg_class AS c ON i.inhrelid = c.oid
WHERE i.inhparent = to_regclass(:parent)
ORDER BY c.oid
"""
ATTACHED = "SELECT EXISTS (SELECT FROM pg_inherits WHERE inhrelid = to_regclass(:index))"


def upgrade() -> None:
    # CONCURRENTLY blocks no writer, waits for transactions, and works in none. What an interrupted attempt left is
    # built anew.
    with op.get_context().autocommit_block():
        op.execute("SET statement_timeout = 0")
        _index_partitions()
        op.execute("SET lock_timeout = 0")
        for table in TABLES:
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{table}_exemplar_id_idx")
            op.create_index(
                op.f(f"{table}_exemplar_id_idx"),
                table,
                ["exemplar_id"],
                schema="venn_admit",
                postgresql_concurrently=True,
            )
        op.execute("RESET lock_timeout")
        op.execute("RESET statement_timeout")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    # That of a partitioned table cannot be dropped without a lock; nothing has to be read for it.
    for table in (PARTITIONED, *reversed(TABLES)):
        op.execute(
            "-- squawk-ignore require-concurrent-index-deletion\n"
            f"DROP INDEX IF EXISTS venn_admit.{table}_exemplar_id_idx"
        )


def _index_partitions() -> None:
    """Build the index of each partition by itself, and put them together; a classifier made later has its own."""
    op.execute("SET lock_timeout = '5s'")
    op.execute(
        "-- squawk-ignore require-concurrent-index-creation\n"
        f"CREATE INDEX IF NOT EXISTS {PARTITIONED}_exemplar_id_idx ON ONLY venn_admit.{PARTITIONED} (exemplar_id)"
    )
    if op.get_context().as_sql:
        return
    for classifier in _children(PARTITIONED):
        if _is_attached(f"{classifier}_exemplar_id_idx"):
            continue
        op.execute(
            f"CREATE INDEX IF NOT EXISTS {classifier}_exemplar_id_idx ON ONLY venn_admit.{classifier} (exemplar_id)"
        )
        for side in _children(classifier):
            if _is_attached(f"{side}_exemplar_id_idx"):
                continue
            op.execute("SET lock_timeout = 0")
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{side}_exemplar_id_idx")
            op.execute(f"CREATE INDEX CONCURRENTLY {side}_exemplar_id_idx ON venn_admit.{side} (exemplar_id)")
            op.execute("SET lock_timeout = '5s'")
            _attach(classifier, side)
        _attach(PARTITIONED, classifier)


def _attach(parent: str, child: str) -> None:
    op.execute(f"ALTER INDEX venn_admit.{parent}_exemplar_id_idx ATTACH PARTITION venn_admit.{child}_exemplar_id_idx")


def _children(parent: str) -> Iterator[str]:
    yield from op.get_bind().execute(sa.text(CHILDREN), {"parent": f"venn_admit.{parent}"}).scalars().all()


def _is_attached(index: str) -> bool:
    return bool(op.get_bind().execute(sa.text(ATTACHED), {"index": f"venn_admit.{index}"}).scalar_one())
