"""Classifiers with logits only, whose points have neither neighbours nor distances.

Why: the method venn-abers with the network's score decides on the logits alone, so nobody should have to hand over and
store vectors for it. What follows from vectors may be null from now on, all of it together or none of it, which checks
see to. The checks are added without a look at the rows and validated afterwards, while readers and writers go on; the
tables are locked for an instant. Views show null where there is nothing. Programs of before read these columns as never
null, so they no longer work on this schema. The way back reads the tables under their locks, to forbid null again.
"""

from collections.abc import Mapping

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

NULLABLE = (
    "classifier.dimension",
    "classifier.neighbour_count",
    "calibration.knn_parameters_id",
    "calibration_point.match_count",
    "calibration_point.distance",
    "decision.match_count",
    "decision.distance",
    "decision.logits",
)
CHECKS = {
    "classifier": "(dimension IS NULL) = (neighbour_count IS NULL)",
    "calibration_point": (
        "(match_count IS NULL) = (distance IS NULL) AND (match_count IS NOT NULL OR (bin = 0 AND admit_set IS NULL))"
    ),
    "decision": (
        "num_nulls(match_count, distance, logits) IN (0, 3) "
        "AND (match_count IS NOT NULL OR NOT (weighted OR require_full_match))"
    ),
}
SHARES_BEFORE = "knn_share > 0 AND mc_share > 0 AND knn_share + mc_share < 1"
SHARES = "knn_share >= 0 AND (knn_share = 0) = (dimension IS NULL) AND mc_share > 0 AND knn_share + mc_share < 1"

# Of each column: what it was said to be before, and what is added now.
COMMENTS = {
    "classifier.dimension": ("D, length of an exemplar vector", "null if it has logits only"),
    "classifier.neighbour_count": ("K, neighbours of the KNN approximation", "null if it has logits only"),
    "classifier.knn_share": ("Share of held-out labelled points in split knn", "0 if it has logits only"),
    "calibration.knn_parameters_id": (
        "KNN parameters that it rests on",
        "null if the classifier has logits only",
    ),
    "calibration_point.match_count": (
        "q, number of consecutive nearest neighbours that match the prediction",
        "null without vectors",
    ),
    "calibration_point.bin": (
        "Bin of q under the bin edges of the calibrator",
        "0, the only one, without vectors",
    ),
    "calibration_point.distance": ("d, distance to the nearest training exemplar", "null without vectors"),
    "decision.match_count": (
        "q, number of consecutive nearest neighbours that match the prediction",
        "null without vectors",
    ),
    "decision.distance": ("d, distance to the nearest training exemplar", "null without vectors"),
    "decision.logits": ("KNN(x), one per class", "null without vectors"),
}
JOB_BEFORE = "KNN parameters to use; null if only neighbours are computed."
JOB = "KNN parameters to use; null if only neighbours are computed, or if the classifier has logits only."

REFUSE_LOGITS_ONLY = """
DO $block$
BEGIN
    IF EXISTS (SELECT 1 FROM venn_admit.classifier WHERE dimension IS NULL) THEN
        RAISE EXCEPTION 'there are classifiers with logits only, which an older schema cannot hold';
    END IF;
END
$block$
"""


def upgrade() -> None:
    _lock(statement_timeout="1min")
    for column in NULLABLE:
        table, name = column.split(".")
        op.execute(
            f"-- squawk-ignore ban-drop-not-null\nALTER TABLE venn_admit.{table} ALTER COLUMN {name} DROP NOT NULL"
        )
    for table, condition in CHECKS.items():
        _check(table, "knn", condition)
    _check("classifier", "shares", SHARES)
    _comment({column: f"{before}; {added}." for column, (before, added) in COMMENTS.items()} | _job(JOB))
    _let_programs_work_from("0021")
    # Once what is above is committed, so that its locks are gone. Doing all of this again changes nothing.
    with op.get_context().autocommit_block():
        op.execute("SET statement_timeout = 0")
        for table in CHECKS:
            op.execute(f"ALTER TABLE venn_admit.{table} VALIDATE CONSTRAINT {table}_knn_check")
        op.execute("ALTER TABLE venn_admit.classifier VALIDATE CONSTRAINT classifier_shares_check")
        op.execute("RESET statement_timeout")


def downgrade() -> None:
    _lock(statement_timeout="60min")
    op.execute(REFUSE_LOGITS_ONLY)
    _let_programs_work_from("0020")
    _comment({column: f"{before}." for column, (before, _) in COMMENTS.items()} | _job(JOB_BEFORE))
    _check("classifier", "shares", SHARES_BEFORE)
    op.execute("ALTER TABLE venn_admit.classifier VALIDATE CONSTRAINT classifier_shares_check")
    for table in CHECKS:
        op.execute(f"ALTER TABLE venn_admit.{table} DROP CONSTRAINT {table}_knn_check")
    for column in NULLABLE:
        table, name = column.split(".")
        op.alter_column(table, name, nullable=False, schema="venn_admit")


def _lock(*, statement_timeout: str) -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute(f"SET LOCAL statement_timeout = '{statement_timeout}'")
    # All at once and first: a lock that is strengthened later can end in a deadlock.
    op.execute(
        "LOCK TABLE venn_admit.classifier, venn_admit.calibration, venn_admit.calibration_point, venn_admit.decision "
        "IN ACCESS EXCLUSIVE MODE"
    )


def _check(table: str, name: str, condition: str) -> None:
    constraint = f"{table}_{name}_check"
    op.execute(
        f"-- squawk-ignore ban-drop-constraint\nALTER TABLE venn_admit.{table} DROP CONSTRAINT IF EXISTS {constraint}"
    )
    op.execute(f"ALTER TABLE venn_admit.{table} ADD CONSTRAINT {constraint} CHECK ({condition}) NOT VALID")


def _job(comment: str) -> dict[str, str]:
    return {"job.knn_parameters_id": comment}


def _comment(comments: Mapping[str, str]) -> None:
    for column, comment in comments.items():
        op.execute(f"COMMENT ON COLUMN venn_admit.{column} IS '{comment}'")


def _let_programs_work_from(revision: str) -> None:
    op.execute(
        "CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE "
        f"RETURN '{revision}'"
    )
