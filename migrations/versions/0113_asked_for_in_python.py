"""Ledger and history tell what was asked for in Python from what was asked for on the command line.

Why: a use case knew no other shell than HTTP, so that both said `command line` of calibrations, generations and
removals that the Python interface asked for. A program from before cannot list an event that says `python`.
"""

from alembic import op

from venn_admit.store.database.routines import oldest_program

revision = "0113"
down_revision = "0112"
branch_labels = None
depends_on = None

BEFORE = ("http", "command line", "schedule")
AFTER = ("http", "command line", "python", "schedule")
TABLES = ("audit_event", "calibration_use")
# Before and after.
OF_EVENT = ("http, command line, or schedule.", "http, command line, python or schedule.")
OF_USE = (
    "http, command line or schedule; null for those in use when this history was begun.",
    "http, command line, python or schedule; null for those in use when this history was begun.",
)
COMMENTS = {
    "venn_admit.audit_event.origin": OF_EVENT,
    "report.audit_v1.origin": OF_EVENT,
    "venn_admit.calibration_use.origin": OF_USE,
    "report.calibration_use_v1.origin": OF_USE,
}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    know(AFTER)
    for column, (_, comment) in COMMENTS.items():
        op.execute(f"COMMENT ON COLUMN {column} IS '{comment}'")
    op.execute(oldest_program(revision))
    validate()


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.execute("UPDATE venn_admit.audit_event SET origin = 'command line' WHERE origin = 'python'")
    op.execute("UPDATE venn_admit.calibration_use SET origin = 'command line' WHERE origin = 'python'")
    know(BEFORE)
    for column, (comment, _) in COMMENTS.items():
        op.execute(f"COMMENT ON COLUMN {column} IS '{comment}'")
    op.execute(oldest_program("0111"))
    validate()


def know(origins: tuple[str, ...]) -> None:
    """Change which origins there are, for rows that are written from now on."""
    listed = ", ".join(f"'{origin}'" for origin in origins)
    for table in TABLES:
        name = f"{table}_origin_check"
        op.execute(
            "-- squawk-ignore ban-drop-constraint\n"
            f"ALTER TABLE venn_admit.{table} DROP CONSTRAINT {name}, "
            f"ADD CONSTRAINT {name} CHECK (origin IN ({listed})) NOT VALID"
        )


def validate() -> None:
    """Look at the rows that are there, which blocks no writer, in a transaction of its own."""
    with op.get_context().autocommit_block():
        for table in TABLES:
            op.execute(f"ALTER TABLE venn_admit.{table} VALIDATE CONSTRAINT {table}_origin_check")
