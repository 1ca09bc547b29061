"""Which programs work on this schema.

Why: while servers are upgraded one after the other, programs of the version before still run on a schema that has
gained things. A migration that takes away or changes what they use replaces this function; one that only adds leaves
it as it is.
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("CREATE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE RETURN '0012'")
    op.execute(
        "COMMENT ON FUNCTION venn_admit.oldest_program() IS "
        "'The head revision of the oldest program that works on this schema.'"
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP FUNCTION venn_admit.oldest_program()")
