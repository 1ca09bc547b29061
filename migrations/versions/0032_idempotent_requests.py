"""Requests that are answered once, however often they are sent.

Why: whoever gets no answer to a request that stores something sends it again, and must neither store it twice nor learn
less than from the first answer. One new table: it takes no time, and older programs go on.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    op.create_table(
        "idempotent_request",
        sa.Column("caller", sa.Text(), nullable=False, comment="Who sent it: a key, or the subject of a token."),
        sa.Column("idempotency_key", sa.Text(), nullable=False, comment="What the caller named it."),
        sa.Column("route", sa.Text(), nullable=False, comment="Method and path template of what it asks for."),
        sa.Column("attempt", sa.Uuid(), nullable=False, comment="The attempt at it; only this one records the answer."),
        sa.Column(
            "leased_until",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="Until when the attempt counts as running; it extends this while its process lives.",
        ),
        sa.Column(
            "digest",
            sa.LargeBinary(),
            nullable=True,
            comment="SHA-256 of the request; null until it is answered.",
        ),
        sa.Column("status", sa.Integer(), nullable=True, comment="Status of the answer; null until there is one."),
        sa.Column(
            "headers",
            postgresql.JSONB(),
            nullable=True,
            comment="Headers of the answer that are about its content; null until there is one.",
        ),
        sa.Column("answer", sa.LargeBinary(), nullable=True, comment="The answer; null until there is one."),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When the attempt began.",
        ),
        sa.Column(
            "expires_at",
            sa.DateTime(timezone=True),
            nullable=False,
            comment="From when on the same name is for another request.",
        ),
        sa.CheckConstraint(
            "num_nonnulls(digest, status, headers, answer) IN (0, 4)", name=op.f("idempotent_request_answered_check")
        ),
        sa.CheckConstraint("octet_length(digest) = 32", name=op.f("idempotent_request_digest_check")),
        sa.PrimaryKeyConstraint("caller", "idempotency_key", name=op.f("idempotent_request_pkey")),
        schema="venn_admit",
        comment="Requests with an Idempotency-Key, and their answers, for as long as they are kept.",
    )
    op.create_index(
        op.f("idempotent_request_expires_at_idx"), "idempotent_request", ["expires_at"], schema="venn_admit"
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("idempotent_request", schema="venn_admit")
