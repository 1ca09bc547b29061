"""A view of the audit ledger.

Why: whoever has to say who changed what wants to ask in SQL, beside the evidence itself, without a key of the service.
One new view: it takes no time, and older programs go on. Readers of schema `report` may read it as they may all others.
"""

from alembic import op

from venn_admit.service.store.database.routines import view_statements

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    for statement in view_statements("audit_v1"):
        op.execute(statement)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP VIEW report.audit_v1")
