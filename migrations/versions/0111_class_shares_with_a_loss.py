"""A certificate for class shares of traffic may be about the mean loss.

Why: under label shift the loss of an error is weighed as a wrong prediction is, and checks refused the two together.
"""

from alembic import op

from venn_admit.store.database.routines import oldest_program

revision = "0111"
down_revision = "0110"
branch_labels = None
depends_on = None

_DECLARED = """
    (class_shares IS NULL) = (class_shares_within IS NULL)
    AND (class_shares IS NULL OR (certify @> '{{predicted}}' {loss}AND standing IS NOT TRUE))
"""
_ESTIMATED = """
    class_shares_estimated IS NOT TRUE
    OR (class_shares IS NULL AND certify @> '{{predicted}}' {loss}AND standing IS NOT TRUE)
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    _replace(loss="", looking="NOT VALID")
    # An older one refuses to read such settings.
    op.execute(oldest_program(revision))
    # What was allowed still is, so that no row is looked at while others write.
    with op.get_context().autocommit_block():
        for name in ("declared", "estimated"):
            op.execute(f"ALTER TABLE venn_admit.calibrator VALIDATE CONSTRAINT calibrator_{name}_check")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.execute(oldest_program("0105"))
    _replace(loss="AND loss IS NULL ", looking="")


def _replace(*, loss: str, looking: str) -> None:
    for name, condition in (("declared", _DECLARED), ("estimated", _ESTIMATED)):
        op.execute(
            "-- squawk-ignore ban-drop-constraint\n"
            f"ALTER TABLE venn_admit.calibrator DROP CONSTRAINT calibrator_{name}_check, "
            f"ADD CONSTRAINT calibrator_{name}_check CHECK ({condition.format(loss=loss)}) {looking}"
        )
