"""Each point of the queue for reviewers keeps its place, by which an index finds the next one.

Why: every claim put the whole queue in order, which took a second with 100,000 points that wait, and a near duplicate
of a point that was claimed alone no longer stood next. Places are given when the queue is filled; null until then.
"""

import sqlalchemy as sa
from alembic import op

revision = "0098"
down_revision = "0097"
branch_labels = None
depends_on = None

MADE = {
    "place": "(classifier_id, (done_at IS NULL), place, exemplar_id)",
    "near": "(classifier_id, coalesce(near_id, -exemplar_id))",
    "held": "(classifier_id, reviewer) WHERE reviewer IS NOT NULL",
}
WAITING = {"waiting": "(classifier_id, (done_at IS NULL))"}


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.add_column(
        "review_point",
        sa.Column(
            "place",
            sa.ARRAY(sa.Double),
            comment="Its place among those that wait, ascending; null until the queue is filled again.",
        ),
        schema="venn_admit",
    )
    exchange(WAITING, MADE)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    exchange(MADE, WAITING)
    op.execute("-- squawk-ignore ban-drop-column\nALTER TABLE venn_admit.review_point DROP COLUMN place")


def exchange(dropped: dict[str, str], made: dict[str, str]) -> None:
    """Drop indexes and make others. A queue is read in a second, so the migration stays one transaction."""
    for name in dropped:
        op.execute(f"-- squawk-ignore require-concurrent-index-deletion\nDROP INDEX venn_admit.review_point_{name}_idx")
    for name, keys in made.items():
        op.execute(
            "-- squawk-ignore require-concurrent-index-creation\n"
            f"CREATE INDEX review_point_{name}_idx ON venn_admit.review_point {keys}"
        )
