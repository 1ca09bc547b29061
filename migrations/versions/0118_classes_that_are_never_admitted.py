"""A decision may say that nothing is certified of its class, or that what was is withdrawn.

Why: it said that the score is below the threshold, of a class that has none. Certificates from before name no such
class, so that decisions by them can be computed again as they were made.
"""

from alembic import op

from venn_admit.store.database.routines import oldest_program

revision = "0118"
down_revision = "0117"
branch_labels = None
depends_on = None

BEFORE = (
    "band below kappa",
    "set not a singleton",
    "policy not certified",
    "group not certified",
    "probability below threshold",
    "score below threshold",
    "q below K",
)
AFTER = (*BEFORE, "certificate withdrawn", "class not certified")


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    know(AFTER)
    # An older one has no words for them.
    op.execute(oldest_program(revision))
    validate()


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.execute(
        "UPDATE venn_admit.decision SET reason = 'score below threshold' "
        "WHERE reason IN ('certificate withdrawn', 'class not certified')"
    )
    op.execute(
        "UPDATE venn_admit.certificate SET document = document - 'withdrawn' - 'uncertified' "
        "WHERE document ?| array['withdrawn', 'uncertified']"
    )
    know(BEFORE)
    op.execute(oldest_program("0116"))
    validate()


def know(reasons: tuple[str, ...]) -> None:
    """Change which reasons there are, for rows that are written from now on."""
    listed = ", ".join(f"'{reason}'" for reason in reasons)
    op.execute(
        "-- squawk-ignore ban-drop-constraint\n"
        "ALTER TABLE venn_admit.decision DROP CONSTRAINT decision_known_reason_check, "
        f"ADD CONSTRAINT decision_known_reason_check CHECK (reason IN ({listed})) NOT VALID"
    )


def validate() -> None:
    """Look at the rows that are there, which blocks no writer, in a transaction of its own."""
    with op.get_context().autocommit_block():
        op.execute("ALTER TABLE venn_admit.decision VALIDATE CONSTRAINT decision_known_reason_check")
