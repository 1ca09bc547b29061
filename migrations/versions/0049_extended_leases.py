"""Extended leases of attempts at a request are in a table of their own.

Why: an attempt keeps its answer in the transaction that stores what the request asks for. That of a calibration sees
the database as it was when it began, and cannot update a row that has changed since, as the row of the request did
whenever its lease was extended. One new table: it takes no time, and older programs go on. They do not see leases that
newer ones have extended: a request that takes longer than its first lease and is sent again to an older program begins
anew there. The attempt of the newer one is rolled back then, if it stores its answer with its effect; otherwise both
have theirs.
"""

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None

BEFORE = "Until when the attempt counts as running; it extends this while its process lives."
AFTER = "Until when the attempt counts as running, unless it has extended its lease."

EXTEND = """
UPDATE venn_admit.idempotent_request
SET leased_until = extended.leased_until
FROM venn_admit.idempotent_lease AS extended
WHERE
    idempotent_request.caller = extended.caller
    AND idempotent_request.idempotency_key = extended.idempotency_key
    AND idempotent_request.attempt = extended.attempt
    AND idempotent_request.leased_until < extended.leased_until
    AND idempotent_request.status IS NULL
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    op.create_table(
        "idempotent_lease",
        sa.Column("caller", sa.Text(), nullable=False, comment="Who sent the request."),
        sa.Column("idempotency_key", sa.Text(), nullable=False, comment="What the caller named it."),
        sa.Column("attempt", sa.Uuid(), nullable=False, comment="The attempt at it."),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=False, comment=BEFORE),
        sa.ForeignKeyConstraint(
            ["caller", "idempotency_key"],
            ["venn_admit.idempotent_request.caller", "venn_admit.idempotent_request.idempotency_key"],
            name=op.f("idempotent_lease_caller_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("caller", "idempotency_key", "attempt", name=op.f("idempotent_lease_pkey")),
        schema="venn_admit",
        comment="Leases that attempts at a request have extended because they take longer than the first lease.",
    )
    _comment(AFTER, before=BEFORE)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute(EXTEND)
    op.drop_table("idempotent_lease", schema="venn_admit")
    _comment(BEFORE, before=AFTER)


def _comment(comment: str, *, before: str) -> None:
    op.alter_column(
        "idempotent_request",
        "leased_until",
        existing_type=sa.DateTime(timezone=True),
        existing_nullable=False,
        existing_comment=before,
        comment=comment,
        schema="venn_admit",
    )
