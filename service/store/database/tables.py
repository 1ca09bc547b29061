"""The tables, as SQLAlchemy metadata: the model that migrations are checked against.

Statements live in `sql/*.sql`; nothing here is used to assemble queries. Tables are private to this package: reports
and other programs read the views in schema `report`.
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
    Column("name", Text, nullable=False, unique=True, comment="Name by which users refer to it."),
    Column("class_names", ARRAY(Text), nullable=False, comment="Name of each class; the position is the class number."),
    Column("dimension", Integer, nullable=False, comment="D, length of an exemplar vector."),
    Column("neighbour_count", Integer, nullable=False, comment="K, neighbours of the KNN approximation."),
    Column("knn_share", Numeric, nullable=False, comment="Share of held-out labelled points in split knn."),
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
        comment="Version of the training exemplars; ascends with every change, in one sequence with exemplar ids.",
    ),
    Column(
        "neighbours_support_version",
        BigInteger,
        nullable=False,
        server_default=text("0"),
        comment="Support version that all stored neighbour lists are complete to, whatever their rows say.",
    ),
    _created_at("it was created"),
    CheckConstraint("char_length(name) BETWEEN 1 AND 100", name="name"),
    CheckConstraint("cardinality(class_names) >= 2", name="class_names"),
    CheckConstraint("dimension BETWEEN 1 AND 16000", name="dimension"),
    CheckConstraint("neighbour_count >= 1", name="neighbour_count"),
    CheckConstraint("knn_share > 0 AND mc_share > 0 AND knn_share + mc_share < 1", name="shares"),
    comment="Deployed classifiers (the paper's tasks) whose predictions are calibrated.",
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
    _created_at("it was ingested"),
    UniqueConstraint("classifier_id", "external_id"),
    CheckConstraint("split IN ('train', 'knn', 'mc', 'vp', 'scored')", name="split"),
    CheckConstraint("label >= 0", name="label"),
    # Without a label there is nothing to learn or calibrate from.
    CheckConstraint("split = 'scored' OR label IS NOT NULL", name="labelled_split"),
    Index(None, "classifier_id", "split", "id"),
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
    _created_at("it arrived"),
    CheckConstraint("selection IN ('random', 'selected')", name="selection"),
    CheckConstraint("label >= 0", name="label"),
    Index(None, "exemplar_id", "id"),
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
    comment="Changes of training exemplars, except their ingestion, whose version is the exemplar's id.",
)

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
    _created_at("it was fitted or given"),
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
    comment="The KNN approximation of each point, from its stored neighbours.",
)

calibrator = Table(
    "calibrator",
    metadata,
    Column("id", Integer, Identity(always=True), primary_key=True, comment="Key."),
    Column("classifier_id", ForeignKey(classifier.c.id), nullable=False, comment="Classifier that it calibrates."),
    Column(
        "settings_digest",
        LargeBinary,
        nullable=False,
        comment="BLAKE2b-128 of the settings, as the method writes them.",
    ),
    Column("method", Text, nullable=False, comment="Method of calibration: venn-abers or venn-admit."),
    Column("alpha", Numeric, nullable=False, comment="Error level, an exact decimal."),
    Column(
        "delta",
        Double,
        comment="Band radius in standard deviations of d; may be infinite; null unless the method is venn-admit.",
    ),
    Column(
        "kappa",
        Integer,
        comment="Least number of points of each class in a band; null unless the method is venn-admit.",
    ),
    Column("bin_edges", ARRAY(Integer), nullable=False, comment="Lower edges of the bins of q; the first is 0."),
    Column("thresholds", ARRAY(Numeric), nullable=False, comment="Least lower probability for each predicted class."),
    _created_at("it was first requested"),
    Column(
        "chosen_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=func.now(),
        comment="When it was last chosen; the calibrator of a classifier that was chosen last is the one in use.",
    ),
    Column(
        "retired_at",
        DateTime(timezone=True),
        comment="When it was retired; null as long as its calibration is kept current.",
    ),
    Column(
        "score",
        Text,
        comment="Score asked for: auto, network or reliability; null unless the method is venn-abers.",
    ),
    # The key is on the digest, because a thousand thresholds do not fit into an index.
    UniqueConstraint("classifier_id", "settings_digest"),
    CheckConstraint("alpha > 0 AND alpha < 1", name="alpha"),
    CheckConstraint("delta > 0", name="delta"),
    CheckConstraint("kappa >= 1", name="kappa"),
    CheckConstraint("1 - alpha <= ALL (thresholds) AND 1 >= ALL (thresholds)", name="thresholds"),
    CheckConstraint("method IN ('venn-admit', 'venn-abers')", name="method"),
    CheckConstraint("score IN ('auto', 'network', 'reliability')", name="score"),
    CheckConstraint("(method = 'venn-abers') = (score IS NOT NULL)", name="venn_abers"),
    CheckConstraint(
        "(method = 'venn-admit') = (delta IS NOT NULL) AND (method = 'venn-admit') = (kappa IS NOT NULL)",
        name="venn_admit",
    ),
    comment="Settings under which classifiers are calibrated.",
)

calibration = Table(
    "calibration",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True, comment="Key, to which decisions are pinned."),
    Column(
        "calibrator_id", ForeignKey(calibrator.c.id), nullable=False, comment="Calibrator, which holds the settings."
    ),
    Column(
        "number",
        Integer,
        nullable=False,
        comment="1, 2, ... within the calibrator; the validity of calibration points is counted in this number.",
    ),
    Column(
        "revision", Uuid, nullable=False, server_default=func.gen_random_uuid(), comment="Identifies its cached copy."
    ),
    Column(
        "knn_parameters_id", ForeignKey(knn_parameters.c.id), nullable=False, comment="KNN parameters that it rests on."
    ),
    Column("mc_count", Integer, nullable=False, comment="Number of points of split mc."),
    Column("vp_count", Integer, nullable=False, comment="Number of points of split vp."),
    Column("reason", Text, nullable=False, comment="Reason for which it was made."),
    Column("state", Text, nullable=False, comment="current or retired."),
    _created_at("it became current"),
    UniqueConstraint("calibrator_id", "number"),
    CheckConstraint("state IN ('current', 'retired')", name="state"),
    CheckConstraint("number >= 1", name="number"),
    # Readers take the current snapshot; there is never more than one.
    Index("calibration_current_key", "calibrator_id", unique=True, postgresql_where=text("state = 'current'")),
    comment="Immutable, numbered snapshots of a calibrator.",
)

band_radius = Table(
    "band_radius",
    metadata,
    Column(
        "calibration_id",
        ForeignKey(calibration.c.id, ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
        comment="The snapshot.",
    ),
    Column(
        "s_hat",
        Double,
        nullable=False,
        comment="Sample standard deviation of d over the points of mc with q > 0 and a correct prediction.",
    ),
    Column("omega", Double, nullable=False, comment="Band radius, delta * s_hat."),
    comment="Radius of the bands of each snapshot of the method venn-admit.",
)

score_choice = Table(
    "score_choice",
    metadata,
    Column(
        "calibration_id",
        ForeignKey(calibration.c.id, ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
        comment="The snapshot.",
    ),
    Column("score", Text, nullable=False, comment="Score of the snapshot: network or reliability."),
    Column(
        "network_share",
        Double,
        comment="Share of mc that the network's score admits by cross-fitting; null if a score was asked for.",
    ),
    Column(
        "reliability_share",
        Double,
        comment="Share of mc that the reliability score admits by cross-fitting; null if a score was asked for.",
    ),
    Column(
        "standard_error",
        Double,
        comment="Of the difference between the shares, over documents; null with fewer than two.",
    ),
    Column("documents", Integer, comment="Number of documents; null if a score was asked for."),
    CheckConstraint("score IN ('network', 'reliability')", name="score"),
    comment="Score of each snapshot of the method venn-abers, and on what ground it was chosen.",
)

venn_abers_step = Table(
    "venn_abers_step",
    metadata,
    Column("calibrator_id", ForeignKey(calibrator.c.id), nullable=False, comment="The calibrator."),
    Column(
        "cell",
        Integer,
        nullable=False,
        comment="Number of the cell: bin of q times number of classes, plus predicted class.",
    ),
    Column(
        "score",
        Double,
        nullable=False,
        comment="Score from which the step holds, up to the next; -infinity for the first of a cell.",
    ),
    Column("valid_from", Integer, nullable=False, comment="Number of the first snapshot that holds this row."),
    Column(
        "valid_until",
        Integer,
        comment="Number of the first snapshot that no longer holds it; null while the current one does.",
    ),
    Column("lower", Double, nullable=False, comment="p0 within the step."),
    Column("upper_at", Double, nullable=False, comment="p1 at the score itself."),
    Column("upper_above", Double, nullable=False, comment="p1 above it, within the step."),
    PrimaryKeyConstraint("calibrator_id", "cell", "score", "valid_from"),
    CheckConstraint("valid_until > valid_from", name="validity"),
    # The step of a score is the last entry not above it; there is one open row a step.
    Index(
        "venn_abers_step_open_key",
        "calibrator_id",
        "cell",
        "score",
        unique=True,
        postgresql_where=text("valid_until IS NULL"),
    ),
    comment="Row-versioned plain bounds of each cell as functions of the score: two probabilities a step.",
)

calibration_point = Table(
    "calibration_point",
    metadata,
    Column("calibrator_id", ForeignKey(calibrator.c.id), nullable=False, comment="The calibrator."),
    Column("exemplar_id", ForeignKey(exemplar.c.id), nullable=False, comment="The exemplar."),
    Column("valid_from", Integer, nullable=False, comment="Number of the first snapshot that holds this row."),
    Column(
        "valid_until",
        Integer,
        comment="Number of the first snapshot that no longer holds it; null while the current one does.",
    ),
    Column("split", Text, nullable=False, comment="mc or vp."),
    Column("label", Integer, nullable=False, comment="y, the label."),
    Column(
        "predicted",
        Integer,
        nullable=False,
        comment="Prediction that is decided on: the KNN's for venn-admit, the network's for venn-abers.",
    ),
    Column(
        "match_count",
        Integer,
        nullable=False,
        comment="q, number of consecutive nearest neighbours that match the prediction.",
    ),
    Column("bin", Integer, nullable=False, comment="Bin of q under the bin edges of the calibrator."),
    Column("distance", Double, nullable=False, comment="d, distance to the nearest training exemplar."),
    Column(
        "score",
        Double,
        nullable=False,
        comment="Nonconformity score of the label, 1 - pi^y; for venn-abers s, the score of the prediction.",
    ),
    Column("admit_set", BIT(varying=True), comment="ADMIT set, one bit per class; null in mc."),
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
    comment="Row-versioned calibration data: a snapshot consists of the rows that are valid at its number.",
)

job = Table(
    "job",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True, comment="Key."),
    Column("classifier_id", ForeignKey(classifier.c.id), nullable=False, comment="Classifier that the work is for."),
    Column("kind", Text, nullable=False, comment="approximate or score."),
    Column("state", Text, nullable=False, comment="running, done, failed or cancelled."),
    Column(
        "knn_parameters_id",
        ForeignKey(knn_parameters.c.id),
        comment="KNN parameters to use; null if only neighbours are computed.",
    ),
    Column(
        "calibration_id", ForeignKey(calibration.c.id), comment="Snapshot to score with; null for jobs of other kinds."
    ),
    Column("weighted", Boolean, comment="Whether Venn probabilities are up-weighted; null unless the kind is score."),
    Column(
        "require_full_match", Boolean, comment="Whether points with q < K are rejected; null unless the kind is score."
    ),
    Column(
        "support_version",
        BigInteger,
        comment="Support version that all neighbour lists are complete to once it is done; null if not all are.",
    ),
    Column("row_count", Integer, nullable=False, comment="Number of rows in job_row."),
    Column("error", Text, comment="Why it failed or was cancelled; null otherwise."),
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
    comment="Requests for work. The chunks of a job are its record; a message to a worker only wakes it up.",
)

job_row = Table(
    "job_row",
    metadata,
    Column("job_id", ForeignKey(job.c.id), nullable=False, comment="The job."),
    Column("row_number", Integer, nullable=False, comment="0, 1, ..., in the order of the request."),
    Column("exemplar_id", ForeignKey(exemplar.c.id), nullable=False, comment="Exemplar to compute."),
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
    Column(
        "attempts", SmallInteger, nullable=False, server_default="0", comment="Number of times that it was claimed."
    ),
    Column(
        "sent_at", DateTime(timezone=True), comment="When a message for it was last sent; null if none was sent yet."
    ),
    Column("lease_token", Uuid, comment="Token of the current claim; a result with another token is refused."),
    Column("lease_until", DateTime(timezone=True), comment="When the claim expires."),
    Column("worker", Text, comment="Worker that claimed it last."),
    Column("error", Text, comment="Error of the last attempt that failed."),
    Column("finished_at", DateTime(timezone=True), comment="When it was done or failed."),
    Column(
        "not_before",
        DateTime(timezone=True),
        comment="Earliest time of the next attempt; null if it need not wait.",
    ),
    PrimaryKeyConstraint("job_id", "ordinal"),
    CheckConstraint("state IN ('pending', 'running', 'done', 'failed')", name="state"),
    CheckConstraint("end_row > first_row", name="rows"),
    CheckConstraint("(state = 'running') = (lease_token IS NOT NULL)", name="lease"),
    Index("job_chunk_open_idx", "job_id", "ordinal", postgresql_where=text("state IN ('pending', 'running')")),
    comment="Runs of a job's rows, each of which one worker computes and writes in one transaction.",
)

recalibration_request = Table(
    "recalibration_request",
    metadata,
    Column(
        "calibrator_id", ForeignKey(calibrator.c.id), primary_key=True, comment="Calibrator that must be recalibrated."
    ),
    Column(
        "first_requested_at",
        DateTime(timezone=True),
        nullable=False,
        comment="When the first request that is not served yet was made.",
    ),
    Column("last_requested_at", DateTime(timezone=True), nullable=False, comment="When the last request was made."),
    Column("reason", Text, nullable=False, comment="What changed, such as labels."),
    Column(
        "job_id",
        ForeignKey(job.c.id),
        comment="Job that brings the approximations up to date; null if none is recorded yet.",
    ),
    Column(
        "error",
        Text,
        comment="Why it could not be served; it then waits for the next request, or until somebody intervenes.",
    ),
    CheckConstraint("first_requested_at <= last_requested_at", name="requested"),
    comment="Recalibrations that are due or will be. Requests are gathered in one row per calibrator.",
)

decision = Table(
    "decision",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True, comment="Key."),
    Column("calibration_id", ForeignKey(calibration.c.id), nullable=False, comment="The snapshot that it rests on."),
    Column("exemplar_id", ForeignKey(exemplar.c.id), nullable=False, comment="Exemplar that was decided on."),
    Column("weighted", Boolean, nullable=False, comment="Whether the probabilities are up-weighted by the localizer."),
    Column("require_full_match", Boolean, nullable=False, comment="Whether a point with q < K was rejected."),
    Column("support_version", BigInteger, nullable=False, comment="Support version at which it was decided."),
    Column(
        "predicted",
        Integer,
        nullable=False,
        comment="Prediction that was decided on: the KNN's for venn-admit, the network's for venn-abers.",
    ),
    Column(
        "match_count",
        Integer,
        nullable=False,
        comment="q, number of consecutive nearest neighbours that match the prediction.",
    ),
    Column("distance", Double, nullable=False, comment="d, distance to the nearest training exemplar."),
    Column("logits", ARRAY(Double), nullable=False, comment="KNN(x), one per class."),
    Column("upweight", Double, comment="w; infinite if psi' = 0; null if the set is not a singleton."),
    Column("lower", Double, comment="Lower probability of the prediction; null if the set is not a singleton."),
    Column("upper", Double, comment="Upper probability of the prediction; null if the set is not a singleton."),
    Column("decision", Integer, comment="Admitted class; null if rejected."),
    Column("reason", Text, comment="Why it was rejected; null if admitted."),
    _created_at("it was decided"),
    UniqueConstraint("calibration_id", "exemplar_id", "weighted", "require_full_match", name="decision_key"),
    CheckConstraint("(decision IS NULL) = (reason IS NOT NULL)", name="reason"),
    CheckConstraint("decision = predicted", name="decision"),
    comment="Decisions to admit or reject, each pinned to a snapshot. Evidence of one method alone has its own table.",
)

admit_evidence = Table(
    "admit_evidence",
    metadata,
    Column(
        "decision_id",
        ForeignKey(decision.c.id, ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
        comment="The decision.",
    ),
    Column("admit_set", BIT(varying=True), nullable=False, comment="ADMIT set, one bit per class."),
    Column(
        "band_size", ARRAY(Integer), nullable=False, comment="n_c, number of points of each class in the band, in mc."
    ),
    Column("threshold", ARRAY(Double), nullable=False, comment="tau_c of each class; may be -infinity."),
    Column("category_size", Integer, nullable=False, comment="|T|, in vp; 0 if the set is not a singleton."),
    comment="Evidence of decisions by the method venn-admit, besides what every decision has.",
)

abers_evidence = Table(
    "abers_evidence",
    metadata,
    Column(
        "decision_id",
        ForeignKey(decision.c.id, ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
        comment="The decision.",
    ),
    Column("score", Double, nullable=False, comment="s, the score of the prediction."),
    Column(
        "step_score",
        Double,
        nullable=False,
        comment="Score from which the plain step of its cell holds; -infinity for the first, and in an empty cell.",
    ),
    comment="Evidence of decisions by the method venn-abers, besides what every decision has.",
)

message = Table(
    "message",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True, comment="Key; ascends in order of sending."),
    Column("queue", Text, nullable=False, comment="Celery's queue."),
    Column("payload", JSONB, nullable=False, comment="Content that Celery sends: the task, its job and its chunk."),
    comment="Messages to workers if the database is the broker; deleted on receipt, and lost in a crash.",
    prefixes=["UNLOGGED"],
)
