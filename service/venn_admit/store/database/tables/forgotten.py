"""What is left of exemplars that were forgotten: that something is missing, and nothing of what it was."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    Table,
    Text,
)

from venn_admit.store.database.tables.base import created_at, metadata
from venn_admit.store.database.tables.calibrations import calibrator
from venn_admit.store.database.tables.exemplars import classifier

forgotten_exemplar = Table(
    "forgotten_exemplar",
    metadata,
    Column(
        "digest",
        LargeBinary,
        primary_key=True,
        comment="SHA-256 of the classifier's salt and the exemplar's id, or of a mark and the id of a document.",
    ),
    created_at("it was forgotten"),
    CheckConstraint("octet_length(digest) = 32", name="digest"),
    comment="Tombstones of exemplars and documents that were forgotten, so that one that comes back is noticed. "
    "Only added to.",
)


forgotten_training = Table(
    "forgotten_training",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True, comment="Key."),
    Column("classifier_id", ForeignKey(classifier.c.id), nullable=False, comment="Classifier that it trained."),
    Column("support_from", BigInteger, nullable=False, comment="Support version from which it trained."),
    Column("support_until", BigInteger, nullable=False, comment="Support version from which it no longer trained."),
    created_at("it was forgotten"),
    CheckConstraint("support_until > support_from", name="support"),
    Index(None, "classifier_id"),
    comment="Training exemplars that were forgotten, a row each, of which nothing is left but when they trained.",
)


forgotten_point = Table(
    "forgotten_point",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True, comment="Key."),
    Column("calibrator_id", ForeignKey(calibrator.c.id), nullable=False, comment="The calibrator."),
    Column("split", Text, nullable=False, comment="mc or vp."),
    Column("valid_from", Integer, nullable=False, comment="Number of the first snapshot that counts the point."),
    Column("valid_until", Integer, nullable=False, comment="Number of the first snapshot that no longer counts it."),
    created_at("it was forgotten"),
    CheckConstraint("split IN ('mc', 'vp')", name="split"),
    CheckConstraint("valid_until > valid_from", name="validity"),
    Index(None, "calibrator_id"),
    comment="Calibration points that were forgotten, a row each, of which nothing is left but which snapshots count "
    "them.",
)
