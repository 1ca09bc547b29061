"""Venn-ADMIT may calibrate without a division into mc and vp.

Why: the share that it admits depends on the division, and the full Venn predictor needs none. Sets and categories of
its points then depend on the point that is decided on, so a snapshot keeps the logits that they are made from. Null
stands for calibrations with a division, so that settings and points stay as they are. `report.band_v1` shows the two
parts of a band, so it leaves out calibrations without them.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

from venn_admit.store.database.routines import oldest_program, routine_statements

revision = "0091"
down_revision = "0090"
branch_labels = None
depends_on = None

SPLIT = "mc or vp"
CHECKS = {
    ("calibrator", "undivided"): "undivided IS NOT TRUE OR method = 'venn-admit'",
    ("calibration_point", "logits"): "logits IS NULL OR (split = 'vp' AND method = 'venn-admit')",
}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.add_column(
        "calibrator",
        sa.Column(
            "undivided",
            sa.Boolean,
            comment="Venn-ADMIT only: whether all points of mc and vp calibrate sets and probabilities alike, so that "
            "nothing is owed to their division.",
        ),
        schema="venn_admit",
    )
    op.add_column(
        "calibration_point",
        sa.Column(
            "logits",
            ARRAY(sa.Double),
            comment="KNN(x) of each class, by which the sets of an undivided calibration change.",
        ),
        schema="venn_admit",
    )
    for (table, name), rule in CHECKS.items():
        op.execute(f"ALTER TABLE venn_admit.{table} ADD CONSTRAINT {table}_{name}_check CHECK ({rule}) NOT VALID")
    say(f"{SPLIT}; vp for all points of a calibration that is undivided.")
    for statement in routine_statements("functions/band_v1_since_0091"):
        op.execute(statement)
    op.execute(oldest_program(revision))
    # Apart, so that points can be read and written while those that there are get read.
    with op.get_context().autocommit_block():
        for table, name in CHECKS:
            op.execute(f"ALTER TABLE venn_admit.{table} VALIDATE CONSTRAINT {table}_{name}_check")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for statement in routine_statements("functions/band_v1", replace=True):
        op.execute(statement)
    say(f"{SPLIT}.")
    op.drop_column("calibration_point", "logits", schema="venn_admit")
    op.drop_column("calibrator", "undivided", schema="venn_admit")
    op.execute(oldest_program("0090"))


def say(comment: str) -> None:
    op.execute(f"COMMENT ON COLUMN venn_admit.calibration_point.split IS '{comment}'")
