"""Who may ask the HTTP service for what."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from venn_admit.store.database.tables.base import created_at, metadata
from venn_admit.store.database.tables.exemplars import classifier

api_key = sa.Table(
    "api_key",
    metadata,
    sa.Column(
        "id", sa.BigInteger, sa.Identity(always=True), primary_key=True, comment="Key; part of the secret's text."
    ),
    sa.Column("name", sa.Text, nullable=False, comment="What the key is for, in the words of whoever made it."),
    sa.Column(
        "digest",
        sa.LargeBinary,
        nullable=False,
        comment="SHA-256 of the 256 random bits of the secret, which is not stored.",
    ),
    sa.Column("scope", sa.Text, nullable=False, comment="read, score, write or admin; each includes those before it."),
    sa.Column(
        "classifier_id",
        sa.ForeignKey(classifier.c.id),
        comment="The one classifier that it is for; null if it is for all.",
    ),
    created_at("it was made"),
    sa.Column(
        "expires_at", sa.DateTime(timezone=True), comment="From when on it is refused; null if it does not expire."
    ),
    sa.Column("revoked_at", sa.DateTime(timezone=True), comment="When it was revoked; null if it was not."),
    sa.Column(
        "last_used_at",
        sa.DateTime(timezone=True),
        comment="When it was last used, within a minute; null if it never was.",
    ),
    sa.CheckConstraint("scope IN ('read', 'score', 'write', 'admin')", name="scope"),
    sa.CheckConstraint("octet_length(digest) = 32", name="digest"),
    comment="Keys for the HTTP service.",
)
page_session = sa.Table(
    "page_session",
    metadata,
    sa.Column(
        "digest",
        sa.LargeBinary,
        primary_key=True,
        comment="SHA-256 of the 256 random bits that the browser shows, which are not stored.",
    ),
    sa.Column("key_id", sa.ForeignKey(api_key.c.id), nullable=False, comment="The key that signed in."),
    created_at("it began"),
    sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False, comment="From when on it is refused."),
    sa.CheckConstraint("octet_length(digest) = 32", name="digest"),
    comment="Sessions of the page of the HTTP service; those that expired are removed when another begins.",
)
idempotent_request = sa.Table(
    "idempotent_request",
    metadata,
    sa.Column("caller", sa.Text, primary_key=True, comment="Who sent it: a key, or the subject of a token."),
    sa.Column("idempotency_key", sa.Text, primary_key=True, comment="What the caller named it."),
    sa.Column("route", sa.Text, nullable=False, comment="Method and path template of what it asks for."),
    sa.Column("attempt", sa.Uuid, nullable=False, comment="The attempt at it; only this one records the answer."),
    sa.Column(
        "leased_until",
        sa.DateTime(timezone=True),
        nullable=False,
        comment="Until when the attempt counts as running, unless it has extended its lease.",
    ),
    sa.Column("digest", sa.LargeBinary, comment="SHA-256 of the request; null until it is answered."),
    sa.Column("status", sa.Integer, comment="Status of the answer; null until there is one."),
    sa.Column("headers", JSONB, comment="Headers of the answer that are about its content; null until there is one."),
    sa.Column("answer", sa.LargeBinary, comment="The answer; null until there is one."),
    created_at("the attempt began"),
    sa.Column(
        "expires_at",
        sa.DateTime(timezone=True),
        nullable=False,
        index=True,
        comment="From when on the same name is for another request.",
    ),
    sa.CheckConstraint("num_nonnulls(digest, status, headers, answer) IN (0, 4)", name="answered"),
    sa.CheckConstraint("octet_length(digest) = 32", name="digest"),
    comment="Requests with an Idempotency-Key, and their answers, for as long as they are kept.",
)
idempotent_lease = sa.Table(
    "idempotent_lease",
    metadata,
    sa.Column("caller", sa.Text, primary_key=True, comment="Who sent the request."),
    sa.Column("idempotency_key", sa.Text, primary_key=True, comment="What the caller named it."),
    sa.Column("attempt", sa.Uuid, primary_key=True, comment="The attempt at it."),
    sa.Column(
        "leased_until",
        sa.DateTime(timezone=True),
        nullable=False,
        comment="Until when the attempt counts as running; it extends this while its process lives.",
    ),
    sa.ForeignKeyConstraint(
        ["caller", "idempotency_key"],
        [idempotent_request.c.caller, idempotent_request.c.idempotency_key],
        ondelete="CASCADE",
    ),
    # Apart from the request, whose row nothing but another attempt may change until the answer is kept.
    comment="Leases that attempts at a request have extended because they take longer than the first lease.",
)
audit_event = sa.Table(
    "audit_event",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True, comment="Event."),
    created_at("it was done, or refused"),
    sa.Column("origin", sa.Text, nullable=False, comment="http, command line, or schedule."),
    sa.Column("key_id", sa.ForeignKey(api_key.c.id), comment="The key that was shown; null without a valid one."),
    sa.Column("subject", sa.Text, comment="Subject of the token that was shown; null without."),
    sa.Column(
        "action",
        sa.Text,
        nullable=False,
        comment="What was asked for: the operationId of the route, authenticate, create_key, revoke_key, "
        "create_generation, switch_generation, state_extractor, delete_job, prune_jobs, forget_exemplars, "
        "delete_classifier or delete_generation.",
    ),
    sa.Column("route", sa.Text, comment="Method and path template; null for the command line."),
    sa.Column("target", sa.Text, comment="The classifier, key or job that the path or command names."),
    sa.Column("status", sa.Integer, comment="Of the answer; null for the command line."),
    sa.Column(
        "is_replay", sa.Boolean, nullable=False, comment="Whether an answer was given again, and nothing was done."
    ),
    sa.Column("request_id", sa.Text, comment="X-Request-ID of the answer; null for the command line."),
    sa.Column("client_address", sa.Text, comment="Where the request came from; null unless the settings ask for it."),
    sa.CheckConstraint("origin IN ('http', 'command line', 'schedule')", name="origin"),
    sa.CheckConstraint("key_id IS NULL OR subject IS NULL", name="who"),
    comment="Who did what: requests that store something, refused keys, and changes of keys. Only added to.",
)
