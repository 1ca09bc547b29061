"""A snapshot may be stored and not be in use; what was in use when, and which certificates looked at labels, is kept.

Why: a calibration that admits next to nothing replaced one that worked, and there was no way back. A snapshot that was
never put in use is withheld. The rows of an older one can be opened again, under a number that no snapshot has, so that
the calibrator keeps the number that was given last. And a certificate chosen among many that looked at the same labels
holds with less confidence than each of them.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from venn_admit.store.database.routines import routine_statements

revision = "0061"
down_revision = "0060"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
CHANGED = ("calibration_v2", "calibration_change_v1", "policy_v2", "policy_v3")
VIEWS = (
    "venn_admit.calibration_use_row_v1",
    "report.calibration_use_v1",
    "venn_admit.withheld_row_v1",
    "report.withheld_calibration_v1",
    "venn_admit.certificate_look_row_v1",
    "report.certificate_look_v1",
)
FUNCTIONS = ("prepare_service_v6", "grant_service_v3")
COMMENTS = {
    "state": ("current, retired, or withheld if it was never put in use.", "current or retired."),
    "created_at": ("When it was made.", "When it became current."),
}
# What is in use now, and the certificates that there are.
BEGIN = """
INSERT INTO venn_admit.calibration_use (classifier_id, calibrator_id, calibration_id, reason, created_at)
SELECT
    calibrator.classifier_id,
    calibrator.id,
    calibration.id,
    calibration.reason,
    greatest(calibration.created_at, calibrator.chosen_at)
FROM venn_admit.calibration_in_use_v1 AS in_use
INNER JOIN venn_admit.calibration AS calibration ON in_use.calibration_id = calibration.id
INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
ORDER BY calibration.id
"""
BEGIN_LOOKS = """
INSERT INTO venn_admit.certificate_look (
    classifier_id, calibrator_id, calibration_id, digest, confidence, created_at
)
SELECT
    calibrator.classifier_id,
    calibrator.id,
    calibration.id,
    uuid_send(calibration.revision),
    calibrator.confidence,
    calibration.created_at
FROM venn_admit.certificate AS certificate
INNER JOIN venn_admit.calibration AS calibration ON certificate.calibration_id = calibration.id
INNER JOIN venn_admit.calibrator AS calibrator ON calibration.calibrator_id = calibrator.id
-- The average promise has no confidence.
WHERE calibrator.confidence IS NOT NULL
ORDER BY calibration.id
"""
PREPARE_ROLE = """
DO $block$
BEGIN
    IF to_regrole('venn_admit_service') IS NOT NULL THEN
        PERFORM venn_admit.prepare_service_v6();
    END IF;
END
$block$
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.add_column(
        "calibrator",
        sa.Column(
            "last_number",
            sa.Integer,
            nullable=False,
            server_default="0",
            comment="The number given last: to a snapshot, or to the rows of an older one when they were opened again.",
        ),
        schema="venn_admit",
    )
    op.execute(
        "UPDATE venn_admit.calibrator AS calibrator SET last_number = newest.number FROM (SELECT calibrator_id, "
        "max(number) AS number FROM venn_admit.calibration GROUP BY calibrator_id) AS newest "
        "WHERE calibrator.id = newest.calibrator_id"
    )
    know_states("'current', 'retired', 'withheld'")
    make_tables()
    op.execute(BEGIN)
    op.execute(BEGIN_LOOKS)
    views = (*CHANGED, *(view.partition(".")[2] for view in VIEWS))
    for routine in (*(f"views/{view}" for view in views), *(f"functions/{one}" for one in FUNCTIONS)):
        for statement in routine_statements(routine):
            op.execute(statement.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))
    op.execute(PREPARE_ROLE)
    comment(0)
    oldest_program(revision)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.execute("DROP FUNCTION venn_admit.grant_service_v3(text)")
    op.execute("DROP FUNCTION venn_admit.prepare_service_v6()")
    for view in reversed(VIEWS):
        op.execute(f"DROP VIEW {view}")
    for view in CHANGED:
        for statement in routine_statements(f"views/{view}", of_baseline=True):
            op.execute(statement.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))
    for table in ("certificate_look", "calibration_use", "withheld_calibration"):
        op.drop_table(table, schema="venn_admit")
    op.execute("UPDATE venn_admit.calibration SET state = 'retired' WHERE state = 'withheld'")
    know_states("'current', 'retired'")
    op.drop_column("calibrator", "last_number", schema="venn_admit")
    comment(1)
    oldest_program("0060")


def know_states(states: str) -> None:
    """Let a snapshot be in these states. There are few snapshots."""
    op.execute(
        "-- squawk-ignore ban-drop-constraint\n"
        "ALTER TABLE venn_admit.calibration DROP CONSTRAINT calibration_state_check"
    )
    op.execute(
        "-- squawk-ignore constraint-missing-not-valid\n"
        f"ALTER TABLE venn_admit.calibration ADD CONSTRAINT calibration_state_check CHECK (state IN ({states}))"
    )


def comment(which: int) -> None:
    for column, said in COMMENTS.items():
        op.execute(f"COMMENT ON COLUMN venn_admit.calibration.{column} IS '{said[which]}'")


def oldest_program(oldest: str) -> None:
    op.execute(
        f"CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE RETURN '{oldest}'"
    )


def make_tables() -> None:
    op.create_table(
        "withheld_calibration",
        sa.Column(
            "calibration_id",
            sa.BigInteger,
            sa.ForeignKey(
                "venn_admit.calibration.id", ondelete="CASCADE", name="withheld_calibration_calibration_id_fkey"
            ),
            primary_key=True,
            autoincrement=False,
            comment="The snapshot.",
        ),
        required("in_use_id", sa.BigInteger, "The snapshot that stayed in use, which may be gone by now."),
        required("points", sa.Integer, "Calibration points that both judge; 0 if each was measured on its own."),
        required("share", sa.Double, "Share of them that it would admit."),
        required("share_in_use", sa.Double, "Share of them that the one in use would admit."),
        schema="venn_admit",
        comment="What was found of each snapshot that was not put in use because it admits far less than the one in "
        "use.",
    )
    op.create_table(
        "calibration_use",
        *of_calibrator("calibration_use", "Key; uses are in order of it.", "The snapshot, which may be gone by now."),
        required("created_at", TIME, "When it was put in use.", sa.func.clock_timestamp()),
        sa.Column(
            "origin",
            sa.Text,
            comment="http, command line or schedule; null for those in use when this history was begun.",
        ),
        sa.Column(
            "key_id",
            sa.BigInteger,
            sa.ForeignKey("venn_admit.api_key.id", name="calibration_use_key_id_fkey"),
            comment="The key that was shown; null without one.",
        ),
        sa.Column("subject", sa.Text, comment="Subject of the token that was shown; null without."),
        required("reason", sa.Text, "Why it was put in use."),
        sa.CheckConstraint("origin IN ('http', 'command line', 'schedule')", name=op.f("calibration_use_origin_check")),
        sa.CheckConstraint("key_id IS NULL OR subject IS NULL", name=op.f("calibration_use_who_check")),
        schema="venn_admit",
        comment="Which snapshot each classifier decided with, from when on. Only added to.",
    )
    op.create_table(
        "certificate_look",
        *of_calibrator("certificate_look", "Key.", "The first snapshot with it, which may be gone by now."),
        required("digest", sa.LargeBinary, "BLAKE2b-128 of the points and the outcome."),
        required("confidence", sa.Numeric, "Confidence that was asked for."),
        required("created_at", TIME, "When it looked at the labels.", sa.func.now()),
        sa.UniqueConstraint("calibrator_id", "digest", name=op.f("certificate_look_calibrator_id_digest_key")),
        sa.CheckConstraint("confidence > 0 AND confidence < 1", name=op.f("certificate_look_confidence_check")),
        schema="venn_admit",
        comment="Every certificate that looked at the held-out labels of a classifier, each once. Only added to.",
    )
    for table, column in (
        ("calibration_use", "classifier_id"),
        ("calibration_use", "calibrator_id"),
        ("certificate_look", "classifier_id"),
    ):
        op.create_index(f"{table}_{column}_idx", table, [column], schema="venn_admit")


def of_calibrator(table: str, key: str, snapshot: str) -> list[sa.Column[Any]]:
    return [
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True, comment=key),
        sa.Column(
            "classifier_id",
            sa.Integer,
            sa.ForeignKey("venn_admit.classifier.id", name=f"{table}_classifier_id_fkey"),
            nullable=False,
            comment="The classifier.",
        ),
        sa.Column(
            "calibrator_id",
            sa.Integer,
            sa.ForeignKey("venn_admit.calibrator.id", name=f"{table}_calibrator_id_fkey"),
            nullable=False,
            comment="The calibrator of the snapshot.",
        ),
        required("calibration_id", sa.BigInteger, snapshot),
    ]


def required(name: str, kind: Any, comment: str, default: Any = None) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, comment=comment, server_default=default)
