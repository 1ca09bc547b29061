"""A calibration may be asked for a promise of the mean loss, by what each kind of error costs.

Why: errors cost differently, and a certificate of the share right counts them alike. Null is the 0/1 loss, so the
settings that there are stay as they are.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0065"
down_revision = "0064"
branch_labels = None
depends_on = None

CHECKS = {"loss": "0 <= ALL (loss) AND 1000000000 >= ALL (loss)", "costed": "loss IS NULL OR certify IS NOT NULL"}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.add_column(
        "calibrator",
        sa.Column(
            "loss",
            ARRAY(sa.Numeric()),
            comment="Venn-Abers only: what errors cost: for each true class, a row with the loss of each predicted "
            "class, 0 for itself.",
        ),
        schema="venn_admit",
    )
    for name, rule in CHECKS.items():
        op.execute(
            "-- squawk-ignore constraint-missing-not-valid\n"
            f"ALTER TABLE venn_admit.calibrator ADD CONSTRAINT calibrator_{name}_check CHECK ({rule})"
        )
    oldest_program(revision)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.execute("-- squawk-ignore ban-drop-column\nALTER TABLE venn_admit.calibrator DROP COLUMN loss")
    oldest_program("0063")


def oldest_program(oldest: str) -> None:
    op.execute(
        f"CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE RETURN '{oldest}'"
    )
