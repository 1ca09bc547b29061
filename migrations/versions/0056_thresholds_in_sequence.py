"""Certificates bound scores and are tested on all of mc and vp; a prediction may be rejected for its score.

Why: thresholds are tested in an order that `knn` alone fixes, so that every label of mc and vp is evidence. Older
certificates were tested on vp, and their thresholds bound p0; they stay as they are.
"""

from alembic import op

from venn_admit.store.database.routines import routine_statements

revision = "0056"
down_revision = "0054"
branch_labels = None
depends_on = None

REASONS = (
    "'band below kappa', 'set not a singleton', 'policy not certified', 'probability below threshold', 'q below K'"
)
# What is admitted of calibration points, by what the thresholds bound.
JUDGING = ("views/judged_point_v1", "views/cell_v1")
COMMENTS = {
    "thresholds": "Least score or p0 at which a predicted class is admitted; a null among them is never; null if no "
    "policy is certified.",
    "bounded": "What the thresholds bound: score, or lower for p0 in older certificates; null without a policy.",
    "mc_share": "Share of mc that the policy admits, in older certificates, proposed on it.",
    "share": "Share of the evidence that the policy admits.",
    "documents": "Number of documents of evidence: mc and vp, or vp alone in older certificates.",
    "documents_needed": "Documents of evidence with which a policy is likely to pass; null if one is certified, or "
    "none would.",
    "document": "The certificate in full: what was asked, each policy tested, and the results of its classes.",
}
EARLIER = {
    "thresholds": "Least p0 at which a predicted class is admitted; a null among them is never; null if no policy is "
    "certified.",
    "mc_share": "Share of mc that the certified policy admits.",
    "vp_share": "Share of vp that the certified policy admits.",
    "vp_documents": "Number of documents of vp.",
    "documents_needed": "Documents of vp with which a policy is likely to pass; null if one is certified, or none "
    "would.",
    "document": "The certificate in full: what was asked, each proposal, and the results of its classes.",
}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    # What they say of vp is not so of new certificates.
    for view in ("policy_proposal_v1", "policy_v1"):
        op.execute(f"-- squawk-ignore ban-drop-view\nDROP VIEW report.{view}")
    alter("DROP CONSTRAINT certificate_policy_check")
    alter("RENAME COLUMN vp_share TO share")
    alter("RENAME COLUMN vp_documents TO documents")
    alter("ADD COLUMN bounded text")
    op.execute("UPDATE venn_admit.certificate SET bounded = 'lower' WHERE thresholds IS NOT NULL")
    alter("ADD CONSTRAINT certificate_bounded_check CHECK (bounded IN ('score', 'lower'))")
    alter(
        "ADD CONSTRAINT certificate_policy_check CHECK ((thresholds IS NULL) = (p_value IS NULL) "
        "AND (thresholds IS NULL) = (share IS NULL) AND (thresholds IS NULL) = (bounded IS NULL))"
    )
    comment(COMMENTS)
    for view in ("views/policy_v2", "views/policy_test_v1", *JUDGING):
        for statement in routine_statements(view):
            op.execute(statement)
    know_reasons(REASONS.replace("'q below K'", "'score below threshold', 'q below K'"))
    oldest_program(revision)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    know_reasons(REASONS)
    op.execute("DROP VIEW report.policy_test_v1")
    op.execute("DROP VIEW report.policy_v2")
    for view in JUDGING:
        for statement in routine_statements(view, of_baseline=True):
            op.execute(statement.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))
    alter("DROP CONSTRAINT certificate_policy_check")
    alter("DROP COLUMN bounded")
    alter("RENAME COLUMN share TO vp_share")
    alter("RENAME COLUMN documents TO vp_documents")
    # Newer certificates say nothing of mc.
    alter(
        "ADD CONSTRAINT certificate_policy_check CHECK ((thresholds IS NULL) = (p_value IS NULL) "
        "AND (thresholds IS NULL) = (mc_share IS NULL) AND (thresholds IS NULL) = (vp_share IS NULL)) NOT VALID"
    )
    comment(EARLIER)
    for view in ("views/policy_proposal_v1", "views/policy_v1"):
        for statement in routine_statements(view, of_baseline=True):
            op.execute(statement)
    oldest_program("0053")


def alter(what: str) -> None:
    """Change the table of certificates, which has a row for each snapshot that was asked for one: it is small."""
    op.execute(
        "-- squawk-ignore renaming-column, ban-drop-column, constraint-missing-not-valid, ban-drop-constraint\n"
        f"ALTER TABLE venn_admit.certificate {what}"
    )


def comment(comments: dict[str, str]) -> None:
    for column, said in comments.items():
        op.execute(f"COMMENT ON COLUMN venn_admit.certificate.{column} IS $said${said}$said$")


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
