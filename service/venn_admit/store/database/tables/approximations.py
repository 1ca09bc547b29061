"""Neighbours, and the KNN approximation that rests on them."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from venn_admit.store.database.tables.base import created_at, metadata
from venn_admit.store.database.tables.exemplars import classifier, exemplar

neighbours = Table(
    "neighbours",
    metadata,
    Column("exemplar_id", ForeignKey(exemplar.c.id), primary_key=True, comment="The point."),
    Column(
        "support_version",
        BigInteger,
        nullable=False,
        comment="Support version that the list was complete to when it was written.",
    ),
    Column("neighbour_ids", ARRAY(BigInteger), nullable=False, comment="K training exemplars, nearest first."),
    Column("distances", ARRAY(Double), nullable=False, comment="Euclidean distances to these neighbours, ascending."),
    CheckConstraint("cardinality(neighbour_ids) = cardinality(distances)", name="lengths"),
    # Training exemplars with a higher id wait for the next version.
    CheckConstraint("support_version >= ALL (neighbour_ids)", name="version"),
    # Whose lists hold a training exemplar that was removed or relabelled.
    Index(None, "neighbour_ids", postgresql_using="gin"),
    comment="The exact K nearest training exemplars of each held-out or scored point, under any parameters.",
)


knn_parameters = Table(
    "knn_parameters",
    metadata,
    Column("id", Integer, Identity(always=True), primary_key=True, comment="Key."),
    Column(
        "classifier_id", ForeignKey(classifier.c.id), nullable=False, comment="Classifier that the KNN approximates."
    ),
    Column("origin", Text, nullable=False, comment="fitted (by venn-admit) or given (by the user)."),
    Column("beta", ARRAY(Double), nullable=False, comment="Bias of each class."),
    Column("gamma", ARRAY(Double), nullable=False, comment="Weight of the label term of each class."),
    Column("eta", Double, nullable=False, comment="Temperature of the neighbour weights, in units of distance."),
    Column("eta_loc", Double, nullable=False, comment="Temperature of the localizer, in units of distance."),
    Column("fit_count", Integer, comment="Points of the fit half; null if given."),
    Column("dev_count", Integer, comment="Points of the dev half; null if given."),
    Column(
        "dev_discrepancies", Integer, comment="Points of the dev half on which KNN and network differ; null if given."
    ),
    Column("is_current", Boolean, nullable=False, comment="Whether new work uses these parameters."),
    created_at("it was fitted or given"),
    Column("reliability", JSONB, comment="Model of the reliability score, fitted on knn; null if there is none."),
    CheckConstraint("origin IN ('fitted', 'given')", name="origin"),
    CheckConstraint("eta > 0 AND eta_loc > 0", name="temperatures"),
    # One set of parameters a classifier is in use at a time.
    Index("knn_parameters_current_key", "classifier_id", unique=True, postgresql_where=text("is_current")),
    comment="Parameters of the KNN approximation and the localizer, one row per fit.",
)


training_epoch = Table(
    "training_epoch",
    metadata,
    Column("knn_parameters_id", ForeignKey(knn_parameters.c.id), nullable=False, comment="The fit."),
    Column("model", Text, nullable=False, comment="knn or localizer."),
    Column("epoch", Integer, nullable=False, comment="0 is the start, before any step."),
    Column("loss", Double, comment="Mean loss over the points that it was taken over; null if there were none."),
    Column("masked", Boolean, nullable=False, comment="Whether the loss was taken over discrepant points only."),
    Column("discrepancies", Integer, nullable=False, comment="Prediction discrepancies on the dev half."),
    Column("parameters", ARRAY(Double), nullable=False, comment="beta, gamma, eta; or eta_loc."),
    PrimaryKeyConstraint("knn_parameters_id", "model", "epoch"),
    CheckConstraint("model IN ('knn', 'localizer')", name="model"),
    comment="Training log, one row per epoch.",
)


approximation = Table(
    "approximation",
    metadata,
    Column(
        "knn_parameters_id", ForeignKey(knn_parameters.c.id), nullable=False, comment="KNN parameters that it rests on."
    ),
    Column("exemplar_id", ForeignKey(exemplar.c.id), nullable=False, comment="The point."),
    Column("support_version", BigInteger, nullable=False, comment="Support version at which it was computed."),
    Column("predicted", Integer, nullable=False, comment="argmax KNN; ties go to the lower class."),
    Column(
        "match_count",
        Integer,
        nullable=False,
        comment="q, number of consecutive nearest neighbours that match the prediction.",
    ),
    Column("distance", Double, nullable=False, comment="d, distance to the nearest training exemplar."),
    Column("logits", ARRAY(Double), nullable=False, comment="KNN(x), one per class."),
    PrimaryKeyConstraint("knn_parameters_id", "exemplar_id"),
    Index(None, "exemplar_id"),
    comment="The KNN approximation of each point, from its stored neighbours.",
)
