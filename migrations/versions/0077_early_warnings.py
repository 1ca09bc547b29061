"""Lamps of shares right have early warnings.

Why: games that start once use good times up, so harm that comes after them is seen late or not at all. Monitors that
are started from now on have games that start again with every document. Those that are running keep their plans and
states, byte for byte, until they are started again.
"""

from alembic import op

from venn_admit.store.database.routines import routine_statements

revision = "0077"
down_revision = "0075"
branch_labels = None
depends_on = None

TABLES = ("monitor_reading", "monitor_alarm")
GIVEN = (
    "functions/watched_v2",
    "views/alarm_row_v2_since_0077",
    "views/monitor_v2_since_0077",
    "views/alarm_v2_since_0077",
    "views/monitor_v1_since_0077",
    "views/alarm_v1_since_0077",
)
TAKEN = (
    "functions/watched_v1",
    "views/alarm_row_v2",
    "views/monitor_v2",
    "views/alarm_v2",
    "views/monitor_v1_of_classes",
    "views/alarm_v1_of_classes",
)
FORMER = "'promise', 'true_classes', 'groups', 'partitions', 'mix'"
LAMPS = f"{FORMER}, 'early_promise', 'early_true_classes', 'early_groups'"
FORMER_COMMENT = "promise, true_classes, groups, partitions or mix."
COMMENT = "promise, true_classes, groups, the early_ warnings of these, partitions or mix."


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    know_lamps(LAMPS, COMMENT)
    replace(*GIVEN)
    op.execute("-- squawk-ignore ban-drop-function\nDROP FUNCTION venn_admit.watched_v1(json, text, integer)")
    oldest_program(revision)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    replace(*TAKEN)
    op.execute("DROP FUNCTION venn_admit.watched_v2(json, text, integer)")
    op.execute("DELETE FROM venn_admit.monitor_reading WHERE lamp LIKE 'early%'")
    op.execute("DELETE FROM venn_admit.monitor_alarm WHERE lamp LIKE 'early%'")
    # Their games start once from now on, and are played again from the labels.
    op.execute(
        "DELETE FROM venn_admit.monitor_state AS state USING venn_admit.monitor AS monitor "
        "WHERE state.monitor_id = monitor.id AND monitor.plan ->> 'from_starts' IS NOT NULL"
    )
    op.execute(
        "UPDATE venn_admit.monitor SET plan = CAST(CAST(plan AS jsonb) - 'from_starts' AS json) "
        "WHERE plan ->> 'from_starts' IS NOT NULL"
    )
    know_lamps(FORMER, FORMER_COMMENT)
    oldest_program("0075")


def know_lamps(lamps: str, comment: str) -> None:
    """Change which lamps there are, in tables that are small."""
    for table in TABLES:
        op.execute(
            f"-- squawk-ignore ban-drop-constraint\nALTER TABLE venn_admit.{table} DROP CONSTRAINT {table}_lamp_check"
        )
        op.execute(
            "-- squawk-ignore constraint-missing-not-valid\n"
            f"ALTER TABLE venn_admit.{table} ADD CONSTRAINT {table}_lamp_check CHECK (lamp IN ({lamps}))"
        )
        op.execute(f"COMMENT ON COLUMN venn_admit.{table}.lamp IS '{comment}'")


def replace(*routines: str) -> None:
    for routine in routines:
        for statement in routine_statements(routine):
            op.execute(statement.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))


def oldest_program(oldest: str) -> None:
    op.execute(
        f"CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE RETURN '{oldest}'"
    )
