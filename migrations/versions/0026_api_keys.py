"""Keys for the HTTP service.

Why: whoever asks over HTTP shows a key, which says for which classifier and for what it may be used. One new table: it
takes no time, and older programs go on.
"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    op.create_table(
        "api_key",
        sa.Column(
            "id",
            sa.BigInteger(),
            sa.Identity(always=True),
            nullable=False,
            comment="Key; part of the secret's text.",
        ),
        sa.Column("name", sa.Text(), nullable=False, comment="What the key is for, in the words of whoever made it."),
        sa.Column(
            "digest",
            sa.LargeBinary(),
            nullable=False,
            comment="SHA-256 of the 256 random bits of the secret, which is not stored.",
        ),
        sa.Column(
            "scope", sa.Text(), nullable=False, comment="read, score, write or admin; each includes those before it."
        ),
        sa.Column(
            "classifier_id",
            sa.Integer(),
            nullable=True,
            comment="The one classifier that it is for; null if it is for all.",
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was made.",
        ),
        sa.Column(
            "expires_at",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="From when on it is refused; null if it does not expire.",
        ),
        sa.Column(
            "revoked_at",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="When it was revoked; null if it was not.",
        ),
        sa.Column(
            "last_used_at",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="When it was last used, within a minute; null if it never was.",
        ),
        sa.CheckConstraint("scope IN ('read', 'score', 'write', 'admin')", name=op.f("api_key_scope_check")),
        sa.CheckConstraint("octet_length(digest) = 32", name=op.f("api_key_digest_check")),
        sa.ForeignKeyConstraint(
            ["classifier_id"], ["venn_admit.classifier.id"], name=op.f("api_key_classifier_id_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("api_key_pkey")),
        schema="venn_admit",
        comment="Keys for the HTTP service.",
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("api_key", schema="venn_admit")
