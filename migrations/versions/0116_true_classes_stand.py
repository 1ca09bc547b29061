"""A certificate that stands may be for true classes.

Why: its chain may be a path of policies, each of which is tested for every class; a check allowed predicted ones alone.
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
COMMENTS = {
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
    tables = ["baseline/calibrations", "baseline/standing", "tables/forgotten_evidence"]
    for statement in former_comments(COMMENTS, tables=tables):
        op.execute(statement)


def _replace(kinds: str, *, looking: str) -> None:
    op.execute(
        "-- squawk-ignore ban-drop-constraint\n"
        "ALTER TABLE venn_admit.calibrator DROP CONSTRAINT calibrator_standing_check, ADD CONSTRAINT "
        f"calibrator_standing_check CHECK (standing IS NOT TRUE OR ({kinds} AND loss IS NULL)) {looking}"
    )
