"""Classifiers, their exemplars, and the labels that arrive for them."""

from pgvector.sqlalchemy import VECTOR
from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    Numeric,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from venn_admit.store.database.tables.base import created_at, metadata

classifier = Table(
    "classifier",
    metadata,
    Column("id", Integer, Identity(always=True), primary_key=True, comment="Key."),
    Column("name", Text, nullable=False, unique=True, comment="Name by which users refer to it."),
    Column("class_names", ARRAY(Text), nullable=False, comment="Name of each class; the position is the class number."),
    Column("dimension", Integer, comment="D, length of an exemplar vector; null if it has logits only."),
    Column("neighbour_count", Integer, comment="K, neighbours of the KNN approximation; null if it has logits only."),
    Column(
        "knn_share",
        Numeric,
        nullable=False,
        comment="Share of held-out labelled points in split knn; 0 if it has logits only.",
    ),
    Column("mc_share", Numeric, nullable=False, comment="Share in split mc; the rest is split vp."),
    Column("seed", BigInteger, nullable=False, comment="Seed of the split hash and of the training."),
    Column(
        "support_revision",
        Uuid,
        nullable=False,
        server_default=func.gen_random_uuid(),
        comment="Changes whenever the training exemplars change; identifies their cached copy.",
    ),
    Column(
        "support_version",
        BigInteger,
        nullable=False,
        server_default=text("0"),
        comment="Version of the training exemplars; ascends with every change, in one sequence with exemplar ids. "
        "Those with a higher id wait for jobs that are running.",
    ),
    Column(
        "neighbours_support_version",
        BigInteger,
        nullable=False,
        server_default=text("0"),
        comment="Support version that all stored neighbour lists are complete to, whatever their rows say.",
    ),
    created_at("it was created"),
    Column(
        "extractor",
        Text,
        comment="Version of the extractor that its vectors come from; null if it was not stated.",
    ),
    Column(
        "generation",
        Integer,
        nullable=False,
        server_default=text("1"),
        comment="Number among the generations of the same classifier.",
    ),
    Column(
        "is_current",
        Boolean,
        nullable=False,
        server_default=text("true"),
        comment="Whether the classifier's name stands for it; that of any other generation is NAME@NUMBER.",
    ),
    Column(
        "original_id",
        ForeignKey("venn_admit.classifier.id"),
        comment="First generation of the same classifier; null if it is the first.",
    ),
    Column(
        "salt",
        LargeBinary,
        comment="Random; tombstones are digests of it and an id. The same for all generations; null until there is "
        "one.",
    ),
    Column(
        "deleting_since",
        DateTime(timezone=True),
        comment="When its deletion began, from when on it cannot be used; null if it is not being deleted.",
    ),
    CheckConstraint("char_length(name) BETWEEN 1 AND 100", name="name"),
    CheckConstraint("char_length(extractor) BETWEEN 1 AND 200", name="extractor"),
    # The first that is left need not be number 1.
    CheckConstraint("generation >= 1 AND (generation > 1 OR original_id IS NULL)", name="generation"),
    CheckConstraint("cardinality(class_names) >= 2", name="class_names"),
    CheckConstraint("dimension BETWEEN 1 AND 16000", name="dimension"),
    CheckConstraint("neighbour_count >= 1", name="neighbour_count"),
    # Without vectors there are no neighbours, and nothing to fit on split knn.
    CheckConstraint("(dimension IS NULL) = (neighbour_count IS NULL)", name="knn"),
    CheckConstraint(
        "knn_share >= 0 AND (knn_share = 0) = (dimension IS NULL) AND mc_share > 0 AND knn_share + mc_share < 1",
        name="shares",
    ),
    # Each generation of a classifier has a number of its own, and one is current.
    Index("classifier_generation_idx", text("coalesce(original_id, id)"), "generation", unique=True),
    Index(
        "classifier_current_idx",
        text("coalesce(original_id, id)"),
        unique=True,
        postgresql_where=text("is_current"),
    ),
    comment="Deployed classifiers (the paper's tasks) whose predictions are calibrated, a row for each generation.",
)


exemplar = Table(
    "exemplar",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True, comment="Key; ascends in order of ingestion."),
    Column(
        "classifier_id", ForeignKey(classifier.c.id), nullable=False, comment="Classifier that it is an instance of."
    ),
    Column("external_id", Text, nullable=False, comment="The user's id of the instance."),
    Column("document_id", Text, comment="Document that the instance is part of; null if it stands alone."),
    Column("split", Text, nullable=False, comment="train, knn, mc, vp or scored."),
    Column("network_logits", ARRAY(REAL), nullable=False, comment="f, the network's logits, one per class."),
    Column("network_predicted", Integer, nullable=False, comment="argmax f; ties go to the lower class."),
    Column("label", Integer, comment="Current label, from the latest label event; null while unknown."),
    Column(
        "attributes",
        JSONB,
        nullable=False,
        server_default=text("'{}'"),
        comment="Other values that the user supplied with it.",
    ),
    Column("content_digest", LargeBinary, nullable=False, comment="BLAKE2b-128 of vector, logits and document id."),
    created_at("it was ingested"),
    UniqueConstraint("classifier_id", "external_id"),
    CheckConstraint("split IN ('train', 'knn', 'mc', 'vp', 'scored')", name="split"),
    CheckConstraint("label >= 0", name="label"),
    # Without a label there is nothing to learn or calibrate from.
    CheckConstraint("split = 'scored' OR label IS NOT NULL", name="labelled_split"),
    Index(None, "classifier_id", "split", "id"),
    Index(None, "classifier_id", "document_id", postgresql_where=text("document_id IS NOT NULL")),
    comment="Instances of a classifier: documents, or tokens of documents. Their vectors are in exemplar_vector.",
)


exemplar_vector = Table(
    "exemplar_vector",
    metadata,
    Column("classifier_id", Integer, nullable=False, comment="Partition key: classifier of the exemplar."),
    Column("support", Boolean, nullable=False, comment="Partition key: whether it is a training exemplar."),
    Column("exemplar_id", ForeignKey(exemplar.c.id), nullable=False, comment="The exemplar."),
    Column("vector", VECTOR, nullable=False, comment="r, the exemplar vector; each partition checks its length."),
    PrimaryKeyConstraint("classifier_id", "support", "exemplar_id"),
    # An exemplar that is deleted is looked for by its id alone.
    Index(None, "exemplar_id"),
    postgresql_partition_by="LIST (classifier_id)",
    comment="Exemplar vectors in a narrow table; create_vector_partitions_v2 makes two partitions per classifier.",
)


label_event = Table(
    "label_event",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True, comment="Key; ascends in order of arrival."),
    Column("exemplar_id", ForeignKey(exemplar.c.id), nullable=False, comment="Exemplar that was labelled."),
    Column("label", Integer, comment="Label given; null retracts the previous one."),
    Column("selection", Text, nullable=False, comment="random, or selected (by a person or by a rule)."),
    Column("source", Text, nullable=False, comment="Origin of the label, such as the name of a file."),
    created_at("it arrived"),
    Column(
        "first_arrived_at",
        DateTime(timezone=True),
        comment="When it arrived for another generation, from which it was carried over; null if it was not.",
    ),
    CheckConstraint("selection IN ('random', 'selected')", name="selection"),
    CheckConstraint("label >= 0", name="label"),
    Index(None, "exemplar_id", "id"),
    # Those of a day. They are stored in the order of days, so that ranges of pages tell these apart.
    Index(
        "label_event_day_idx",
        text("((created_at AT TIME ZONE 'UTC')::date)"),
        postgresql_using="brin",
        postgresql_with={"pages_per_range": 32, "autosummarize": "on"},
    ),
    comment="Append-only ledger of labels. Only random ones calibrate: selected points do not represent the traffic.",
)


support_change = Table(
    "support_change",
    metadata,
    Column(
        "classifier_id", ForeignKey(classifier.c.id), nullable=False, comment="Classifier of the training exemplars."
    ),
    Column("version", BigInteger, nullable=False, comment="Support version from which the change holds."),
    Column("exemplar_id", ForeignKey(exemplar.c.id), nullable=False, comment="Exemplar that changed."),
    Column("kind", Text, nullable=False, comment="added, removed or relabelled."),
    Column("label_before", Integer, comment="Label before the change; null if it was not a training exemplar."),
    PrimaryKeyConstraint("classifier_id", "version", "exemplar_id"),
    CheckConstraint("kind IN ('added', 'removed', 'relabelled')", name="kind"),
    CheckConstraint("(kind = 'added') = (label_before IS NULL)", name="label_before"),
    Index(None, "exemplar_id"),
    comment="Changes of training exemplars, except their ingestion, whose version is the exemplar's id.",
)
