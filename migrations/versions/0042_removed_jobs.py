"""Old jobs can be removed, with the decisions that no other job asks for.

Why: every decision was kept for ever, so the tables only grew. A removed job keeps its row, which says what was asked
for and when it was removed; its rows, its chunks and its decisions go. What is no longer there is recorded by its key,
so that whoever asks for a removed decision is told so. A job that was removed does not hold its snapshot any longer.

Rows stay as they are: the new columns have constant defaults, and the constraints of jobs are checked on a row for each
job. That of the ledger is checked by the next migration, which locks nobody out. Older programs go on; of a removed job
they show no chunks.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from venn_admit.service.store.database.routines import view_statements

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None

VIEWS = Path(__file__).parents[1] / "routines" / "views"

ACTIONS = (
    "What was asked for: the operationId of the route, authenticate, create_key, revoke_key, create_generation, "
    "switch_generation{} state_extractor{}."
)
ORIGIN = "http{} command line{}."
TARGET = "The classifier{} that the path or command names."
SNAPSHOT = "Snapshot to score with; null for jobs of other kinds{}."
LET_GO = ", and if it was let go after the job was removed"

SCORE_BEFORE = (
    "(kind = 'score') = (calibration_id IS NOT NULL AND weighted IS NOT NULL AND require_full_match IS NOT NULL)"
)
SCORE = (
    "(kind = 'score') = (weighted IS NOT NULL AND require_full_match IS NOT NULL) "
    "AND (kind = 'score' OR calibration_id IS NULL) "
    "AND (kind <> 'score' OR calibration_id IS NOT NULL OR removed_at IS NOT NULL)"
)
REMOVED = (
    "num_nulls(removed_at, removed_because, rows_done) IN (0, 3) AND removed_because IN ('age', 'request') "
    "AND (removed_at IS NULL OR state <> 'running') AND (removed_at IS NOT NULL OR NOT is_emptied)"
)

FORGET_REMOVED = """
UPDATE venn_admit.recalibration_request SET job_id = NULL
WHERE job_id IN (SELECT id FROM venn_admit.job WHERE removed_at IS NOT NULL);
DELETE FROM venn_admit.job_row WHERE job_id IN (SELECT id FROM venn_admit.job WHERE removed_at IS NOT NULL);
DELETE FROM venn_admit.job_chunk WHERE job_id IN (SELECT id FROM venn_admit.job WHERE removed_at IS NOT NULL);
DELETE FROM venn_admit.job WHERE removed_at IS NOT NULL;
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    _add_columns()
    _replace_constraint("score", SCORE)
    _replace_constraint("removed", REMOVED)
    _replace_reference("ON DELETE SET NULL")
    for name, column, condition in (
        ("job_age_idx", "finished_at", "removed_at IS NULL"),
        ("job_removal_idx", "id", "removed_at IS NOT NULL AND NOT is_emptied"),
    ):
        op.execute(
            "-- squawk-ignore require-concurrent-index-creation\n"
            f"CREATE INDEX {name} ON venn_admit.job ({column}) WHERE {condition}"
        )
    _create_removals()
    _replace_origins("'http', 'command line', 'schedule'")
    _comment("job", "calibration_id", sa.BigInteger(), True, SNAPSHOT.format(LET_GO), SNAPSHOT.format(""))
    _comment_ledger(upward=True)
    op.execute(_replacing((VIEWS / "job_summary_v1_since_0042.sql").read_text()))
    for view in ("job_v2_since_0042", "kept_since_v1", "audit_v1_since_0042"):
        for statement in view_statements(view):
            op.execute(statement)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP VIEW report.kept_since_v1")
    op.execute("DROP VIEW report.audit_v1")
    for statement in view_statements("audit_v1"):
        op.execute(statement)
    # What was removed is not known as such any longer, and neither are its jobs.
    for statement in FORGET_REMOVED.split(";\n")[:-1]:
        op.execute(statement)
    op.execute("UPDATE venn_admit.audit_event SET origin = 'command line' WHERE origin = 'schedule'")
    _comment_ledger(upward=False)
    _replace_origins("'http', 'command line'")
    op.execute("ALTER TABLE venn_admit.audit_event VALIDATE CONSTRAINT audit_event_origin_check")
    op.drop_table("decision_removal", schema="venn_admit")
    op.execute("DROP VIEW report.job_v1")
    op.execute("DROP VIEW report.job_v2")
    op.execute("DROP VIEW venn_admit.job_summary_v1")
    op.execute((VIEWS / "job_summary_v1.sql").read_text())
    for view in ("job_v2_since_0036", "job_v1_since_0023"):
        for statement in view_statements(view):
            op.execute(statement)
    op.drop_index("job_removal_idx", "job", schema="venn_admit")
    op.drop_index("job_age_idx", "job", schema="venn_admit")
    _replace_reference("")
    op.execute("ALTER TABLE venn_admit.job DROP CONSTRAINT job_removed_check")
    _replace_constraint("score", SCORE_BEFORE)
    _comment("job", "calibration_id", sa.BigInteger(), True, SNAPSHOT.format(""), SNAPSHOT.format(LET_GO))
    for column in ("is_emptied", "rows_done", "removed_because", "removed_at"):
        op.drop_column("job", column, schema="venn_admit")


def _add_columns() -> None:
    for column in (
        sa.Column(
            "removed_at",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="When its rows, chunks and decisions were removed; null while they are kept.",
        ),
        sa.Column(
            "removed_because",
            sa.Text(),
            nullable=True,
            comment="Why: age, by the setting, or request, because somebody asked for it; null while they are kept.",
        ),
        sa.Column(
            "rows_done",
            sa.Integer(),
            nullable=True,
            comment="Rows that were done when it was removed; null while its chunks are kept.",
        ),
        sa.Column(
            "is_emptied",
            sa.Boolean(),
            server_default=sa.text("false"),
            nullable=False,
            comment="Whether all rows and chunks of a removed job are deleted.",
        ),
    ):
        op.add_column("job", column, schema="venn_admit")


def _replace_constraint(name: str, condition: str) -> None:
    op.execute(
        f"-- squawk-ignore ban-drop-constraint\nALTER TABLE venn_admit.job DROP CONSTRAINT IF EXISTS job_{name}_check"
    )
    op.execute(
        "-- squawk-ignore constraint-missing-not-valid\n"
        f"ALTER TABLE venn_admit.job ADD CONSTRAINT job_{name}_check CHECK ({condition})"
    )


def _replace_reference(on_delete: str) -> None:
    op.execute(
        "-- squawk-ignore ban-drop-constraint\nALTER TABLE venn_admit.job DROP CONSTRAINT job_calibration_id_fkey"
    )
    op.execute(
        "-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid\n"
        "ALTER TABLE venn_admit.job ADD CONSTRAINT job_calibration_id_fkey "
        f"FOREIGN KEY (calibration_id) REFERENCES venn_admit.calibration (id) {on_delete}".rstrip()
    )


def _replace_origins(origins: str) -> None:
    op.execute(
        "-- squawk-ignore ban-drop-constraint\n"
        "ALTER TABLE venn_admit.audit_event DROP CONSTRAINT audit_event_origin_check"
    )
    op.execute(
        "ALTER TABLE venn_admit.audit_event ADD CONSTRAINT audit_event_origin_check "
        f"CHECK (origin IN ({origins})) NOT VALID"
    )


def _create_removals() -> None:
    op.create_table(
        "decision_removal",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False, comment="Key."),
        sa.Column("classifier_id", sa.Integer(), nullable=False, comment="Classifier that had decided."),
        sa.Column(
            "removed_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When they were removed.",
        ),
        sa.Column(
            "reason",
            sa.Text(),
            nullable=False,
            comment="age, by the setting; or request, because somebody asked for it.",
        ),
        sa.Column("decisions", postgresql.INT8MULTIRANGE(), nullable=False, comment="Keys of the decisions."),
        sa.Column("decision_count", sa.Integer(), nullable=False, comment="Number of the decisions."),
        sa.Column(
            "decided_until",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="When the newest of the decisions was made.",
        ),
        sa.CheckConstraint("reason IN ('age', 'request')", name=op.f("decision_removal_reason_check")),
        sa.CheckConstraint("decision_count > 0", name=op.f("decision_removal_decision_count_check")),
        sa.ForeignKeyConstraint(
            ["classifier_id"],
            ["venn_admit.classifier.id"],
            name=op.f("decision_removal_classifier_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("decision_removal_pkey")),
        schema="venn_admit",
        comment="Decisions that were removed, a row for each transaction that did.",
    )
    op.create_index(
        op.f("decision_removal_classifier_id_idx"), "decision_removal", ["classifier_id"], schema="venn_admit"
    )
    op.create_index(
        op.f("decision_removal_decisions_idx"),
        "decision_removal",
        ["decisions"],
        schema="venn_admit",
        postgresql_using="gist",
    )


def _comment_ledger(*, upward: bool) -> None:
    for column, now, before in (
        (
            "action",
            ACTIONS.format(",", ", delete_job or prune_jobs"),
            ACTIONS.format(" or", ""),
        ),
        ("origin", ORIGIN.format(",", ", or schedule"), ORIGIN.format(" or", "")),
        ("target", TARGET.format(", key or job"), TARGET.format(" or key")),
    ):
        told, other = (now, before) if upward else (before, now)
        _comment("audit_event", column, sa.Text(), column == "target", told, other)


def _comment(
    table: str, column: str, kind: "sa.types.TypeEngine[object]", nullable: bool, comment: str, before: str
) -> None:
    op.alter_column(
        table,
        column,
        existing_type=kind,
        existing_nullable=nullable,
        existing_comment=before,
        comment=comment,
        schema="venn_admit",
    )


def _replacing(view: str) -> str:
    return view.replace("CREATE VIEW", "CREATE OR REPLACE VIEW")
