"""Views that answer what analysts ask: partitions of any snapshot, rejections, traffic, labels, neighbours.

Why: whoever judges the evidence should not have to know the tables. The quartiles of d, by which partitions are told
apart, are stored with each snapshot, so that a report on a day of decisions need not sort the distances of all
calibrations. The quartiles of the snapshots there are take a second for each million points and lock nothing. Programs
of before would make snapshots without, so they no longer work on this schema.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from venn_admit.service.store.database.routines import function_statements, view_statements

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

ROUTINES = Path(__file__).parents[1] / "routines"
# Each after those that it reads.
PRIVATE = ("snapshot_point_v1", "judged_point_v1")
PRIVATE_FUNCTIONS = ("band_points_v1", "band_thresholds_v1")
NEW = (
    "partition_v2",
    "partition_summary_v1",
    "rejection_v1",
    "traffic_v1",
    "label_v1",
    "label_budget_v1",
    "neighbour_v1",
    "exemplar_influence_v1",
)
FUNCTIONS = ("band_v1", "snapshot_diff_v1")

ADD_QUARTILES = """
INSERT INTO venn_admit.snapshot_quartiles (calibration_id, quartiles)
SELECT
    calibration.id,
    (
        SELECT percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY point.distance)
        FROM venn_admit.calibration_point AS point
        WHERE
            point.calibrator_id = calibration.calibrator_id
            AND venn_admit.is_in_snapshot_v1(calibration.number, point.valid_from, point.valid_until)
    )
FROM venn_admit.calibration
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '60min'")
    op.create_table(
        "snapshot_quartiles",
        sa.Column("calibration_id", sa.BigInteger(), autoincrement=False, nullable=False, comment="The snapshot."),
        sa.Column(
            "quartiles",
            postgresql.ARRAY(sa.Double()),
            nullable=True,
            comment="The three quartiles of d over all points of the snapshot, ascending; null if they have no d.",
        ),
        sa.ForeignKeyConstraint(
            ["calibration_id"],
            ["venn_admit.calibration.id"],
            name=op.f("snapshot_quartiles_calibration_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("calibration_id", name=op.f("snapshot_quartiles_pkey")),
        schema="venn_admit",
        comment="Quartiles of d of each snapshot, by which reports tell partitions apart.",
    )
    op.execute(ADD_QUARTILES)
    for view in PRIVATE:
        op.execute((ROUTINES / "views" / f"{view}.sql").read_text())
    for function in PRIVATE_FUNCTIONS:
        op.execute((ROUTINES / "functions" / f"{function}.sql").read_text())
    for view in NEW:
        for statement in view_statements(view):
            op.execute(statement)
    for function in FUNCTIONS:
        for statement in function_statements(function):
            op.execute(statement)
    _let_programs_work_from("0024")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    _let_programs_work_from("0021")
    for function in reversed(FUNCTIONS):
        op.execute(f"-- squawk-ignore ban-drop-function\nDROP FUNCTION report.{function}")
    for view in reversed(NEW):
        op.execute(f"DROP VIEW report.{view}")
    for function in reversed(PRIVATE_FUNCTIONS):
        op.execute(f"-- squawk-ignore ban-drop-function\nDROP FUNCTION venn_admit.{function}")
    for view in reversed(PRIVATE):
        op.execute(f"DROP VIEW venn_admit.{view}")
    op.drop_table("snapshot_quartiles", schema="venn_admit")


def _let_programs_work_from(revision: str) -> None:
    op.execute(
        "CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE "
        f"RETURN '{revision}'"
    )
