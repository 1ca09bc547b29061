"""Sessions of the page.

Why: whoever signs in on the page shows a key once, and the browser shows a session from then on, which ends when its
key does. One new table: it takes no time, and older programs go on.
"""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    op.create_table(
        "page_session",
        sa.Column(
            "digest",
            sa.LargeBinary(),
            nullable=False,
            comment="SHA-256 of the 256 random bits that the browser shows, which are not stored.",
        ),
        sa.Column("key_id", sa.BigInteger(), nullable=False, comment="The key that signed in."),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it began.",
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False, comment="From when on it is refused."),
        sa.CheckConstraint("octet_length(digest) = 32", name=op.f("page_session_digest_check")),
        sa.ForeignKeyConstraint(["key_id"], ["venn_admit.api_key.id"], name=op.f("page_session_key_id_fkey")),
        sa.PrimaryKeyConstraint("digest", name=op.f("page_session_pkey")),
        schema="venn_admit",
        comment="Sessions of the page of the HTTP service; those that expired are removed when another begins.",
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("page_session", schema="venn_admit")
