"""The confidence of a certificate may be that of its family.

Why: the best of sixteen certificates of the same labels falls short far more often than one does, and the confidence
that all of them hold together could only be read afterwards. Certificates that there are keep theirs.
"""

import sqlalchemy as sa
from alembic import op

from venn_admit.store.database.routines import oldest_program

revision = "0088"
down_revision = "0087"
branch_labels = None
depends_on = None

COMMENT = (
    "Venn-Abers only: whether the confidence is that of the family: this certificate holds together with every one "
    "before it that looked at labels of the classifier."
)


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.add_column("calibrator", sa.Column("family", sa.Boolean(), comment=COMMENT), schema="venn_admit")
    op.execute(
        "-- squawk-ignore constraint-missing-not-valid\n"
        "ALTER TABLE venn_admit.calibrator ADD CONSTRAINT calibrator_family_check "
        "CHECK (family IS NOT TRUE OR (certify IS NOT NULL AND standing IS NOT TRUE))"
    )
    op.execute(oldest_program(revision))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.drop_column("calibrator", "family", schema="venn_admit")
    op.execute(oldest_program("0087"))
