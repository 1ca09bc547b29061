"""A fit records for which share of its points q is K.

Why: between such points q does not tell, so that bands of q pool right and wrong predictions. Both the user who waits
for a fit and the one who asks for that of a job should see it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0058"
down_revision = "0057"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    op.add_column(
        "knn_parameters",
        sa.Column(
            "full_matches",
            sa.Double,
            comment="Share of split knn with q = K; null if given, or fitted before this was stored.",
        ),
        schema="venn_admit",
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_column("knn_parameters", "full_matches", schema="venn_admit")
