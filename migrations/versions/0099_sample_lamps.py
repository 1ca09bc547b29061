"""Monitors have lamps of whether labelled points are a random sample of those that were decided on.

Why: all that monitors and certificates say rests on that, and it was believed. Monitors that are running go on without
such lamps, since the points that they counted so far were compared with none.
"""

from alembic import op

from venn_admit.store.database.routines import oldest_program, routine_statements

revision = "0099"
down_revision = "0098"
branch_labels = None
depends_on = None

OF_SAMPLE = ("labelled_classes", "labelled_scores")
BEFORE = (
    "promise",
    "true_classes",
    "groups",
    "partitions",
    "mix",
    "early_promise",
    "early_true_classes",
    "early_groups",
)
LAMPS = "promise, true_classes, groups, the early_ warnings of these, partitions"
COMMENTS = {
    "monitor_reading.lamp": (f"{LAMPS} or mix.", f"{LAMPS}, mix, labelled_classes or labelled_scores."),
    "monitor_alarm.lamp": (f"{LAMPS} or mix.", f"{LAMPS}, mix, labelled_classes or labelled_scores."),
    "monitor_reading.points": (
        "Admitted points of these with a label; for mix, documents.",
        "Admitted points of these with a label; for mix, documents; for labelled_classes and labelled_scores, pairs.",
    ),
    "monitor_reading.correct": (
        "Admitted points whose prediction is the label; null for mix.",
        "Admitted points whose prediction is the label; null for mix, labelled_classes and labelled_scores.",
    ),
    "monitor_reading.lower_bound": (
        "Lower bound of the share right that holds at all times; null for mix.",
        "Lower bound of the share right that holds at all times; null for mix, labelled_classes and labelled_scores.",
    ),
}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    know_lamps((*BEFORE, *OF_SAMPLE))
    for column, (_, comment) in COMMENTS.items():
        op.execute(f"COMMENT ON COLUMN venn_admit.{column} IS '{comment}'")
    for view in ("monitor_v2_since_0099", "alarm_row_v2_since_0099", "alarm_v2_since_0099"):
        replace(view)
    op.execute(oldest_program(revision))


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for view in ("monitor_v2", "alarm_row_v2", "alarm_v2"):
        replace(view)
    op.execute("DELETE FROM venn_admit.monitor_reading WHERE lamp LIKE 'labelled%'")
    op.execute("DELETE FROM venn_admit.monitor_alarm WHERE lamp LIKE 'labelled%'")
    know_lamps(BEFORE)
    for column, (comment, _) in COMMENTS.items():
        op.execute(f"COMMENT ON COLUMN venn_admit.{column} IS '{comment}'")
    op.execute(oldest_program("0097"))


def know_lamps(lamps: tuple[str, ...]) -> None:
    """Change which lamps there are."""
    listed = ", ".join(f"'{lamp}'" for lamp in lamps)
    for table in ("monitor_reading", "monitor_alarm"):
        name = f"{table}_lamp_check"
        op.execute(f"-- squawk-ignore ban-drop-constraint\nALTER TABLE venn_admit.{table} DROP CONSTRAINT {name}")
        op.execute(f"ALTER TABLE venn_admit.{table} ADD CONSTRAINT {name} CHECK (lamp IN ({listed})) NOT VALID")
        op.execute(
            f"-- squawk-ignore constraint-missing-not-valid\nALTER TABLE venn_admit.{table} VALIDATE CONSTRAINT {name}"
        )


def replace(view: str) -> None:
    for statement in routine_statements(f"views/{view}", replace=True):
        op.execute(statement)
