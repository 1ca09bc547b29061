"""A certificate that stands may be for true classes, and some comments say what is so.

Why: its chain may be a path of policies, each of which is tested for every class; a check allowed predicted ones alone.
Comments said that a withheld snapshot was held against the one in use, which need not be of the same setting, and that
all decisions on labelled exemplars are kept.
"""

from alembic import op

from venn_admit.store.database.routines import changed_comments, former_comments, oldest_program

revision = "0116"
down_revision = "0115"
branch_labels = None
depends_on = None

WEIGHT = (
    "That of a drawn point: the smallest probability of its predicted class or, for true classes, of all, divided by "
    "its own; null for 1."
)
REPLACED = "The snapshot that it would have replaced, which may be gone by now."
SHARE_OF_REPLACED = "Share of them that the one which it would have replaced would admit."
COMMENTS = {
    "report.kept_since_v1": "From when on all decisions of each classifier are there. What views and reports say of "
    "earlier ones is about those that are kept: decisions on exemplars that were drawn to be audited or have a random "
    "label or one of a review, and those that a job asks for which was not removed.",
    "report.withheld_calibration_v1": "The snapshots that were not put in use when they were made, because they would "
    "admit far less than the one that they would have replaced.",
    "report.withheld_calibration_v1.in_use": REPLACED,
    "report.withheld_calibration_v1.share_in_use": SHARE_OF_REPLACED,
    "venn_admit.withheld_calibration.in_use_id": REPLACED,
    "venn_admit.withheld_calibration.share_in_use": SHARE_OF_REPLACED,
    "venn_admit.calibrator.certify": "What a certificate is asked for: predicted, true, group:ATTRIBUTE, "
    "predicted*group:ATTRIBUTE; null for the pointwise and for the average promise.",
    "venn_admit.calibrator.standing": "Venn-Abers only: whether the certificate stands while labels arrive, for "
    "predicted classes unless others are asked for: recalibrating advances it.",
    "venn_admit.standing_evidence.weight": WEIGHT,
    "venn_admit.forgotten_evidence.weight": WEIGHT,
    "venn_admit.standing_state.predicted": "Place of the class: the number of a predicted one; true ones follow.",
}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    for statement in changed_comments(COMMENTS):
        op.execute(statement)
    _replace("certify <@ '{predicted,true}'", looking="NOT VALID")
    # An older one refuses to read such settings.
    op.execute(oldest_program(revision))
    # What was allowed still is, so that no row is looked at while others write.
    with op.get_context().autocommit_block():
        op.execute("ALTER TABLE venn_admit.calibrator VALIDATE CONSTRAINT calibrator_standing_check")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.execute(oldest_program("0113"))
    _replace("certify = '{predicted}'", looking="")
    views = ["views/kept_since_v1", "views/withheld_calibration_v1"]
    tables = [f"baseline/{of}" for of in ("calibrations", "standing", "uses")]
    for statement in former_comments(COMMENTS, views=views, tables=[*tables, "tables/forgotten_evidence"]):
        op.execute(statement)


def _replace(kinds: str, *, looking: str) -> None:
    op.execute(
        "-- squawk-ignore ban-drop-constraint\n"
        "ALTER TABLE venn_admit.calibrator DROP CONSTRAINT calibrator_standing_check, ADD CONSTRAINT "
        f"calibrator_standing_check CHECK (standing IS NOT TRUE OR ({kinds} AND loss IS NULL)) {looking}"
    )
