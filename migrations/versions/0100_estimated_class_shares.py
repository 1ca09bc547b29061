"""Class shares may be estimated from recent traffic, which needs no labels.

Why: who knows that traffic has the classes in other shares seldom knows in which. The snapshot keeps what was found, in
its certificate; the setting says that it is to be found again at the next calibration.
"""

import sqlalchemy as sa
from alembic import op

from venn_admit.store.database.routines import oldest_program

revision = "0100"
down_revision = "0099"
branch_labels = None
depends_on = None

RULE = (
    "class_shares_estimated IS NOT TRUE OR "
    "(class_shares IS NULL AND certify @> '{predicted}' AND loss IS NULL AND standing IS NOT TRUE)"
)


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.add_column(
        "calibrator",
        sa.Column(
            "class_shares_estimated",
            sa.Boolean(),
            comment="Venn-Abers only: whether class_shares are estimated from recent traffic, which needs no labels, "
            "with how much each may be off.",
        ),
        schema="venn_admit",
    )
    op.execute(
        "-- squawk-ignore constraint-missing-not-valid\n"
        f"ALTER TABLE venn_admit.calibrator ADD CONSTRAINT calibrator_estimated_check CHECK ({RULE})"
    )
    op.execute(oldest_program(revision))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.execute("-- squawk-ignore ban-drop-column\nALTER TABLE venn_admit.calibrator DROP COLUMN class_shares_estimated")
    op.execute(oldest_program("0099"))
