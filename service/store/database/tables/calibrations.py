"""Calibrators, their snapshots, and what a snapshot consists of by each method."""

from sqlalchemy import (
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
    Numeric,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, BIT

from venn_admit.service.store.database.tables.approximations import knn_parameters
from venn_admit.service.store.database.tables.base import created_at, metadata
from venn_admit.service.store.database.tables.exemplars import classifier, exemplar

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
    created_at("it was first requested"),
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
    created_at("it became current"),
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
