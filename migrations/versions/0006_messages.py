"""The queue of messages, for where the database is the broker too.

Why: With no other broker to install, workers are woken by rows of this table. It is not logged: a message is
only a wake-up, and one that a crash loses is sent again.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.create_table(
        "message",
        sa.Column(
            "id", sa.BigInteger(), sa.Identity(always=True), nullable=False, comment="Key; ascends in order of sending."
        ),
        sa.Column("queue", sa.Text(), nullable=False, comment="Celery's queue."),
        sa.Column(
            "payload",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=False,
            comment="What Celery sends: which task, on which job and chunk.",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("message_pkey")),
        schema="venn_admit",
        comment="Messages to workers, where the database is the broker; deleted on receipt, and lost in a crash.",
        prefixes=["UNLOGGED"],
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("message", schema="venn_admit")
