"""Who may ask the HTTP service for what."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB

from venn_admit.store.database.tables.base import TIME, created_at, key, metadata, optional, required
from venn_admit.store.database.tables.exemplars import classifier

api_key = sa.Table(
    "api_key",
    metadata,
    key("Key; part of the secret's text."),
    required("name", sa.Text, "What the key is for, in the words of whoever made it."),
    required("digest", sa.LargeBinary, "SHA-256 of the 256 random bits of the secret, which is not stored."),
    required("scope", sa.Text, "read, score, write or admin; each includes those before it."),
    optional(
        "classifier_id", sa.ForeignKey(classifier.c.id), "The one classifier that it is for; null if it is for all."
    ),
    created_at("it was made"),
    optional("expires_at", TIME, "From when on it is refused; null if it does not expire."),
    optional("revoked_at", TIME, "When it was revoked; null if it was not."),
    optional("last_used_at", TIME, "When it was last used, within a minute; null if it never was."),
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
    required("key_id", sa.ForeignKey(api_key.c.id), "The key that signed in."),
    created_at("it began"),
    required("expires_at", TIME, "From when on it is refused."),
    sa.CheckConstraint("octet_length(digest) = 32", name="digest"),
    comment="Sessions of the page of the HTTP service; those that expired are removed when another begins.",
)
idempotent_request = sa.Table(
    "idempotent_request",
    metadata,
    sa.Column("caller", sa.Text, primary_key=True, comment="Who sent it: a key, or the subject of a token."),
    sa.Column("idempotency_key", sa.Text, primary_key=True, comment="What the caller named it."),
    required("route", sa.Text, "Method and path template of what it asks for."),
    required("attempt", sa.Uuid, "The attempt at it; only this one records the answer."),
    required("leased_until", TIME, "Until when the attempt counts as running, unless it has extended its lease."),
    optional("digest", sa.LargeBinary, "SHA-256 of the request; null until it is answered."),
    optional("status", sa.Integer, "Status of the answer; null until there is one."),
    optional("headers", JSONB, "Headers of the answer that are about its content; null until there is one."),
    optional("answer", sa.LargeBinary, "The answer; null until there is one."),
    created_at("the attempt began"),
    required("expires_at", TIME, "From when on the same name is for another request.", index=True),
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
    required(
        "leased_until", TIME, "Until when the attempt counts as running; it extends this while its process lives."
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
    key("Event."),
    created_at("it was done, or refused"),
    required("origin", sa.Text, "http, command line, or schedule."),
    optional("key_id", sa.ForeignKey(api_key.c.id), "The key that was shown; null without a valid one."),
    optional("subject", sa.Text, "Subject of the token that was shown; null without."),
    required(
        "action",
        sa.Text,
        "What was asked for: the operationId of the route, authenticate, create_key, revoke_key, "
        "create_generation, switch_generation, state_extractor, delete_job, prune_jobs, forget_exemplars, "
        "delete_classifier or delete_generation.",
    ),
    optional("route", sa.Text, "Method and path template; null for the command line."),
    optional("target", sa.Text, "The classifier, key or job that the path or command names."),
    optional("status", sa.Integer, "Of the answer; null for the command line."),
    required("is_replay", sa.Boolean, "Whether an answer was given again, and nothing was done."),
    optional("request_id", sa.Text, "X-Request-ID of the answer; null for the command line."),
    optional("client_address", sa.Text, "Where the request came from; null unless the settings ask for it."),
    sa.CheckConstraint("origin IN ('http', 'command line', 'schedule')", name="origin"),
    sa.CheckConstraint("key_id IS NULL OR subject IS NULL", name="who"),
    comment="Who did what: requests that store something, refused keys, and changes of keys. Only added to.",
)
