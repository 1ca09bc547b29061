"""Classifiers, their exemplars, and the labels that arrive for them."""

import sqlalchemy as sa
from pgvector.sqlalchemy import VECTOR
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from venn_admit.store.database.tables.base import TIME, created_at, key, metadata, optional, required

classifier = sa.Table(
    "classifier",
    metadata,
    key("Key.", sa.Integer),
    required("name", sa.Text, "Name by which users refer to it.", unique=True),
    required("class_names", ARRAY(sa.Text), "Name of each class; the position is the class number."),
    optional("dimension", sa.Integer, "D, length of an exemplar vector; null if it has logits only."),
    optional("neighbour_count", sa.Integer, "K, neighbours of the KNN approximation; null if it has logits only."),
    required("knn_share", sa.Numeric, "Share of held-out labelled points in split knn; 0 if it has logits only."),
    required("mc_share", sa.Numeric, "Share in split mc; the rest is split vp."),
    required("seed", sa.BigInteger, "Seed of the split hash and of the training."),
    required(
        "support_revision",
        sa.Uuid,
        "Changes whenever the training exemplars change; identifies their cached copy.",
        server_default=sa.func.gen_random_uuid(),
    ),
    required(
        "support_version",
        sa.BigInteger,
        "Version of the training exemplars; ascends with every change, in one sequence with exemplar ids. "
        "Those with a higher id wait for jobs that are running.",
        server_default=sa.text("0"),
    ),
    required(
        "neighbours_support_version",
        sa.BigInteger,
        "Support version that all stored neighbour lists are complete to, whatever their rows say.",
        server_default=sa.text("0"),
    ),
    created_at("it was created"),
    optional("extractor", sa.Text, "Version of the extractor that its vectors come from; null if it was not stated."),
    required(
        "generation", sa.Integer, "Number among the generations of the same classifier.", server_default=sa.text("1")
    ),
    required(
        "is_current",
        sa.Boolean,
        "Whether the classifier's name stands for it; that of any other generation is NAME@NUMBER.",
        server_default=sa.text("true"),
    ),
    optional(
        "original_id",
        sa.ForeignKey("venn_admit.classifier.id"),
        "First generation of the same classifier; null if it is the first.",
    ),
    optional(
        "salt",
        sa.LargeBinary,
        "Random; tombstones are digests of it and an id. The same for all generations; null until there is one.",
    ),
    optional(
        "deleting_since",
        TIME,
        "When its deletion began, from when on it cannot be used; null if it is not being deleted.",
    ),
    sa.CheckConstraint("char_length(name) BETWEEN 1 AND 100", name="name"),
    sa.CheckConstraint("char_length(extractor) BETWEEN 1 AND 200", name="extractor"),
    # The first that is left need not be number 1.
    sa.CheckConstraint("generation >= 1 AND (generation > 1 OR original_id IS NULL)", name="generation"),
    sa.CheckConstraint("cardinality(class_names) >= 2", name="class_names"),
    sa.CheckConstraint("dimension BETWEEN 1 AND 16000", name="dimension"),
    sa.CheckConstraint("neighbour_count >= 1", name="neighbour_count"),
    # Without vectors there are no neighbours, and nothing to fit on split knn.
    sa.CheckConstraint("(dimension IS NULL) = (neighbour_count IS NULL)", name="knn"),
    sa.CheckConstraint(
        "knn_share >= 0 AND (knn_share = 0) = (dimension IS NULL) AND mc_share > 0 AND knn_share + mc_share < 1",
        name="shares",
    ),
    # Each generation of a classifier has a number of its own, and one is current.
    sa.Index("classifier_generation_idx", sa.text("coalesce(original_id, id)"), "generation", unique=True),
    sa.Index(
        "classifier_current_idx",
        sa.text("coalesce(original_id, id)"),
        unique=True,
        postgresql_where=sa.text("is_current"),
    ),
    comment="Deployed classifiers (the paper's tasks) whose predictions are calibrated, a row for each generation.",
)


exemplar = sa.Table(
    "exemplar",
    metadata,
    sa.Column(
        "id", sa.BigInteger, sa.Identity(always=False), primary_key=True, comment="Key; ascends in order of ingestion."
    ),
    required("classifier_id", sa.ForeignKey(classifier.c.id), "Classifier that it is an instance of."),
    required("external_id", sa.Text, "The user's id of the instance."),
    optional("document_id", sa.Text, "Document that the instance is part of; null if it stands alone."),
    required("split", sa.Text, "train, knn, mc, vp or scored."),
    required("network_logits", ARRAY(sa.REAL), "f, the network's logits, one per class."),
    required("network_predicted", sa.Integer, "argmax f; ties go to the lower class."),
    optional("label", sa.Integer, "Current label, from the latest label event; null while unknown."),
    required("attributes", JSONB, "Other values that the user supplied with it.", server_default=sa.text("'{}'")),
    required("content_digest", sa.LargeBinary, "BLAKE2b-128 of vector, logits and document id."),
    created_at("it was ingested"),
    optional(
        "point_digest",
        sa.LargeBinary,
        "BLAKE2b-128 of vector and logits alone, which copies share; null if it is the content digest, as there is no "
        "document, or was not computed yet.",
    ),
    sa.UniqueConstraint("classifier_id", "external_id"),
    sa.CheckConstraint("split IN ('train', 'knn', 'mc', 'vp', 'scored')", name="split"),
    sa.CheckConstraint("label >= 0", name="label"),
    # Without a label there is nothing to learn or calibrate from.
    sa.CheckConstraint("split = 'scored' OR label IS NOT NULL", name="labelled_split"),
    sa.Index(None, "classifier_id", "split", "id"),
    sa.Index(None, "classifier_id", "document_id", postgresql_where=sa.text("document_id IS NOT NULL")),
    # Copies among what calibrates and trains. Traffic may hold the same thing as often as it likes.
    sa.Index(
        "exemplar_copy_idx",
        sa.text("coalesce(point_digest, content_digest)"),
        "split",
        postgresql_where=sa.text("split <> 'scored'"),
    ),
    sa.Index(
        "exemplar_without_point_digest_idx",
        "classifier_id",
        "id",
        postgresql_where=sa.text("document_id IS NOT NULL AND point_digest IS NULL"),
    ),
    comment="Instances of a classifier: documents, or tokens of documents. Their vectors are in exemplar_vector.",
)


exemplar_vector = sa.Table(
    "exemplar_vector",
    metadata,
    required("classifier_id", sa.Integer, "Partition key: classifier of the exemplar."),
    required("support", sa.Boolean, "Partition key: whether it is a training exemplar."),
    required("exemplar_id", sa.ForeignKey(exemplar.c.id), "The exemplar."),
    required("vector", VECTOR, "r, the exemplar vector; each partition checks its length."),
    sa.PrimaryKeyConstraint("classifier_id", "support", "exemplar_id"),
    # An exemplar that is deleted is looked for by its id alone.
    sa.Index(None, "exemplar_id"),
    postgresql_partition_by="LIST (classifier_id)",
    comment="Exemplar vectors in a narrow table; create_vector_partitions_v2 makes two partitions per classifier.",
)


label_event = sa.Table(
    "label_event",
    metadata,
    key("Key; ascends in order of arrival."),
    required("exemplar_id", sa.ForeignKey(exemplar.c.id), "Exemplar that was labelled."),
    optional("label", sa.Integer, "Label given; null retracts the previous one."),
    required(
        "selection",
        sa.Text,
        "random, review if it was drawn with a known probability, or selected (by a person or by a rule).",
    ),
    required("source", sa.Text, "Origin of the label, such as the name of a file."),
    created_at("it arrived"),
    optional(
        "first_arrived_at",
        TIME,
        "When it arrived for another generation, from which it was carried over; null if it was not.",
    ),
    sa.CheckConstraint("selection IN ('random', 'review', 'selected')", name="selection"),
    sa.CheckConstraint("label >= 0", name="label"),
    sa.Index(None, "exemplar_id", "id"),
    # Those of a day. They are stored in the order of days, so that ranges of pages tell these apart.
    sa.Index(
        "label_event_day_idx",
        sa.text("((created_at AT TIME ZONE 'UTC')::date)"),
        postgresql_using="brin",
        postgresql_with={"pages_per_range": 32, "autosummarize": "on"},
    ),
    comment="Append-only ledger of labels. Selected points do not represent the traffic, and never calibrate.",
)


support_change = sa.Table(
    "support_change",
    metadata,
    required("classifier_id", sa.ForeignKey(classifier.c.id), "Classifier of the training exemplars."),
    required("version", sa.BigInteger, "Support version from which the change holds."),
    required("exemplar_id", sa.ForeignKey(exemplar.c.id), "Exemplar that changed."),
    required("kind", sa.Text, "added, removed or relabelled."),
    optional("label_before", sa.Integer, "Label before the change; null if it was not a training exemplar."),
    sa.PrimaryKeyConstraint("classifier_id", "version", "exemplar_id"),
    sa.CheckConstraint("kind IN ('added', 'removed', 'relabelled')", name="kind"),
    sa.CheckConstraint("(kind = 'added') = (label_before IS NULL)", name="label_before"),
    sa.Index(None, "exemplar_id"),
    comment="Changes of training exemplars, except their ingestion, whose version is the exemplar's id.",
)
