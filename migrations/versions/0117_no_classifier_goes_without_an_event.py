"""The row of a classifier can be deleted only once its deletion has begun, which the audit ledger says.

Why: the service's role deletes rows of most tables, so it could take a classifier without labels away row by row, and
no event said so.
"""

from alembic import op

from venn_admit.store.database.routines import routine_statements

revision = "0117"
down_revision = "0116"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for statement in routine_statements("functions/refuse_unmarked_deletion_v1"):
        op.execute(statement)
    op.execute(
        "CREATE TRIGGER classifier_refuse_deletion BEFORE DELETE ON venn_admit.classifier FOR EACH ROW "
        "WHEN (old.deleting_since IS NULL) EXECUTE FUNCTION venn_admit.refuse_unmarked_deletion_v1()"
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.execute("DROP TRIGGER classifier_refuse_deletion ON venn_admit.classifier")
    op.execute("DROP FUNCTION venn_admit.refuse_unmarked_deletion_v1()")
