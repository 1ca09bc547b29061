"""Cascades: their stages, and what was certified of each."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from venn_admit.store.database.tables.base import created_at, key, metadata, optional, required
from venn_admit.store.database.tables.exemplars import classifier
from venn_admit.store.database.tables.work import job

classifier_cascade = sa.Table(
    "classifier_cascade",
    metadata,
    key("Key."),
    required("name", sa.Text, "What users call it.", unique=True),
    created_at("it was created"),
    sa.CheckConstraint("name <> ''", name="name"),
    comment="Classifiers that are asked one after the other: a point goes to the next where it is rejected.",
)
cascade_stage = sa.Table(
    "cascade_stage",
    metadata,
    required("cascade_id", sa.ForeignKey(classifier_cascade.c.id, ondelete="CASCADE"), "The cascade."),
    required("place", sa.Integer, "Place of the stage, from 1."),
    optional(
        "classifier_id",
        sa.ForeignKey(classifier.c.id),
        "Generation of a classifier, which cannot be deleted meanwhile; null for a person, who is the last stage.",
        index=True,
    ),
    required("cost", sa.Double, "What a point costs that reaches the stage, in the user's unit."),
    sa.PrimaryKeyConstraint("cascade_id", "place"),
    sa.UniqueConstraint("cascade_id", "classifier_id"),
    sa.CheckConstraint("place >= 1", name="place"),
    sa.CheckConstraint("cost >= 0 AND cost < 'infinity'", name="cost"),
    comment="Stages of each cascade, in order.",
)
cascade_calibration = sa.Table(
    "cascade_calibration",
    metadata,
    key("Key; a cascade serves by the newest that is not withheld."),
    required("cascade_id", sa.ForeignKey(classifier_cascade.c.id, ondelete="CASCADE"), "The cascade.", index=True),
    created_at("it looked at the labels"),
    required("alpha", sa.Numeric, "Share of what is served of each class that may be wrong."),
    required("confidence", sa.Numeric, "Confidence that was asked for."),
    required("is_certified", sa.Boolean, "Whether a policy passed; without one, nothing is served."),
    required("points", sa.Integer, "Number of points of evidence."),
    required(
        "is_withheld",
        sa.Boolean,
        "Whether nothing is served by it, because nobody asked for it and it serves far less than the one before.",
        server_default=sa.text("false"),
    ),
    required("document", JSONB, "The certificate in full: what was asked, each policy tested, and the results."),
    sa.CheckConstraint("alpha > 0 AND alpha < 1", name="alpha"),
    sa.CheckConstraint("confidence > 0 AND confidence < 1", name="confidence"),
    comment="Certificates of each cascade. Only added to.",
)
cascade_request = sa.Table(
    "cascade_request",
    metadata,
    sa.Column("job_id", sa.ForeignKey(job.c.id, ondelete="CASCADE"), primary_key=True, comment="The job."),
    required(
        "cascade_id", sa.ForeignKey(classifier_cascade.c.id, ondelete="CASCADE"), "Cascade to certify.", index=True
    ),
    required("alpha", sa.Numeric, "Share of what is served of each class that may be wrong."),
    required("certify", ARRAY(sa.Text), "Classes that are promised something: predicted, true, or both."),
    required("confidence", sa.Numeric, "Confidence that is asked for."),
    required("document_test", sa.Text, "How documents of several points are tested: finite-sample or asymptotic."),
    required("is_scheduled", sa.Boolean, "Whether nobody asked for it, but data arrived at the stages."),
    comment="What jobs of the kind certify are asked for.",
)
cascade_calibration_stage = sa.Table(
    "cascade_calibration_stage",
    metadata,
    required(
        "cascade_calibration_id",
        sa.ForeignKey(cascade_calibration.c.id, ondelete="CASCADE"),
        "The certificate.",
    ),
    required("place", sa.Integer, "Place of the stage."),
    required("calibration_id", sa.BigInteger, "Snapshot of the stage's classifier then, which may be gone by now."),
    required("score", sa.Text, "Score that the thresholds bound: network or reliability."),
    optional("knn_parameters_id", sa.BigInteger, "Parameters of that score; null for a classifier with logits only."),
    required("thresholds", ARRAY(sa.Double), "Least score at which each predicted class is served; null for never."),
    required("reached", sa.Integer, "Points of evidence that reach the stage."),
    required("served", ARRAY(sa.Integer), "Those of them that it serves, by predicted class."),
    required("served_right", ARRAY(sa.Integer), "Those of the served that are right."),
    sa.PrimaryKeyConstraint("cascade_calibration_id", "place"),
    sa.CheckConstraint("score IN ('network', 'reliability')", name="score"),
    comment="What each stage of a cascade serves of the evidence of a certificate.",
)
