"""The model of the `reliability` score, stored with the parameters that it was fitted with.

Why: the score of the method venn-abers is judged by the network and the KNN together, on split knn alone. A column that
may be null is added, which changes the catalogue and no row, so older programs go on.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.add_column(
        "knn_parameters",
        sa.Column(
            "reliability",
            postgresql.JSONB(),
            nullable=True,
            comment="Model of the reliability score, fitted on knn; null if there is none.",
        ),
        schema="venn_admit",
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_column("knn_parameters", "reliability", schema="venn_admit")
