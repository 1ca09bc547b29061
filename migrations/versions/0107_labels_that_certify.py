"""A view tells labels that advance a certificate that stands from those that it has not seen.

Why: `report.selective_accuracy_v3` counts both, so that a dashboard judged a certificate by the labels that made it.
"""

from alembic import op

from venn_admit.store.database.routines import routine_statements

revision = "0107"
down_revision = "0106"
branch_labels = None
depends_on = None

VIEWS = {"decided_point_v2": "venn_admit", "selective_accuracy_v4": "report"}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for name in VIEWS:
        for statement in routine_statements(f"views/{name}"):
            op.execute(statement)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for name, schema in reversed(VIEWS.items()):
        op.execute(f"DROP VIEW {schema}.{name}")
