"""Who may ask the HTTP service for what."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    LargeBinary,
    Table,
    Text,
)

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
