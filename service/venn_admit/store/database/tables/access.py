"""Who may ask the HTTP service for what."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Integer,
    LargeBinary,
    Table,
    Text,
    Uuid,
)
from sqlalchemy.dialects.postgresql import JSONB

from venn_admit.store.database.tables.base import created_at, metadata
from venn_admit.store.database.tables.exemplars import classifier

api_key = Table(
    "api_key",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True, comment="Key; part of the secret's text."),
    Column("name", Text, nullable=False, comment="What the key is for, in the words of whoever made it."),
    Column(
        "digest",
        LargeBinary,
        nullable=False,
        comment="SHA-256 of the 256 random bits of the secret, which is not stored.",
    ),
    Column("scope", Text, nullable=False, comment="read, score, write or admin; each includes those before it."),
    Column(
        "classifier_id",
        ForeignKey(classifier.c.id),
        comment="The one classifier that it is for; null if it is for all.",
    ),
    created_at("it was made"),
    Column("expires_at", DateTime(timezone=True), comment="From when on it is refused; null if it does not expire."),
    Column("revoked_at", DateTime(timezone=True), comment="When it was revoked; null if it was not."),
    Column(
        "last_used_at",
        DateTime(timezone=True),
        comment="When it was last used, within a minute; null if it never was.",
    ),
    CheckConstraint("scope IN ('read', 'score', 'write', 'admin')", name="scope"),
    CheckConstraint("octet_length(digest) = 32", name="digest"),
    comment="Keys for the HTTP service.",
)
page_session = Table(
    "page_session",
    metadata,
    Column(
        "digest",
        LargeBinary,
        primary_key=True,
        comment="SHA-256 of the 256 random bits that the browser shows, which are not stored.",
    ),
    Column("key_id", ForeignKey(api_key.c.id), nullable=False, comment="The key that signed in."),
    created_at("it began"),
    Column("expires_at", DateTime(timezone=True), nullable=False, comment="From when on it is refused."),
    CheckConstraint("octet_length(digest) = 32", name="digest"),
    comment="Sessions of the page of the HTTP service; those that expired are removed when another begins.",
)
idempotent_request = Table(
    "idempotent_request",
    metadata,
    Column("caller", Text, primary_key=True, comment="Who sent it: a key, or the subject of a token."),
    Column("idempotency_key", Text, primary_key=True, comment="What the caller named it."),
    Column("route", Text, nullable=False, comment="Method and path template of what it asks for."),
    Column("attempt", Uuid, nullable=False, comment="The attempt at it; only this one records the answer."),
    Column(
        "leased_until",
        DateTime(timezone=True),
        nullable=False,
        comment="Until when the attempt counts as running, unless it has extended its lease.",
    ),
    Column("digest", LargeBinary, comment="SHA-256 of the request; null until it is answered."),
    Column("status", Integer, comment="Status of the answer; null until there is one."),
    Column("headers", JSONB, comment="Headers of the answer that are about its content; null until there is one."),
    Column("answer", LargeBinary, comment="The answer; null until there is one."),
    created_at("the attempt began"),
    Column(
        "expires_at",
        DateTime(timezone=True),
        nullable=False,
        index=True,
        comment="From when on the same name is for another request.",
    ),
    CheckConstraint("num_nonnulls(digest, status, headers, answer) IN (0, 4)", name="answered"),
    CheckConstraint("octet_length(digest) = 32", name="digest"),
    comment="Requests with an Idempotency-Key, and their answers, for as long as they are kept.",
)
idempotent_lease = Table(
    "idempotent_lease",
    metadata,
    Column("caller", Text, primary_key=True, comment="Who sent the request."),
    Column("idempotency_key", Text, primary_key=True, comment="What the caller named it."),
    Column("attempt", Uuid, primary_key=True, comment="The attempt at it."),
    Column(
        "leased_until",
        DateTime(timezone=True),
        nullable=False,
        comment="Until when the attempt counts as running; it extends this while its process lives.",
    ),
    ForeignKeyConstraint(
        ["caller", "idempotency_key"],
        [idempotent_request.c.caller, idempotent_request.c.idempotency_key],
        ondelete="CASCADE",
    ),
    # Apart from the request, whose row nothing but another attempt may change until the answer is kept.
    comment="Leases that attempts at a request have extended because they take longer than the first lease.",
)
audit_event = Table(
    "audit_event",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True, comment="Event."),
    created_at("it was done, or refused"),
    Column("origin", Text, nullable=False, comment="http, command line, or schedule."),
    Column("key_id", ForeignKey(api_key.c.id), comment="The key that was shown; null without a valid one."),
    Column("subject", Text, comment="Subject of the token that was shown; null without."),
    Column(
        "action",
        Text,
        nullable=False,
        comment="What was asked for: the operationId of the route, authenticate, create_key, revoke_key, "
        "create_generation, switch_generation, state_extractor, delete_job, prune_jobs, forget_exemplars, "
        "delete_classifier or delete_generation.",
    ),
    Column("route", Text, comment="Method and path template; null for the command line."),
    Column("target", Text, comment="The classifier, key or job that the path or command names."),
    Column("status", Integer, comment="Of the answer; null for the command line."),
    Column("is_replay", Boolean, nullable=False, comment="Whether an answer was given again, and nothing was done."),
    Column("request_id", Text, comment="X-Request-ID of the answer; null for the command line."),
    Column("client_address", Text, comment="Where the request came from; null unless the settings ask for it."),
    CheckConstraint("origin IN ('http', 'command line', 'schedule')", name="origin"),
    CheckConstraint("key_id IS NULL OR subject IS NULL", name="who"),
    comment="Who did what: requests that store something, refused keys, and changes of keys. Only added to.",
)
