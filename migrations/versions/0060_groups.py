"""Certificates may be asked for groups, whose thresholds they have, and a prediction may be rejected for its group.

Why: an attribute's values are further kinds of class. The policy of such a certificate has a threshold for each group
in each predicted class, and what decides from it must know them: older programs do not.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from venn_admit.store.database.routines import routine_statements

revision = "0060"
down_revision = "0059"
branch_labels = None
depends_on = None

REASONS = (
    "'band below kappa', 'set not a singleton', 'policy not certified', 'probability below threshold', "
    "'score below threshold', 'q below K'"
)
CLASSES = "certify IN ('{predicted}', '{true}', '{predicted,true}')"
KINDS = (
    "array_to_string(certify, ',') ~ '^(predicted|true|(predicted[*])?group:[^,]+)"
    "(,(predicted|true|(predicted[*])?group:[^,]+))*$'"
)
ASKED = {
    CLASSES: "Classes that a certificate is asked for: predicted, true or both; null for the pointwise promise.",
    KINDS: "What a certificate is asked for: predicted, true, group:ATTRIBUTE, predicted*group:ATTRIBUTE; null for the "
    "pointwise promise.",
}
ROUTINES = (
    "functions/group_value_v1",
    "functions/reaches_groups_v1",
    "views/judged_point_v1_by_group",
    "views/policy_v3",
    "views/policy_test_v2",
)


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.add_column(
        "certificate",
        sa.Column(
            "groups",
            JSONB,
            comment="Least score of each group, by attribute and predicted class, which must be reached too; null if "
            "none were asked for.",
        ),
        schema="venn_admit",
    )
    ask_for(KINDS)
    for routine in ROUTINES:
        for statement in routine_statements(routine):
            op.execute(statement)
    oldest_program(revision)
    know_reasons(REASONS.replace("'probability below", "'group not certified', 'probability below"))
    with op.get_context().autocommit_block():
        op.execute("ALTER TABLE venn_admit.calibrator VALIDATE CONSTRAINT calibrator_certify_check")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    know_reasons(REASONS)
    for view in ("policy_test_v2", "policy_v3"):
        op.execute(f"-- squawk-ignore ban-drop-view\nDROP VIEW report.{view}")
    for statement in routine_statements("views/judged_point_v1"):
        op.execute(statement)
    op.execute("DROP FUNCTION venn_admit.reaches_groups_v1(jsonb, integer, double precision, jsonb)")
    op.execute("DROP FUNCTION venn_admit.group_value_v1(jsonb)")
    op.drop_column("certificate", "groups", schema="venn_admit")
    ask_for(CLASSES)
    oldest_program("0059")


def ask_for(kinds: str) -> None:
    """Change what the settings of calibrators may ask for; they are few. Rows from before are not read again."""
    op.execute(
        "-- squawk-ignore ban-drop-constraint\n"
        "ALTER TABLE venn_admit.calibrator DROP CONSTRAINT calibrator_certify_check"
    )
    op.execute(f"ALTER TABLE venn_admit.calibrator ADD CONSTRAINT calibrator_certify_check CHECK ({kinds}) NOT VALID")
    op.execute(f"COMMENT ON COLUMN venn_admit.calibrator.certify IS $said${ASKED[kinds]}$said$")


def know_reasons(reasons: str) -> None:
    op.execute(
        "-- squawk-ignore ban-drop-constraint\n"
        "ALTER TABLE venn_admit.decision DROP CONSTRAINT IF EXISTS decision_known_reason_check"
    )
    op.execute(
        f"ALTER TABLE venn_admit.decision ADD CONSTRAINT decision_known_reason_check CHECK (reason IN ({reasons})) "
        "NOT VALID"
    )
    # Apart, so that decisions can be read and written while those that there are get read.
    with op.get_context().autocommit_block():
        op.execute("ALTER TABLE venn_admit.decision VALIDATE CONSTRAINT decision_known_reason_check")


def oldest_program(oldest: str) -> None:
    op.execute(
        f"CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE RETURN '{oldest}'"
    )
