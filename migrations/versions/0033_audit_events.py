"""A ledger of who did what over HTTP, and of changes of keys.

Why: whoever runs a service for several people must be able to say afterwards who asked for a change, and who tried to
without a valid key. Members of `venn_admit_service` add to the ledger and neither correct nor remove what it holds.
Programs that know only `grant_service_v1` must not give that away, so this function calls the new version. One new
table: it takes no time, and older programs go on.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

FUNCTIONS = Path(__file__).parents[1] / "routines" / "functions"

PREPARE_SERVICE = """
DO $block$
BEGIN
    IF to_regrole('venn_admit_service') IS NOT NULL THEN
        REVOKE UPDATE, DELETE ON venn_admit.audit_event FROM venn_admit_service;
    END IF;
END
$block$
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    op.create_table(
        "audit_event",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False, comment="Event."),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was done, or refused.",
        ),
        sa.Column("origin", sa.Text(), nullable=False, comment="http or command line."),
        sa.Column(
            "key_id", sa.BigInteger(), nullable=True, comment="The key that was shown; null without a valid one."
        ),
        sa.Column("subject", sa.Text(), nullable=True, comment="Subject of the token that was shown; null without."),
        sa.Column(
            "action",
            sa.Text(),
            nullable=False,
            comment="What was asked for: the operationId of the route, authenticate, create_key or revoke_key.",
        ),
        sa.Column("route", sa.Text(), nullable=True, comment="Method and path template; null for the command line."),
        sa.Column("target", sa.Text(), nullable=True, comment="The classifier or key that the path or command names."),
        sa.Column("status", sa.Integer(), nullable=True, comment="Of the answer; null for the command line."),
        sa.Column(
            "is_replay",
            sa.Boolean(),
            nullable=False,
            comment="Whether an answer was given again, and nothing was done.",
        ),
        sa.Column(
            "request_id", sa.Text(), nullable=True, comment="X-Request-ID of the answer; null for the command line."
        ),
        sa.Column(
            "client_address",
            sa.Text(),
            nullable=True,
            comment="Where the request came from; null unless the settings ask for it.",
        ),
        sa.CheckConstraint("origin IN ('http', 'command line')", name=op.f("audit_event_origin_check")),
        sa.CheckConstraint("key_id IS NULL OR subject IS NULL", name=op.f("audit_event_who_check")),
        sa.ForeignKeyConstraint(["key_id"], ["venn_admit.api_key.id"], name=op.f("audit_event_key_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("audit_event_pkey")),
        schema="venn_admit",
        comment="Who did what: requests that store something, refused keys, and changes of keys. Only added to.",
    )
    op.execute((FUNCTIONS / "prepare_service_v2.sql").read_text())
    _replace("grant_service_v1_since_0033")
    op.execute(PREPARE_SERVICE)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    _replace("grant_service_v1")
    op.execute("-- squawk-ignore ban-drop-function\nDROP FUNCTION venn_admit.prepare_service_v2")
    op.drop_table("audit_event", schema="venn_admit")


def _replace(function: str) -> None:
    sql = (FUNCTIONS / f"{function}.sql").read_text()
    op.execute(sql.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"))
