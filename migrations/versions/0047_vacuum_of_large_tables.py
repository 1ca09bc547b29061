"""Large tables are vacuumed and counted by the time a twentieth or a fiftieth of their rows has changed.

Why: by Postgres' defaults, a fifth and a tenth must change first. Of ten million decisions that is two million rows
that views read from the table although the index has them, and a million that the planner does not know of, such as
all of a classifier that came last. Each statement takes a lock that lets rows be read and written.
Older programs go on.
"""

from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None

TABLES = (
    "abers_evidence",
    "admit_evidence",
    "approximation",
    "calibration_point",
    "decision",
    "exemplar",
    "job_row",
    "label_event",
    "neighbours",
)
SHARES = {
    "autovacuum_vacuum_scale_factor": "0.05",
    "autovacuum_vacuum_insert_scale_factor": "0.05",
    "autovacuum_analyze_scale_factor": "0.02",
}


def upgrade() -> None:
    op.execute("SET lock_timeout = '5s'")
    settings = ", ".join(f"{name} = {share}" for name, share in SHARES.items())
    for table in TABLES:
        op.execute(f"ALTER TABLE venn_admit.{table} SET ({settings})")
    op.execute("RESET lock_timeout")


def downgrade() -> None:
    for table in TABLES:
        op.execute(f"ALTER TABLE venn_admit.{table} RESET ({', '.join(SHARES)})")
