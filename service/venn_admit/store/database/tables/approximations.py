"""Neighbours, and the KNN approximation that rests on them."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from venn_admit.store.database.tables.base import created_at, metadata
from venn_admit.store.database.tables.exemplars import classifier, exemplar

neighbours = sa.Table(
    "neighbours",
    metadata,
    sa.Column("exemplar_id", sa.ForeignKey(exemplar.c.id), primary_key=True, comment="The point."),
    sa.Column(
        "support_version",
        sa.BigInteger,
        nullable=False,
        comment="Support version that the list was complete to when it was written.",
    ),
    sa.Column("neighbour_ids", ARRAY(sa.BigInteger), nullable=False, comment="K training exemplars, nearest first."),
    sa.Column(
        "distances", ARRAY(sa.Double), nullable=False, comment="Euclidean distances to these neighbours, ascending."
    ),
    sa.CheckConstraint("cardinality(neighbour_ids) = cardinality(distances)", name="lengths"),
    # Training exemplars with a higher id wait for the next version.
    sa.CheckConstraint("support_version >= ALL (neighbour_ids)", name="version"),
    # Whose lists hold a training exemplar that was removed or relabelled.
    sa.Index(None, "neighbour_ids", postgresql_using="gin"),
    comment="The exact K nearest training exemplars of each held-out or scored point, under any parameters.",
)


knn_parameters = sa.Table(
    "knn_parameters",
    metadata,
    sa.Column("id", sa.Integer, sa.Identity(always=True), primary_key=True, comment="Key."),
    sa.Column(
        "classifier_id", sa.ForeignKey(classifier.c.id), nullable=False, comment="Classifier that the KNN approximates."
    ),
    sa.Column("origin", sa.Text, nullable=False, comment="fitted (by venn-admit) or given (by the user)."),
    sa.Column("beta", ARRAY(sa.Double), nullable=False, comment="Bias of each class."),
    sa.Column("gamma", ARRAY(sa.Double), nullable=False, comment="Weight of the label term of each class."),
    sa.Column("eta", sa.Double, nullable=False, comment="Temperature of the neighbour weights, in units of distance."),
    sa.Column("eta_loc", sa.Double, nullable=False, comment="Temperature of the localizer, in units of distance."),
    sa.Column("fit_count", sa.Integer, comment="Points of the fit half; null if given."),
    sa.Column("dev_count", sa.Integer, comment="Points of the dev half; null if given."),
    sa.Column(
        "dev_discrepancies",
        sa.Integer,
        comment="Points of the dev half on which KNN and network differ; null if given.",
    ),
    sa.Column("is_current", sa.Boolean, nullable=False, comment="Whether new work uses these parameters."),
    created_at("it was fitted or given"),
    sa.Column("reliability", JSONB, comment="Model of the reliability score, fitted on knn; null if there is none."),
    sa.CheckConstraint("origin IN ('fitted', 'given')", name="origin"),
    sa.CheckConstraint("eta > 0 AND eta_loc > 0", name="temperatures"),
    # One set of parameters a classifier is in use at a time.
    sa.Index("knn_parameters_current_key", "classifier_id", unique=True, postgresql_where=sa.text("is_current")),
    comment="Parameters of the KNN approximation and the localizer, one row per fit.",
)


training_epoch = sa.Table(
    "training_epoch",
    metadata,
    sa.Column("knn_parameters_id", sa.ForeignKey(knn_parameters.c.id), nullable=False, comment="The fit."),
    sa.Column("model", sa.Text, nullable=False, comment="knn or localizer."),
    sa.Column("epoch", sa.Integer, nullable=False, comment="0 is the start, before any step."),
    sa.Column("loss", sa.Double, comment="Mean loss over the points that it was taken over; null if there were none."),
    sa.Column("masked", sa.Boolean, nullable=False, comment="Whether the loss was taken over discrepant points only."),
    sa.Column("discrepancies", sa.Integer, nullable=False, comment="Prediction discrepancies on the dev half."),
    sa.Column("parameters", ARRAY(sa.Double), nullable=False, comment="beta, gamma, eta; or eta_loc."),
    sa.PrimaryKeyConstraint("knn_parameters_id", "model", "epoch"),
    sa.CheckConstraint("model IN ('knn', 'localizer')", name="model"),
    comment="Training log, one row per epoch.",
)


approximation = sa.Table(
    "approximation",
    metadata,
    sa.Column(
        "knn_parameters_id",
        sa.ForeignKey(knn_parameters.c.id),
        nullable=False,
        comment="KNN parameters that it rests on.",
    ),
    sa.Column("exemplar_id", sa.ForeignKey(exemplar.c.id), nullable=False, comment="The point."),
    sa.Column("support_version", sa.BigInteger, nullable=False, comment="Support version at which it was computed."),
    sa.Column("predicted", sa.Integer, nullable=False, comment="argmax KNN; ties go to the lower class."),
    sa.Column(
        "match_count",
        sa.Integer,
        nullable=False,
        comment="q, number of consecutive nearest neighbours that match the prediction.",
    ),
    sa.Column("distance", sa.Double, nullable=False, comment="d, distance to the nearest training exemplar."),
    sa.Column("logits", ARRAY(sa.Double), nullable=False, comment="KNN(x), one per class."),
    sa.PrimaryKeyConstraint("knn_parameters_id", "exemplar_id"),
    sa.Index(None, "exemplar_id"),
    comment="The KNN approximation of each point, from its stored neighbours.",
)
