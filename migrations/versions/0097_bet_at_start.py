"""Half of what the gamblers of a chain have may be bet once, on the labels that are there when it begins.

Why: a certificate that stands admitted much less at its start than one made once by the same labels. The wealth of a
threshold then has an eighth number, and the chain says what is foretold of each stake. Chains that there are go on.
"""

from alembic import op

from venn_admit.store.database.routines import oldest_program

revision = "0097"
down_revision = "0096"
branch_labels = None
depends_on = None

WEALTH = "Wealth of each gambler, threshold after threshold"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    of_the_last = "; the eighth, if there is one, bet once on the labels at the start"
    op.execute(f"COMMENT ON COLUMN venn_admit.standing_state.wealth IS '{WEALTH}{of_the_last}.'")
    op.execute(oldest_program(revision))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    # The mean of the other seven stays what it was; a bet that was won is kept in the largest wealth.
    op.execute(
        "UPDATE venn_admit.standing_state SET wealth = ARRAY(SELECT one.wealth * 0.875 FROM unnest(wealth) "
        "WITH ORDINALITY AS one (wealth, place) WHERE one.place % 8 <> 0 ORDER BY one.place) "
        "WHERE cardinality(wealth) = 8 * cardinality(most)"
    )
    op.execute(f"COMMENT ON COLUMN venn_admit.standing_state.wealth IS '{WEALTH}.'")
    op.execute(oldest_program("0096"))
