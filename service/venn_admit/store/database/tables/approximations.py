"""Neighbours, and the KNN approximation that rests on them."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from venn_admit.store.database.tables.base import created_at, key, metadata, optional, required
from venn_admit.store.database.tables.exemplars import classifier, exemplar

neighbours = sa.Table(
    "neighbours",
    metadata,
    sa.Column("exemplar_id", sa.ForeignKey(exemplar.c.id), primary_key=True, comment="The point."),
    required("support_version", sa.BigInteger, "Support version that the list was complete to when it was written."),
    required("neighbour_ids", ARRAY(sa.BigInteger), "K training exemplars, nearest first."),
    required("distances", ARRAY(sa.Double), "Euclidean distances to these neighbours, ascending."),
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
    key("Key.", sa.Integer),
    required("classifier_id", sa.ForeignKey(classifier.c.id), "Classifier that the KNN approximates."),
    required("origin", sa.Text, "fitted (by venn-admit) or given (by the user)."),
    required("beta", ARRAY(sa.Double), "Bias of each class."),
    required("gamma", ARRAY(sa.Double), "Weight of the label term of each class."),
    required("eta", sa.Double, "Temperature of the neighbour weights, in units of distance."),
    required("eta_loc", sa.Double, "Temperature of the localizer, in units of distance."),
    optional("fit_count", sa.Integer, "Points of the fit half; null if given."),
    optional("dev_count", sa.Integer, "Points of the dev half; null if given."),
    optional("dev_discrepancies", sa.Integer, "Points of the dev half on which KNN and network differ; null if given."),
    required("is_current", sa.Boolean, "Whether new work uses these parameters."),
    created_at("it was fitted or given"),
    optional("reliability", JSONB, "Model of the reliability score, fitted on knn; null if there is none."),
    optional(
        "full_matches", sa.Double, "Share of split knn with q = K; null if given, or fitted before this was stored."
    ),
    sa.CheckConstraint("origin IN ('fitted', 'given')", name="origin"),
    sa.CheckConstraint("eta > 0 AND eta_loc > 0", name="temperatures"),
    # One set of parameters a classifier is in use at a time.
    sa.Index("knn_parameters_current_key", "classifier_id", unique=True, postgresql_where=sa.text("is_current")),
    comment="Parameters of the KNN approximation and the localizer, one row per fit.",
)


training_epoch = sa.Table(
    "training_epoch",
    metadata,
    required("knn_parameters_id", sa.ForeignKey(knn_parameters.c.id), "The fit."),
    required("model", sa.Text, "knn or localizer."),
    required("epoch", sa.Integer, "0 is the start, before any step."),
    optional("loss", sa.Double, "Mean loss over the points that it was taken over; null if there were none."),
    required("masked", sa.Boolean, "Whether the loss was taken over discrepant points only."),
    required("discrepancies", sa.Integer, "Prediction discrepancies on the dev half."),
    required("parameters", ARRAY(sa.Double), "beta, gamma, eta; or eta_loc."),
    sa.PrimaryKeyConstraint("knn_parameters_id", "model", "epoch"),
    sa.CheckConstraint("model IN ('knn', 'localizer')", name="model"),
    comment="Training log, one row per epoch.",
)


approximation = sa.Table(
    "approximation",
    metadata,
    required("knn_parameters_id", sa.ForeignKey(knn_parameters.c.id), "KNN parameters that it rests on."),
    required("exemplar_id", sa.ForeignKey(exemplar.c.id), "The point."),
    required("support_version", sa.BigInteger, "Support version at which it was computed."),
    required("predicted", sa.Integer, "argmax KNN; ties go to the lower class."),
    required("match_count", sa.Integer, "q, number of consecutive nearest neighbours that match the prediction."),
    required("distance", sa.Double, "d, distance to the nearest training exemplar."),
    required("logits", ARRAY(sa.Double), "KNN(x), one per class."),
    sa.PrimaryKeyConstraint("knn_parameters_id", "exemplar_id"),
    sa.Index(None, "exemplar_id"),
    comment="The KNN approximation of each point, from its stored neighbours.",
)
