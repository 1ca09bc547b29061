"""One definition each of a chunk that is free, that needs a message, or that is awaited, and of a classifier's columns.

Why: several statements each had these conditions, in spellings of their own, and four had the same columns of a
classifier; they have to agree. The planner puts functions and views in the place of their names, so that statements are
planned as before. Nothing is taken away, so older programs go on. The comment on versions says what else training
exemplars wait for by now.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None

ROUTINES = Path(__file__).parents[1] / "routines"
FUNCTIONS = ("is_chunk_free_v1", "is_chunk_unsent_v1")
VIEWS = ("awaited_chunk_v1", "classifier_row_v1")
VERSIONS = (
    "Version of the training exemplars; ascends with every change, in one sequence with exemplar ids. "
    "Those with a higher id wait for {}."
)
BEFORE, AFTER = VERSIONS.format("the recalibration that is running"), VERSIONS.format("jobs that are running")


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for function in FUNCTIONS:
        op.execute((ROUTINES / "functions" / f"{function}.sql").read_text())
    for view in VIEWS:
        op.execute((ROUTINES / "views" / f"{view}.sql").read_text())
    _comment(AFTER, before=BEFORE)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    _comment(BEFORE, before=AFTER)
    for view in reversed(VIEWS):
        op.execute(f"DROP VIEW venn_admit.{view}")
    for function in reversed(FUNCTIONS):
        op.execute(f"-- squawk-ignore ban-drop-function\nDROP FUNCTION venn_admit.{function}")


def _comment(comment: str, *, before: str) -> None:
    op.alter_column(
        "classifier",
        "support_version",
        existing_type=sa.BigInteger(),
        existing_nullable=False,
        existing_server_default=sa.text("0"),
        existing_comment=before,
        comment=comment,
        schema="venn_admit",
    )
