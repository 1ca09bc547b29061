"""Certificates that stand while labels arrive: their chains, the labels that count, and what these have shown."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from venn_admit.store.database.tables.approximations import knn_parameters
from venn_admit.store.database.tables.base import created_at, key, metadata, optional, required
from venn_admit.store.database.tables.calibrations import calibrator
from venn_admit.store.database.tables.exemplars import exemplar

standing_chain = sa.Table(
    "standing_chain",
    metadata,
    key("Key; the newest of a calibrator is advanced."),
    required("calibrator_id", sa.ForeignKey(calibrator.c.id), "Calibrator whose snapshots it certifies."),
    required("number", sa.Integer, "1, 2, ... among all generations of the classifier."),
    optional(
        "knn_parameters_id",
        sa.ForeignKey(knn_parameters.c.id),
        "KNN parameters of its snapshots; null if the classifier has logits only.",
    ),
    optional(
        "support_version",
        sa.BigInteger,
        "Version of the training exemplars that its score depends on; null if that is the network's.",
    ),
    required("score", sa.Text, "Score that its thresholds are on: network or reliability."),
    required("proposing", sa.Integer, "Number of points that fixed it, which are no evidence."),
    required("chain", sa.JSON, "Its thresholds and its level, as the core writes them."),
    created_at("it was begun"),
    sa.CheckConstraint("number >= 1", name="number"),
    sa.CheckConstraint("score IN ('network', 'reliability')", name="score"),
    sa.Index(None, "calibrator_id", "id"),
    comment="Thresholds that were fixed before the labels that certify them, in the order in which they are certified.",
)


standing_evidence = sa.Table(
    "standing_evidence",
    metadata,
    required("chain_id", sa.ForeignKey(standing_chain.c.id), "The chain."),
    required("exemplar_id", sa.ForeignKey(exemplar.c.id), "Exemplar whose label counts."),
    required("document", sa.Integer, "Number of its document, from 0 in the order in which documents count."),
    required("predicted", sa.Integer, "The network's prediction."),
    required("score", sa.Double, "Its score."),
    optional("label", sa.Integer, "The label that counts; null from when it was taken back."),
    optional(
        "weight",
        sa.Double,
        "That of a drawn point: the smallest probability of its predicted class divided by its own; null for 1.",
    ),
    sa.PrimaryKeyConstraint("chain_id", "document", "exemplar_id"),
    sa.CheckConstraint("document >= 0", name="document"),
    sa.CheckConstraint("weight BETWEEN 0 AND 1", name="weight"),
    # A label counts once, and a correction finds where.
    sa.UniqueConstraint("exemplar_id", "chain_id"),
    comment="The labelled points that count for each chain.",
)


standing_position = sa.Table(
    "standing_position",
    metadata,
    required("chain_id", sa.ForeignKey(standing_chain.c.id, ondelete="CASCADE"), "The chain."),
    required("documents", sa.Integer, "Number of documents that came to count up to here."),
    required("event", sa.BigInteger, "Last label event of the classifier that was seen."),
    required("counted", sa.Integer, "Number of these documents of which a label was not taken back."),
    required("points", sa.Integer, "Number of their points with such a label."),
    sa.PrimaryKeyConstraint("chain_id", "documents"),
    sa.CheckConstraint("documents >= 0", name="documents"),
    comment="How far each chain was advanced: the newest position, and the last in every thousand documents before.",
)


standing_state = sa.Table(
    "standing_state",
    metadata,
    required("chain_id", sa.BigInteger, "The chain."),
    required("documents", sa.Integer, "Number of documents after which it is the state of the class."),
    required("predicted", sa.Integer, "The predicted class."),
    required("wealth", ARRAY(sa.Double), "Wealth of each gambler, threshold after threshold."),
    required("most", ARRAY(sa.Double), "Largest mean wealth so far, of each threshold."),
    required("admitted", ARRAY(sa.BigInteger), "Points that each threshold admits."),
    required("correct", ARRAY(sa.BigInteger), "Those of them whose prediction is the label."),
    required("capped", ARRAY(sa.BigInteger), "Documents of which each threshold admits more points than count."),
    sa.PrimaryKeyConstraint("chain_id", "documents", "predicted"),
    sa.ForeignKeyConstraint(
        ["chain_id", "documents"],
        ["venn_admit.standing_position.chain_id", "venn_admit.standing_position.documents"],
        ondelete="CASCADE",
    ),
    comment="What the labels have shown of the thresholds of a class, where it changed since the position before.",
)
