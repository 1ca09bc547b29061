"""What is left of exemplars that were forgotten: that something is missing, and nothing of what it was."""

import sqlalchemy as sa

from venn_admit.store.database.tables.base import created_at, key, metadata, required
from venn_admit.store.database.tables.calibrations import calibrator
from venn_admit.store.database.tables.exemplars import classifier

forgotten_exemplar = sa.Table(
    "forgotten_exemplar",
    metadata,
    sa.Column(
        "digest",
        sa.LargeBinary,
        primary_key=True,
        comment="SHA-256 of the classifier's salt and the exemplar's id, or of a mark and the id of a document.",
    ),
    created_at("it was forgotten"),
    sa.CheckConstraint("octet_length(digest) = 32", name="digest"),
    comment="Tombstones of exemplars and documents that were forgotten, so that one that comes back is noticed. "
    "Only added to.",
)


forgotten_training = sa.Table(
    "forgotten_training",
    metadata,
    key("Key."),
    required("classifier_id", sa.ForeignKey(classifier.c.id), "Classifier that it trained."),
    required("support_from", sa.BigInteger, "Support version from which it trained."),
    required("support_until", sa.BigInteger, "Support version from which it no longer trained."),
    created_at("it was forgotten"),
    sa.CheckConstraint("support_until > support_from", name="support"),
    sa.Index(None, "classifier_id"),
    comment="Training exemplars that were forgotten, a row each, of which nothing is left but when they trained.",
)


forgotten_point = sa.Table(
    "forgotten_point",
    metadata,
    key("Key."),
    required("calibrator_id", sa.ForeignKey(calibrator.c.id), "The calibrator."),
    required("split", sa.Text, "mc or vp."),
    required("valid_from", sa.Integer, "Number of the first snapshot that counts the point."),
    required("valid_until", sa.Integer, "Number of the first snapshot that no longer counts it."),
    created_at("it was forgotten"),
    sa.CheckConstraint("split IN ('mc', 'vp')", name="split"),
    sa.CheckConstraint("valid_until > valid_from", name="validity"),
    sa.Index(None, "calibrator_id"),
    comment="Calibration points that were forgotten, a row each, of which nothing is left but which snapshots count "
    "them.",
)
