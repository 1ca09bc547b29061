"""The tables, as SQLAlchemy metadata: the model that migrations are checked against.

Statements live in `sql/*.sql`; nothing here is used to assemble queries. Tables are private to this
package: reports and outsiders read the views in schema `report`.
"""

from datetime import datetime

from pgvector.sqlalchemy import VECTOR
from sqlalchemy import (
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, BIT, JSONB

SCHEMA = "venn_admit"

metadata = MetaData(
    schema=SCHEMA,
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    },
)


def _created_at(what: str) -> Column[datetime]:
    return Column(
        "created_at", DateTime(timezone=True), nullable=False, server_default=func.now(), comment=f"When {what}."
    )


classifier = Table(
    "classifier",
    metadata,
    Column("id", Integer, Identity(always=True), primary_key=True, comment="Key."),
    Column("name", Text, nullable=False, unique=True, comment="What users call it."),
    Column("class_names", ARRAY(Text), nullable=False, comment="Name of each class; position is the class number."),
    Column("dimension", Integer, nullable=False, comment="D, length of an exemplar vector."),
    Column("neighbour_count", Integer, nullable=False, comment="K, neighbours of the KNN approximation."),
    Column("knn_share", Numeric, nullable=False, comment="Share of held-out labelled points in split knn."),
    Column("mc_share", Numeric, nullable=False, comment="Share in split mc; the rest is split vp."),
    Column("seed", BigInteger, nullable=False, comment="Seed of the split hash and of training."),
    Column(
        "support_revision",
        Uuid,
        nullable=False,
        server_default=func.gen_random_uuid(),
        comment="Changes with every change of the training exemplars; names their cached copy.",
    ),
    Column(
        "support_version",
        BigInteger,
        nullable=False,
        server_default=text("0"),
        comment="Of the training exemplars: ascends with every change, in one sequence with exemplar ids.",
    ),
    Column(
        "neighbours_support_version",
        BigInteger,
        nullable=False,
        server_default=text("0"),
        comment="Support version that all neighbour lists stored are complete to, whatever their rows say.",
    ),
    _created_at("it was created"),
    CheckConstraint("char_length(name) BETWEEN 1 AND 100", name="name"),
    CheckConstraint("cardinality(class_names) >= 2", name="class_names"),
    CheckConstraint("dimension BETWEEN 1 AND 16000", name="dimension"),
    CheckConstraint("neighbour_count >= 1", name="neighbour_count"),
    CheckConstraint("knn_share > 0 AND mc_share > 0 AND knn_share + mc_share < 1", name="shares"),
    comment="A deployed classifier (the paper's task) whose predictions are calibrated.",
)

exemplar = Table(
    "exemplar",
    metadata,
    Column("id", BigInteger, Identity(always=False), primary_key=True, comment="Key; ascends in order of ingestion."),
    Column("classifier_id", ForeignKey(classifier.c.id), nullable=False, comment="Whose instance it is."),
    Column("external_id", Text, nullable=False, comment="The user's id of the instance."),
    Column("document_id", Text, comment="Document the instance is part of; null where it stands alone."),
    Column("split", Text, nullable=False, comment="train, knn, mc, vp or scored."),
    Column("network_logits", ARRAY(REAL), nullable=False, comment="f, the network's logits, one a class."),
    Column("network_predicted", Integer, nullable=False, comment="argmax f, ties to the lower class."),
    Column("label", Integer, comment="Current label: that of the latest label event; null while unknown."),
    Column("attributes", JSONB, nullable=False, server_default=text("'{}'"), comment="What else the user gave."),
    Column("content_digest", LargeBinary, nullable=False, comment="BLAKE2b-128 of vector, logits and document id."),
    _created_at("it was ingested"),
    UniqueConstraint("classifier_id", "external_id"),
    CheckConstraint("split IN ('train', 'knn', 'mc', 'vp', 'scored')", name="split"),
    CheckConstraint("label >= 0", name="label"),
    # Without a label there is nothing to learn or calibrate from.
    CheckConstraint("split = 'scored' OR label IS NOT NULL", name="labelled_split"),
    Index(None, "classifier_id", "split", "id"),
    comment="One instance of a classifier: a document, or a token of one. Its vector is in exemplar_vector.",
)

exemplar_vector = Table(
    "exemplar_vector",
    metadata,
    Column("classifier_id", Integer, nullable=False, comment="Partition key: whose exemplar it is."),
    Column("support", Boolean, nullable=False, comment="Partition key: whether it is a training exemplar."),
    Column("exemplar_id", ForeignKey(exemplar.c.id), nullable=False, comment="The exemplar."),
    Column("vector", VECTOR, nullable=False, comment="r, the exemplar vector; each partition checks its length."),
    PrimaryKeyConstraint("classifier_id", "support", "exemplar_id"),
    postgresql_partition_by="LIST (classifier_id)",
    comment="Exemplar vectors, apart and narrow; two partitions a classifier, made by create_vector_partitions_v2.",
)

label_event = Table(
    "label_event",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True, comment="Key; ascends in order of arrival."),
    Column("exemplar_id", ForeignKey(exemplar.c.id), nullable=False, comment="What was labelled."),
    Column("label", Integer, comment="The label given; null retracts the one before."),
    Column("selection", Text, nullable=False, comment="random, or selected by someone or by a rule."),
    Column("source", Text, nullable=False, comment="Where it came from, such as a file's name."),
    _created_at("it arrived"),
    CheckConstraint("selection IN ('random', 'selected')", name="selection"),
    CheckConstraint("label >= 0", name="label"),
    Index(None, "exemplar_id", "id"),
    comment="Append-only ledger of labels. Only random ones calibrate: a chosen set is not like the traffic.",
)

support_change = Table(
    "support_change",
    metadata,
    Column("classifier_id", ForeignKey(classifier.c.id), nullable=False, comment="Whose training exemplars."),
    Column("version", BigInteger, nullable=False, comment="Support version from which on it holds."),
    Column("exemplar_id", ForeignKey(exemplar.c.id), nullable=False, comment="What changed."),
    Column("kind", Text, nullable=False, comment="added, removed or relabelled."),
    Column("label_before", Integer, comment="Label until then; null where it was no training exemplar."),
    PrimaryKeyConstraint("classifier_id", "version", "exemplar_id"),
    CheckConstraint("kind IN ('added', 'removed', 'relabelled')", name="kind"),
    CheckConstraint("(kind = 'added') = (label_before IS NULL)", name="label_before"),
    comment="Changes of training exemplars but their ingestion, whose version is the exemplar's id.",
)

neighbours = Table(
    "neighbours",
    metadata,
    Column("exemplar_id", ForeignKey(exemplar.c.id), primary_key=True, comment="The point."),
    Column("support_version", BigInteger, nullable=False, comment="Support version it was complete to when written."),
    Column("neighbour_ids", ARRAY(BigInteger), nullable=False, comment="K training exemplars, nearest first."),
    Column("distances", ARRAY(Double), nullable=False, comment="Their Euclidean distances, ascending."),
    CheckConstraint("cardinality(neighbour_ids) = cardinality(distances)", name="lengths"),
    # Whose lists hold a training exemplar that was removed or relabelled.
    Index(None, "neighbour_ids", postgresql_using="gin"),
    comment="The exact K nearest training exemplars of each held-out or scored point, under any parameters.",
)

knn_parameters = Table(
    "knn_parameters",
    metadata,
    Column("id", Integer, Identity(always=True), primary_key=True, comment="Key."),
    Column("classifier_id", ForeignKey(classifier.c.id), nullable=False, comment="Whose KNN it is."),
    Column("origin", Text, nullable=False, comment="fitted here, or given by the user."),
    Column("beta", ARRAY(Double), nullable=False, comment="Bias of each class."),
    Column("gamma", ARRAY(Double), nullable=False, comment="Weight of the label term of each class."),
    Column("eta", Double, nullable=False, comment="Temperature of the neighbour weights, in units of distance."),
    Column("eta_loc", Double, nullable=False, comment="Temperature of the localizer, in units of distance."),
    Column("fit_count", Integer, comment="Points of the fit half; null where given."),
    Column("dev_count", Integer, comment="Points of the dev half; null where given."),
    Column("dev_discrepancies", Integer, comment="Dev points where KNN and network differ; null where given."),
    Column("is_current", Boolean, nullable=False, comment="Whether new work uses it."),
    _created_at("it was fitted or given"),
    CheckConstraint("origin IN ('fitted', 'given')", name="origin"),
    CheckConstraint("eta > 0 AND eta_loc > 0", name="temperatures"),
    # One set of parameters a classifier is in use at a time.
    Index("knn_parameters_current_key", "classifier_id", unique=True, postgresql_where=text("is_current")),
    comment="Parameters of the KNN approximation and the localizer, one row a fit.",
)

training_epoch = Table(
    "training_epoch",
    metadata,
    Column("knn_parameters_id", ForeignKey(knn_parameters.c.id), nullable=False, comment="Which fit."),
    Column("model", Text, nullable=False, comment="knn or localizer."),
    Column("epoch", Integer, nullable=False, comment="0 is the start, before any step."),
    Column("loss", Double, comment="Mean loss over the points it was taken over; null where none was taken."),
    Column("masked", Boolean, nullable=False, comment="Whether the loss was over discrepant points only."),
    Column("discrepancies", Integer, nullable=False, comment="Prediction discrepancies on the dev half."),
    Column("parameters", ARRAY(Double), nullable=False, comment="beta, gamma, eta; or eta_loc."),
    PrimaryKeyConstraint("knn_parameters_id", "model", "epoch"),
    CheckConstraint("model IN ('knn', 'localizer')", name="model"),
    comment="Training log, one row an epoch.",
)

approximation = Table(
    "approximation",
    metadata,
    Column("knn_parameters_id", ForeignKey(knn_parameters.c.id), nullable=False, comment="Under which parameters."),
    Column("exemplar_id", ForeignKey(exemplar.c.id), nullable=False, comment="The point."),
    Column("support_version", BigInteger, nullable=False, comment="Support version it was computed at."),
    Column("predicted", Integer, nullable=False, comment="argmax KNN, ties to the lower class."),
    Column("match_count", Integer, nullable=False, comment="q, matches among consecutive nearest neighbours."),
    Column("distance", Double, nullable=False, comment="d, distance to the nearest training exemplar."),
    Column("logits", ARRAY(Double), nullable=False, comment="KNN(x), one a class."),
    PrimaryKeyConstraint("knn_parameters_id", "exemplar_id"),
    comment="The KNN approximation of each point, from its stored neighbours.",
)

calibrator = Table(
    "calibrator",
    metadata,
    Column("id", Integer, Identity(always=True), primary_key=True, comment="Key."),
    Column("classifier_id", ForeignKey(classifier.c.id), nullable=False, comment="What it calibrates."),
    Column("settings_digest", LargeBinary, nullable=False, comment="BLAKE2b-128 of the settings that follow."),
    Column("alpha", Numeric, nullable=False, comment="Error level, exact."),
    Column("delta", Double, nullable=False, comment="Band radius in standard deviations of d; may be infinite."),
    Column("kappa", Integer, nullable=False, comment="Least number of points of each class in a band."),
    Column("bin_edges", ARRAY(Integer), nullable=False, comment="Lower edges of the bins of q, the first 0."),
    Column("thresholds", ARRAY(Numeric), nullable=False, comment="Least lower probability per predicted class."),
    _created_at("it was first asked for"),
    Column(
        "chosen_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=func.now(),
        comment="When `calibrate` last asked for it; the latest of a classifier's is the one in use.",
    ),
    Column(
        "retired_at",
        DateTime(timezone=True),
        comment="When it was retired; null while its calibration is kept current.",
    ),
    # Of the digest: a thousand thresholds do not fit an index.
    UniqueConstraint("classifier_id", "settings_digest"),
    CheckConstraint("alpha > 0 AND alpha < 1", name="alpha"),
    CheckConstraint("delta > 0", name="delta"),
    CheckConstraint("kappa >= 1", name="kappa"),
    CheckConstraint("1 - alpha <= ALL (thresholds) AND 1 >= ALL (thresholds)", name="thresholds"),
    comment="A setting under which a classifier is calibrated.",
)

calibration = Table(
    "calibration",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True, comment="Key; what a decision is pinned to."),
    Column("calibrator_id", ForeignKey(calibrator.c.id), nullable=False, comment="Under which setting."),
    Column("number", Integer, nullable=False, comment="1, 2, ... within the calibrator; validity is counted in it."),
    Column("revision", Uuid, nullable=False, server_default=func.gen_random_uuid(), comment="Names its cached copy."),
    Column("knn_parameters_id", ForeignKey(knn_parameters.c.id), nullable=False, comment="Under which parameters."),
    Column("s_hat", Double, nullable=False, comment="Sample standard deviation of d over mc, q > 0, predicted right."),
    Column("omega", Double, nullable=False, comment="Band radius, delta * s_hat."),
    Column("mc_count", Integer, nullable=False, comment="Points of split mc."),
    Column("vp_count", Integer, nullable=False, comment="Points of split vp."),
    Column("reason", Text, nullable=False, comment="Why it was made."),
    Column("state", Text, nullable=False, comment="current or retired."),
    _created_at("it became current"),
    UniqueConstraint("calibrator_id", "number"),
    CheckConstraint("state IN ('current', 'retired')", name="state"),
    CheckConstraint("number >= 1", name="number"),
    # Readers take the current snapshot; there is never a second one.
    Index("calibration_current_key", "calibrator_id", unique=True, postgresql_where=text("state = 'current'")),
    comment="Immutable numbered snapshots of a calibrator.",
)

calibration_point = Table(
    "calibration_point",
    metadata,
    Column("calibrator_id", ForeignKey(calibrator.c.id), nullable=False, comment="Whose point."),
    Column("exemplar_id", ForeignKey(exemplar.c.id), nullable=False, comment="The exemplar."),
    Column("valid_from", Integer, nullable=False, comment="First snapshot number that holds this row."),
    Column("valid_until", Integer, comment="First snapshot number that no longer does; null while it holds."),
    Column("split", Text, nullable=False, comment="mc or vp."),
    Column("label", Integer, nullable=False, comment="y."),
    Column("predicted", Integer, nullable=False, comment="KNN's prediction."),
    Column("match_count", Integer, nullable=False, comment="q."),
    Column("bin", Integer, nullable=False, comment="Bin of q under the calibrator's edges."),
    Column("distance", Double, nullable=False, comment="d."),
    Column("score", Double, nullable=False, comment="Nonconformity score of the label, 1 - pi^y."),
    Column("admit_set", BIT(varying=True), comment="ADMIT set, a bit a class; null in mc."),
    Column(
        "is_singleton",
        Boolean,
        Computed("bit_count(admit_set) = 1", persisted=True),
        comment="Whether the ADMIT set is {predicted}; null in mc.",
    ),
    PrimaryKeyConstraint("calibrator_id", "exemplar_id", "valid_from"),
    CheckConstraint("split IN ('mc', 'vp')", name="split"),
    CheckConstraint("(split = 'vp') = (admit_set IS NOT NULL)", name="admit_set"),
    CheckConstraint("valid_until > valid_from", name="validity"),
    # One open row an exemplar.
    Index(
        "calibration_point_open_key",
        "calibrator_id",
        "exemplar_id",
        unique=True,
        postgresql_where=text("valid_until IS NULL"),
    ),
    # A band query reads this index alone.
    Index(
        "calibration_point_band_idx",
        "calibrator_id",
        "split",
        "bin",
        "distance",
        postgresql_include=["label", "predicted", "score", "is_singleton"],
        postgresql_where=text("valid_until IS NULL"),
    ),
    comment="Row-versioned calibration data: a snapshot is the rows valid at its number.",
)

job = Table(
    "job",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True, comment="Key."),
    Column("classifier_id", ForeignKey(classifier.c.id), nullable=False, comment="Whose work."),
    Column("kind", Text, nullable=False, comment="approximate or score."),
    Column("state", Text, nullable=False, comment="running, done, failed or cancelled."),
    Column("knn_parameters_id", ForeignKey(knn_parameters.c.id), comment="Parameters to use; null: neighbours only."),
    Column("calibration_id", ForeignKey(calibration.c.id), comment="Snapshot to score with; null for other kinds."),
    Column("weighted", Boolean, comment="Score: whether the Venn probabilities are up-weighted; null otherwise."),
    Column("require_full_match", Boolean, comment="Score: whether q < K is rejected; null otherwise."),
    Column("support_version", BigInteger, comment="Neighbour lists are all complete to it once done; null: not all."),
    Column("row_count", Integer, nullable=False, comment="Rows in job_row."),
    Column("error", Text, comment="Why it failed."),
    _created_at("it was requested"),
    Column("finished_at", DateTime(timezone=True), comment="When it was done, failed or was cancelled."),
    CheckConstraint("kind IN ('approximate', 'score')", name="kind"),
    CheckConstraint("state IN ('running', 'done', 'failed', 'cancelled')", name="state"),
    CheckConstraint("(state = 'running') = (finished_at IS NULL)", name="finished"),
    CheckConstraint(
        "(kind = 'score') = (calibration_id IS NOT NULL AND weighted IS NOT NULL AND require_full_match IS NOT NULL)",
        name="score",
    ),
    Index("job_running_idx", "id", postgresql_where=text("state = 'running'")),
    comment="Work to do. Its chunks are the record; a message to a worker is only a wake-up.",
)

job_row = Table(
    "job_row",
    metadata,
    Column("job_id", ForeignKey(job.c.id), nullable=False, comment="The job."),
    Column("row_number", Integer, nullable=False, comment="0, 1, ...: the order of the request."),
    Column("exemplar_id", ForeignKey(exemplar.c.id), nullable=False, comment="What to compute."),
    PrimaryKeyConstraint("job_id", "row_number"),
    comment="The exemplars of a job, in the order of the request.",
)

job_chunk = Table(
    "job_chunk",
    metadata,
    Column("job_id", ForeignKey(job.c.id), nullable=False, comment="The job."),
    Column("ordinal", Integer, nullable=False, comment="0, 1, ... within the job."),
    Column("first_row", Integer, nullable=False, comment="First row number."),
    Column("end_row", Integer, nullable=False, comment="One past the last row number."),
    Column("state", Text, nullable=False, server_default="pending", comment="pending, running, done or failed."),
    Column("attempts", SmallInteger, nullable=False, server_default="0", comment="How often it was claimed."),
    Column("sent_at", DateTime(timezone=True), comment="When a message for it was last sent; null: not yet."),
    Column("lease_token", Uuid, comment="Of the claim in force; a result with another is refused."),
    Column("lease_until", DateTime(timezone=True), comment="When the claim ends."),
    Column("worker", Text, comment="Who claimed it last."),
    Column("error", Text, comment="What went wrong last."),
    Column("finished_at", DateTime(timezone=True), comment="When it was done or failed."),
    Column(
        "not_before",
        DateTime(timezone=True),
        comment="Before which it is not tried again; null where it need not wait.",
    ),
    PrimaryKeyConstraint("job_id", "ordinal"),
    CheckConstraint("state IN ('pending', 'running', 'done', 'failed')", name="state"),
    CheckConstraint("end_row > first_row", name="rows"),
    CheckConstraint("(state = 'running') = (lease_token IS NOT NULL)", name="lease"),
    Index("job_chunk_open_idx", "job_id", "ordinal", postgresql_where=text("state IN ('pending', 'running')")),
    comment="A run of a job's rows that one worker computes and writes in one transaction.",
)

recalibration_request = Table(
    "recalibration_request",
    metadata,
    Column("calibrator_id", ForeignKey(calibrator.c.id), primary_key=True, comment="What is to be recalibrated."),
    Column(
        "first_requested_at",
        DateTime(timezone=True),
        nullable=False,
        comment="When what is not served yet was first asked for.",
    ),
    Column("last_requested_at", DateTime(timezone=True), nullable=False, comment="When it was last asked for."),
    Column("reason", Text, nullable=False, comment="What changed, such as labels."),
    Column(
        "job_id",
        ForeignKey(job.c.id),
        comment="The job that brings approximations up to date; null where none was recorded yet.",
    ),
    Column("error", Text, comment="Why it could not be served; it then waits for the next request, or for a person."),
    CheckConstraint("first_requested_at <= last_requested_at", name="requested"),
    comment="Recalibrations that are due or will be: requests are gathered, one row a calibrator.",
)

decision = Table(
    "decision",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True, comment="Key."),
    Column("calibration_id", ForeignKey(calibration.c.id), nullable=False, comment="The snapshot it rests on."),
    Column("exemplar_id", ForeignKey(exemplar.c.id), nullable=False, comment="What was decided on."),
    Column("weighted", Boolean, nullable=False, comment="Whether up-weighted by the localizer."),
    Column("require_full_match", Boolean, nullable=False, comment="Whether q < K was rejected."),
    Column("support_version", BigInteger, nullable=False, comment="Support version it was decided at."),
    Column("predicted", Integer, nullable=False, comment="KNN's prediction."),
    Column("match_count", Integer, nullable=False, comment="q."),
    Column("distance", Double, nullable=False, comment="d."),
    Column("logits", ARRAY(Double), nullable=False, comment="KNN(x), one a class."),
    Column("admit_set", BIT(varying=True), nullable=False, comment="ADMIT set, a bit a class."),
    Column("band_size", ARRAY(Integer), nullable=False, comment="n_c, points of each class in the band, in mc."),
    Column("threshold", ARRAY(Double), nullable=False, comment="tau_c of each class; -infinity allowed."),
    Column("category_size", Integer, nullable=False, comment="|T|, in vp; 0 where the set is no singleton."),
    Column("upweight", Double, comment="w; infinite where psi' = 0; null where the set is no singleton."),
    Column("lower", Double, comment="Lower probability of the prediction; null where the set is no singleton."),
    Column("upper", Double, comment="Upper probability of the prediction; null where the set is no singleton."),
    Column("decision", Integer, comment="The admitted class; null = rejected."),
    Column("reason", Text, comment="Why it was rejected; null where admitted."),
    _created_at("it was decided"),
    UniqueConstraint("calibration_id", "exemplar_id", "weighted", "require_full_match", name="decision_key"),
    CheckConstraint("(decision IS NULL) = (reason IS NOT NULL)", name="reason"),
    CheckConstraint("decision = predicted", name="decision"),
    comment="Admit or reject, with the evidence, pinned to a snapshot.",
)

message = Table(
    "message",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True, comment="Key; ascends in order of sending."),
    Column("queue", Text, nullable=False, comment="Celery's queue."),
    Column("payload", JSONB, nullable=False, comment="What Celery sends: which task, on which job and chunk."),
    comment="Messages to workers, where the database is the broker; deleted on receipt, and lost in a crash.",
    prefixes=["UNLOGGED"],
)
