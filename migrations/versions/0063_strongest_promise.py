"""A calibration may be asked for the strongest promise that its labels show, which is the default from now on.

Why: which promise can be had is known only once labels were tested. The setting names both kinds of classes, as they
are asked for; what the policy of a snapshot covers stands with its certificate, and alarms mean harm by that.
"""

from alembic import op

from venn_admit.store.database.routines import routine_statements

revision = "0063"
down_revision = "0062"
branch_labels = None
depends_on = None

KINDS = "views/promised_kinds_v1"
CHANGED = ("views/monitor_v1", "views/alarm_v1")
# They say the same of what was certified before.
POLICIES = ("views/policy_v2", "views/policy_v3", "views/policy_test_v2")
PROMISED = (
    "coalesce(promise, 'pointwise') = 'pointwise' "
    "OR (method = 'venn-abers' AND 1 - alpha = ALL (thresholds) AND {certify})"
)
STRONGEST = "certify IS NOT DISTINCT FROM CASE promise WHEN 'strongest' THEN '{predicted,true}'::text[] END"
COMMENT = "Venn-Abers only: what is promised {of}."


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    check("promised", PROMISED.format(certify=STRONGEST))
    check("promise", "promise IN ('strongest', 'pointwise', 'average')")
    comment(COMMENT.format(of="unless certify says it: strongest, average or pointwise"))
    for statement in routine_statements(KINDS):
        op.execute(statement)
    replace_views(*CHANGED, *POLICIES)
    oldest_program(revision)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    replace_views(*CHANGED, of_baseline=True)
    op.execute("-- squawk-ignore ban-drop-view\nDROP VIEW venn_admit.promised_kinds_v1")
    # Snapshots of the strongest promise stay.
    check("promised", PROMISED.format(certify="certify IS NULL"), " NOT VALID")
    check("promise", "promise IN ('pointwise', 'average')", " NOT VALID")
    comment(COMMENT.format(of="without a certificate: pointwise or average"))
    oldest_program("0061")


def check(name: str, rule: str, validity: str = "") -> None:
    """Replace a check of a small table."""
    for what in (f"DROP CONSTRAINT calibrator_{name}_check", f"ADD CONSTRAINT calibrator_{name}_check CHECK ({rule})"):
        suffix = validity if what.startswith("ADD") else ""
        op.execute(
            "-- squawk-ignore constraint-missing-not-valid, ban-drop-constraint\n"
            f"ALTER TABLE venn_admit.calibrator {what}{suffix}"
        )


def replace_views(*views: str, of_baseline: bool = False) -> None:
    for view in views:
        for statement in routine_statements(view, of_baseline=of_baseline):
            op.execute(statement.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))


def comment(said: str) -> None:
    op.execute(f"COMMENT ON COLUMN venn_admit.calibrator.promise IS $said${said}$said$")


def oldest_program(oldest: str) -> None:
    op.execute(
        f"CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE RETURN '{oldest}'"
    )
