"""The queue for reviewers has the points that were drawn to be audited too, in an order that says nothing of them.

Why: a certificate that stands counts labels as they come. If those of drawn points came in the order of their scores,
what was seen by then would be better than what is still to come, and the certificate would take it for the whole.
"""

import sqlalchemy as sa
from alembic import op

revision = "0095"
down_revision = "0094"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.add_column(
        "review_point",
        sa.Column(
            "is_drawn",
            sa.Boolean,
            nullable=False,
            server_default=sa.text("false"),
            comment="Whether it was drawn to be audited, so that its place in the queue follows from its key alone.",
        ),
        schema="venn_admit",
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("-- squawk-ignore ban-drop-column\nALTER TABLE venn_admit.review_point DROP COLUMN is_drawn")
