"""A calibration may be asked for the average promise, whose thresholds stand with the policies of certificates.

Why: without a certificate there was the pointwise promise alone, which is no guarantee. Conformal selection gives one
on average from few labels. Its thresholds are on the score, as those of certificates are, and views judge calibration
points by both in the same way.
"""

import sqlalchemy as sa
from alembic import op

from venn_admit.store.database.routines import routine_statements

revision = "0059"
down_revision = "0058"
branch_labels = None
depends_on = None

# Which policy judges calibration points, and that another promise is a change.
CHANGED = ("views/snapshot_point_v1", "views/snapshot_change_v1")
COMMENTS = {
    "thresholds": "Least score or p0 at which a predicted class is admitted; a null among them is never; null if a "
    "certificate was asked for and no policy is certified.",
    "p_value": "The certified policy's p-value, the largest of its classes'.",
    "share": "Share of the evidence, or of the calibration points, that the policy admits.",
    "documents": "Number of documents of evidence: mc and vp, or vp alone in older certificates; for the average "
    "promise, of the calibration points.",
    "document": "The certificate in full: what was asked, each policy tested, and the results of its classes; for the "
    "average promise, what the threshold of each class rests on.",
}
TABLE = "Policy of each snapshot that was asked for a certificate, if one passed, or for the average promise."
EARLIER = {
    "thresholds": "Least score or p0 at which a predicted class is admitted; a null among them is never; null if no "
    "policy is certified.",
    "p_value": "The policy's p-value, the largest of its classes'.",
    "share": "Share of the evidence that the policy admits.",
    "documents": "Number of documents of evidence: mc and vp, or vp alone in older certificates.",
    "document": "The certificate in full: what was asked, each policy tested, and the results of its classes.",
}
EARLIER_TABLE = "What became of the certificate that a snapshot was asked for: the certified policy, if there is one."
POLICY = (
    "((thresholds IS NULL) = (p_value IS NULL){other}) "
    "AND (thresholds IS NULL) = (share IS NULL) AND (thresholds IS NULL) = (bounded IS NULL)"
)
PROMISED = (
    "coalesce(promise, 'pointwise') = 'pointwise' "
    "OR (method = 'venn-abers' AND certify IS NULL AND 1 - alpha = ALL (thresholds))"
)


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.add_column(
        "calibrator",
        sa.Column(
            "promise",
            sa.Text,
            comment="Venn-Abers only: what is promised without a certificate: pointwise or average.",
        ),
        schema="venn_admit",
    )
    alter("calibrator", f"ADD CONSTRAINT calibrator_promised_check CHECK ({PROMISED})")
    alter("calibrator", "ADD CONSTRAINT calibrator_promise_check CHECK (promise IN ('pointwise', 'average'))")
    policy_check(" OR document ->> 'promise' = 'average'")
    comment(TABLE, COMMENTS)
    for view in (*CHANGED, "views/policy_v2"):
        for statement in routine_statements(view):
            op.execute(statement.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))
    oldest_program(revision)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for view in CHANGED:
        for statement in routine_statements(view, of_baseline=True):
            op.execute(statement.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))
    # Thresholds of the average promise have no p-value.
    policy_check("", " NOT VALID")
    comment(EARLIER_TABLE, EARLIER)
    # Its checks go with it.
    op.drop_column("calibrator", "promise", schema="venn_admit")
    oldest_program("0056")


def policy_check(other: str, validity: str = "") -> None:
    alter("certificate", "DROP CONSTRAINT certificate_policy_check")
    alter("certificate", f"ADD CONSTRAINT certificate_policy_check CHECK ({POLICY.format(other=other)}){validity}")


def alter(table: str, what: str) -> None:
    """Change a small table."""
    op.execute(
        f"-- squawk-ignore constraint-missing-not-valid, ban-drop-constraint\nALTER TABLE venn_admit.{table} {what}"
    )


def comment(of_table: str, of_columns: dict[str, str]) -> None:
    op.execute(f"COMMENT ON TABLE venn_admit.certificate IS $said${of_table}$said$")
    for column, said in of_columns.items():
        op.execute(f"COMMENT ON COLUMN venn_admit.certificate.{column} IS $said${said}$said$")


def oldest_program(oldest: str) -> None:
    op.execute(
        f"CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE RETURN '{oldest}'"
    )
