"""A certificate may be asked for in traffic that has the classes in other shares than the calibration data.

Why: what is promised of a predicted class depends on how frequent the classes are, and where somebody knows that they
are not as in the calibration data, the promise can be made for what they are. Null stands for certificates of traffic
like the calibration data, so that settings stay as they are.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

from venn_admit.store.database.routines import oldest_program

revision = "0090"
down_revision = "0088"
branch_labels = None
depends_on = None

COLUMNS = ("class_shares", "class_shares_within")
CHECKS = {
    "class_shares": "0 <= ALL (class_shares) AND 1 >= ALL (class_shares)",
    "class_shares_within": "class_shares_within >= 0",
    "declared": "(class_shares IS NULL) = (class_shares_within IS NULL) AND (class_shares IS NULL "
    "OR (certify @> '{predicted}' AND loss IS NULL AND standing IS NOT TRUE))",
}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for column in (
        sa.Column(
            "class_shares",
            ARRAY(sa.Numeric()),
            comment="Venn-Abers only: the share of each true class in traffic, if it has the classes in other shares "
            "than the calibration data, one for each class, in their order.",
        ),
        sa.Column(
            "class_shares_within",
            sa.Numeric(),
            comment="Venn-Abers only: by how much each of class_shares may be off; the promise holds for all shares "
            "that are as near.",
        ),
    ):
        op.add_column("calibrator", column, schema="venn_admit")
    for name, rule in CHECKS.items():
        op.execute(
            "-- squawk-ignore constraint-missing-not-valid\n"
            f"ALTER TABLE venn_admit.calibrator ADD CONSTRAINT calibrator_{name}_check CHECK ({rule})"
        )
    op.execute(oldest_program(revision))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for column in COLUMNS:
        op.execute(f"-- squawk-ignore ban-drop-column\nALTER TABLE venn_admit.calibrator DROP COLUMN {column}")
    op.execute(oldest_program("0088"))
