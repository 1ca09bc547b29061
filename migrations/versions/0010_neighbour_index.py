"""An index of which neighbour lists hold a training exemplar.

Why: of the points stored, only those whose lists hold an exemplar that was removed or relabelled are looked at.
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # CONCURRENTLY blocks no writer, and works in no transaction. What an interrupted attempt left is built anew.
    with op.get_context().autocommit_block():
        op.execute("SET statement_timeout = 0")
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS venn_admit.neighbours_neighbour_ids_idx")
        op.create_index(
            op.f("neighbours_neighbour_ids_idx"),
            "neighbours",
            ["neighbour_ids"],
            schema="venn_admit",
            postgresql_using="gin",
            postgresql_concurrently=True,
        )
        op.execute("RESET statement_timeout")


def downgrade() -> None:
    with op.get_context().autocommit_block():
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS venn_admit.neighbours_neighbour_ids_idx")
