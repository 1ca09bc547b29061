"""What is kept of requests to the HTTP service."""

from sqlalchemy import CheckConstraint, Column, DateTime, Integer, LargeBinary, Table, Text, Uuid
from sqlalchemy.dialects.postgresql import JSONB

from venn_admit.service.store.database.tables.base import created_at, metadata

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
        comment="Until when the attempt counts as running; it extends this while its process lives.",
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
