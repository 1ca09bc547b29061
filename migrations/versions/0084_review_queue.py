"""Reviewers have a queue: points to label, claims on them that expire, and the labels that each of them gave.

Why: several people who label what was rejected did so twice, or waited for one another, and where their labels differed
only the last one was known. The ledger of labels stays what counts.
"""

from alembic import op

from venn_admit.store.database.routines import table_statements

revision = "0084"
down_revision = "0077"
branch_labels = None
depends_on = None

TABLES = ("review_queue", "review_point", "review_label")


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for statement in table_statements("tables/reviews"):
        op.execute(statement)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for table in reversed(TABLES):
        op.drop_table(table, schema="venn_admit")
