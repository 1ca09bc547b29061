"""Monitors watch groups: they have a lamp, and views say what each row of a lamp is about.

Why: a certificate may promise something for each group, and a group that falls short shows in no class. What a lamp's
row is about was computed from its number by every view; groups stand in the plan of their monitor, so that one function
says it for all. Plans and states of classes stay as they are.
"""

from alembic import op

from venn_admit.store.database.routines import routine_statements

revision = "0066"
down_revision = "0065"
branch_labels = None
depends_on = None

GIVEN = (
    "functions/watched_v1",
    "views/alarm_row_v2",
    "views/monitor_v2",
    "views/alarm_v2",
    "views/monitor_v1_of_classes",
    "views/alarm_v1_of_classes",
)
TAKEN = ("views/alarm_row_v1", "views/monitor_v1", "views/alarm_v1_of_rows")
LAMPS = ("'promise', 'true_classes', 'groups', 'partitions', 'mix'", "'promise', 'true_classes', 'partitions', 'mix'")
COMMENTS = {
    "COLUMN venn_admit.monitor_reading.lamp": (
        "promise, true_classes, groups, partitions or mix.",
        "promise, true_classes, partitions or mix.",
    ),
    "COLUMN venn_admit.monitor_alarm.lamp": (
        "promise, true_classes, groups, partitions or mix.",
        "promise, true_classes, partitions or mix.",
    ),
    "COLUMN venn_admit.monitor_reading.number": (
        "Number of the class; of a group, its place in the plan; of a partition, its group of q times C, plus the "
        "predicted class.",
        "Number of the class; of a partition, its group of q times C, plus the predicted class.",
    ),
    "COLUMN venn_admit.monitor_alarm.number": (
        "Class, group or partition, as in monitor_reading.",
        "Class or partition, as in monitor_reading.",
    ),
    "TABLE venn_admit.monitor_reading": (
        "What the newest state of each monitor says of each class, group and partition that has labels.",
        "What the newest state of each monitor says of each class and partition that has labels.",
    ),
}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    know_lamps(0)
    replace(*GIVEN)
    op.execute("-- squawk-ignore ban-drop-view\nDROP VIEW venn_admit.alarm_row_v1")
    oldest_program(revision)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    replace(*TAKEN)
    for view in ("report.monitor_v2", "report.alarm_v2", "venn_admit.alarm_row_v2"):
        op.execute(f"-- squawk-ignore ban-drop-view\nDROP VIEW {view}")
    # The lamps of groups follow from the labels, if there is a way back up.
    op.execute("DELETE FROM venn_admit.monitor_reading WHERE lamp = 'groups'")
    op.execute("DELETE FROM venn_admit.monitor_alarm WHERE lamp = 'groups'")
    know_lamps(1)
    op.execute("DROP FUNCTION venn_admit.watched_v1(json, text, integer)")
    oldest_program("0065")


def know_lamps(which: int) -> None:
    """Change which lamps there are, in tables that are small."""
    for table in ("monitor_reading", "monitor_alarm"):
        op.execute(
            f"-- squawk-ignore ban-drop-constraint\nALTER TABLE venn_admit.{table} DROP CONSTRAINT {table}_lamp_check"
        )
        op.execute(
            "-- squawk-ignore constraint-missing-not-valid\n"
            f"ALTER TABLE venn_admit.{table} ADD CONSTRAINT {table}_lamp_check CHECK (lamp IN ({LAMPS[which]}))"
        )
    for what, said in COMMENTS.items():
        op.execute(f"COMMENT ON {what} IS $said${said[which]}$said$")


def replace(*routines: str) -> None:
    for routine in routines:
        for statement in routine_statements(routine):
            op.execute(statement.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))


def oldest_program(oldest: str) -> None:
    op.execute(
        f"CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE RETURN '{oldest}'"
    )
