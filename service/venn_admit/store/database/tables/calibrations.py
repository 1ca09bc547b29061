"""Calibrators, their snapshots, and the points of a snapshot by whatever method."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    DateTime,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
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
from sqlalchemy.schema import SchemaItem

from venn_admit.store.database.tables.approximations import knn_parameters
from venn_admit.store.database.tables.base import created_at, metadata
from venn_admit.store.database.tables.exemplars import classifier, exemplar

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
    Column(
        "certify",
        ARRAY(Text),
        comment="Classes that a certificate is asked for: predicted, true or both; null for the pointwise promise.",
    ),
    Column("confidence", Numeric, comment="Confidence of the certificate asked for."),
    Column(
        "document_test",
        Text,
        comment="Test of documents of several points for the certificate: finite-sample or asymptotic.",
    ),
    # The key is on the digest, because a thousand thresholds do not fit into an index.
    UniqueConstraint("classifier_id", "settings_digest"),
    # What the points of a calibrator refer to, so that a rule about them can depend on the method.
    UniqueConstraint("id", "method"),
    CheckConstraint("alpha > 0 AND alpha < 1", name="alpha"),
    CheckConstraint("delta > 0", name="delta"),
    CheckConstraint("kappa >= 1", name="kappa"),
    CheckConstraint("1 - alpha <= ALL (thresholds) AND 1 >= ALL (thresholds)", name="thresholds"),
    CheckConstraint("method IN ('venn-admit', 'venn-abers')", name="method"),
    CheckConstraint("score IN ('auto', 'network', 'reliability')", name="score"),
    CheckConstraint("(method = 'venn-abers') = (score IS NOT NULL)", name="venn_abers"),
    CheckConstraint("certify IN ('{predicted}', '{true}', '{predicted,true}')", name="certify"),
    CheckConstraint("confidence > 0 AND confidence < 1", name="confidence"),
    CheckConstraint("document_test IN ('finite-sample', 'asymptotic')", name="document_test"),
    # A certified policy has thresholds of its own.
    CheckConstraint(
        "(certify IS NULL) = (confidence IS NULL) AND (certify IS NULL) = (document_test IS NULL) "
        "AND (certify IS NULL OR (method = 'venn-abers' AND 1 - alpha = ALL (thresholds)))",
        name="certification",
    ),
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
        "knn_parameters_id",
        ForeignKey(knn_parameters.c.id),
        comment="KNN parameters that it rests on; null if the classifier has logits only.",
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


def snapshot_key() -> Column[Any]:
    """Return the key of a table that has at most one row for each snapshot, and loses it with the snapshot."""
    return Column(
        "calibration_id",
        ForeignKey(calibration.c.id, ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
        comment="The snapshot.",
    )


def validity() -> tuple[SchemaItem, ...]:
    """Return the columns of a row-versioned table by which a snapshot finds its rows, and their check."""
    return (
        Column("valid_from", Integer, nullable=False, comment="Number of the first snapshot that holds this row."),
        Column(
            "valid_until",
            Integer,
            comment="Number of the first snapshot that no longer holds it; null while the current one does.",
        ),
        CheckConstraint("valid_until > valid_from", name="validity"),
    )


band_radius = Table(
    "band_radius",
    metadata,
    snapshot_key(),
    Column(
        "s_hat",
        Double,
        nullable=False,
        comment="Sample standard deviation of d over the points of mc with q > 0 and a correct prediction.",
    ),
    Column("omega", Double, nullable=False, comment="Band radius, delta * s_hat."),
    comment="Radius of the bands of each snapshot of the method venn-admit.",
)


snapshot_quartiles = Table(
    "snapshot_quartiles",
    metadata,
    snapshot_key(),
    Column(
        "quartiles",
        ARRAY(Double),
        comment="The three quartiles of d over all points of the snapshot, ascending; null if they have no d.",
    ),
    comment="Quartiles of d of each snapshot, by which reports tell partitions apart.",
)


calibration_point = Table(
    "calibration_point",
    metadata,
    Column("calibrator_id", Integer, nullable=False, comment="The calibrator."),
    Column("exemplar_id", ForeignKey(exemplar.c.id), nullable=False, comment="The exemplar."),
    *validity(),
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
        comment="q, number of consecutive nearest neighbours that match the prediction; null without vectors.",
    ),
    Column(
        "bin",
        Integer,
        nullable=False,
        comment="Bin of q under the bin edges of the calibrator; 0, the only one, without vectors.",
    ),
    Column("distance", Double, comment="d, distance to the nearest training exemplar; null without vectors."),
    Column(
        "score",
        Double,
        nullable=False,
        comment="Nonconformity score of the label, 1 - pi^y; for venn-abers s, the score of the prediction.",
    ),
    Column("admit_set", BIT(varying=True), comment="ADMIT set, one bit per class; null in mc, and for venn-abers."),
    Column(
        "is_singleton",
        Boolean,
        Computed("bit_count(admit_set) = 1", persisted=True),
        comment="Whether the ADMIT set is {predicted}; null if there is none.",
    ),
    Column("method", Text, nullable=False, comment="Method of the calibrator: venn-abers or venn-admit."),
    PrimaryKeyConstraint("calibrator_id", "exemplar_id", "valid_from"),
    ForeignKeyConstraint(["calibrator_id", "method"], [calibrator.c.id, calibrator.c.method]),
    CheckConstraint("split IN ('mc', 'vp')", name="split"),
    CheckConstraint("(split = 'vp' AND method = 'venn-admit') = (admit_set IS NOT NULL)", name="admit_set"),
    # Without vectors there are neither neighbours nor bands.
    CheckConstraint(
        "(match_count IS NULL) = (distance IS NULL) AND (match_count IS NOT NULL OR (bin = 0 AND admit_set IS NULL))",
        name="knn",
    ),
    Index(None, "exemplar_id"),
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
