"""Who asked for a job over HTTP.

Why: how many unfinished jobs a key may have holds across all processes of the service, so that they are counted in the
database. A new column that may be null: it takes no time. Older programs go on, and their jobs do not count.
"""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    op.add_column(
        "job",
        sa.Column(
            "requested_by",
            sa.Text(),
            comment="Key or token by which it was requested over HTTP, such as key 2; null otherwise.",
        ),
        schema="venn_admit",
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_column("job", "requested_by", schema="venn_admit")
