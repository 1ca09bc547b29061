"""A role that may read schema `report`, and views that tell the methods of calibration apart.

Why: analysts and reporting tools should read the evidence in SQL and nothing else. The views were made for one method
of calibration; with a second one, some of their rows meant something else than their columns say. They now show the
method venn-admit alone, as they did before there was another, and new versions show both, with the evidence of each.

A role belongs to the server, and a user who may not create one can migrate as well: `venn-admit db grant-reader` makes
the role later. The indexes of days are built without blocking writers. Nothing is taken away, so older programs go on.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

from venn_admit.service.store.database.routines import view_statements

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

ROUTINES = Path(__file__).parents[1] / "routines"
FUNCTIONS = ("prepare_reader_v1", "grant_reader_v1")
# Each after those that it reads.
PRIVATE = ("decided_point_v1", "job_summary_v1")
NEW = ("calibration_v2", "decision_v2", "job_v2", "selective_accuracy_v3")
# What each was before.
REDEFINED = {
    "calibration_v1_since_0023": "calibration_v1_since_0017",
    "decision_v1_since_0023": "decision_v1_since_0017",
    "job_v1_since_0023": "job_v1",
    "partition_v1_since_0023": "partition_v1",
    "selective_accuracy_v2_since_0023": "selective_accuracy_v2",
    "selective_accuracy_v1_since_0023": "selective_accuracy_v1",
}

# The condition of `is_in_snapshot_v1`, which is called since 0016.
WRITTEN_OUT = """point.valid_from <= calibration.number
                AND (point.valid_until IS NULL OR point.valid_until > calibration.number)"""
CALLED = "venn_admit.is_in_snapshot_v1(calibration.number, point.valid_from, point.valid_until)"

PREPARE_READER = """
DO $block$
BEGIN
    PERFORM venn_admit.prepare_reader_v1();
EXCEPTION
    WHEN insufficient_privilege THEN
        RAISE WARNING 'this user may not create the role venn_admit_reader: a user who may can do so later';
END
$block$
"""

# The role stays: other databases of the server may use it, and it has members.
TAKE_RIGHTS_BACK = """
DO $block$
DECLARE
    owner text := (SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'report');
BEGIN
    IF to_regrole('venn_admit_reader') IS NOT NULL THEN
        EXECUTE format(
            'ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA report REVOKE SELECT ON TABLES FROM venn_admit_reader',
            owner
        );
        EXECUTE format(
            'ALTER DEFAULT PRIVILEGES FOR ROLE %s IN SCHEMA report REVOKE EXECUTE ON FUNCTIONS FROM venn_admit_reader',
            owner
        );
        REVOKE ALL ON ALL FUNCTIONS IN SCHEMA report FROM venn_admit_reader;
        REVOKE ALL ON ALL TABLES IN SCHEMA report FROM venn_admit_reader;
        REVOKE ALL ON SCHEMA report FROM venn_admit_reader;
    END IF;
END
$block$
"""


def upgrade() -> None:
    # CONCURRENTLY blocks no writer, and works in no transaction: it comes first, and what follows is done whole.
    with op.get_context().autocommit_block():
        op.execute("SET statement_timeout = 0")
        for table in ("decision", "label_event"):
            # What an interrupted attempt left is built anew.
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{table}_day_idx")
            op.create_index(
                f"{table}_day_idx",
                table,
                [sa.text("((created_at AT TIME ZONE 'UTC')::date)")],
                schema="venn_admit",
                postgresql_using="brin",
                postgresql_with={"pages_per_range": 32, "autosummarize": "on"},
                postgresql_concurrently=True,
            )
        op.execute("RESET statement_timeout")
    op.execute("SET LOCAL lock_timeout = '5s'")
    for view in PRIVATE:
        op.execute((ROUTINES / "views" / f"{view}.sql").read_text())
    for view in (*NEW, *REDEFINED):
        for statement in view_statements(view):
            op.execute(statement)
    for function in FUNCTIONS:
        op.execute((ROUTINES / "functions" / f"{function}.sql").read_text())
    op.execute(PREPARE_READER)


def downgrade() -> None:
    with op.get_context().autocommit_block():
        for table in ("label_event", "decision"):
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS venn_admit.{table}_day_idx")
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute(TAKE_RIGHTS_BACK)
    for function in reversed(FUNCTIONS):
        op.execute(f"-- squawk-ignore ban-drop-function\nDROP FUNCTION venn_admit.{function}")
    for redefined, before in reversed(REDEFINED.items()):
        sql = (ROUTINES / "views" / f"{before}.sql").read_text().replace(WRITTEN_OUT, CALLED)
        op.execute(sql.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))
        _remove_comments(redefined.removesuffix("_since_0023"))
    for view in reversed(NEW):
        op.execute(f"DROP VIEW report.{view}")
    for view in reversed(PRIVATE):
        op.execute(f"DROP VIEW venn_admit.{view}")


def _remove_comments(view: str) -> None:
    """Remove the comments of a view and its columns, which views had none of before."""
    statements = list(view_statements(f"{view}_since_0023"))[1:]
    for statement in statements:
        op.execute(f"{statement.partition(' IS ')[0]} IS NULL")
