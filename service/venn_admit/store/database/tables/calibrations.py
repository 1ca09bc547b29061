"""Calibrators, their snapshots, and the points of a snapshot by whatever method."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, BIT
from sqlalchemy.schema import SchemaItem

from venn_admit.core.calibrators.arguments import ALL_DECLARED, about, column_of
from venn_admit.core.calibrators.declaration import SettingKind
from venn_admit.core.calibrators.settings import DECLARED
from venn_admit.store.database.tables.approximations import knn_parameters
from venn_admit.store.database.tables.base import TIME, created_at, key, metadata, optional, required
from venn_admit.store.database.tables.exemplars import classifier, exemplar

_TYPES = {
    SettingKind.DECIMAL: sa.Numeric,
    SettingKind.NUMBER: sa.Double,
    SettingKind.INTEGER: sa.Integer,
    SettingKind.WORD: sa.Text,
    SettingKind.FLAG: sa.Boolean,
}
_COMMENTS = {
    "alpha": "Error level, an exact decimal.",
    "delta": "Band radius in standard deviations of d; may be infinite; null unless the method is venn-admit.",
    "kappa": "Least number of points of each class in a band; null unless the method is venn-admit.",
    "q_bins": "Lower edges of the bins of q; the first is 0.",
    "thresholds": "Least lower probability for each predicted class.",
    "score": "Score asked for: auto, network or reliability; null unless the method is venn-abers.",
    "certify": "What a certificate is asked for: predicted, true, group:ATTRIBUTE, predicted*group:ATTRIBUTE; null for "
    "the pointwise promise.",
    "confidence": "Confidence of the certificate asked for.",
    "test": "Test of documents of several points for the certificate: finite-sample or asymptotic.",
}
"""Comments of the columns that are in the baseline; a later one says what the setting is about."""


def _column_of(name: str) -> sa.Column[Any]:
    declared = ALL_DECLARED[name]
    each = _TYPES[declared.kind]()
    return sa.Column(
        column_of(name),
        ARRAY(each) if declared.many else each,
        nullable=declared.added or any(name not in of_method for of_method in DECLARED.values()),
        comment=_COMMENTS.get(name, f"{about(name)}."),
    )


def _checks_of_added() -> Iterator[sa.CheckConstraint]:
    """The range of each setting that was added; null stands for the default in rows that were there before."""
    for name, declared in ALL_DECLARED.items():
        words = declared.words
        if declared.added and isinstance(words, type) and issubclass(words, StrEnum):
            listed = ", ".join(f"'{word}'" for word in words)
            yield sa.CheckConstraint(f"{column_of(name)} IN ({listed})", name=column_of(name))
        elif declared.added and declared.many:
            rule = f"{declared.least} <= ALL ({column_of(name)}) AND {declared.most} >= ALL ({column_of(name)})"
            yield sa.CheckConstraint(rule, name=column_of(name))
        elif declared.added and declared.least is not None:
            yield sa.CheckConstraint(f"{column_of(name)} >= {declared.least}", name=column_of(name))


calibrator = sa.Table(
    "calibrator",
    metadata,
    key("Key.", sa.Integer),
    required("classifier_id", sa.ForeignKey(classifier.c.id), "Classifier that it calibrates."),
    required("settings_digest", sa.LargeBinary, "BLAKE2b-128 of the settings, as the method writes them."),
    required("method", sa.Text, "Method of calibration: venn-abers or venn-admit."),
    *map(_column_of, ALL_DECLARED),
    created_at("it was first requested"),
    required(
        "chosen_at",
        TIME,
        "When it was last chosen; the calibrator of a classifier that was chosen last is the one in use.",
        server_default=sa.func.now(),
    ),
    optional("retired_at", TIME, "When it was retired; null as long as its calibration is kept current."),
    required(
        "last_number",
        sa.Integer,
        "The number given last: to a snapshot, or to the rows of an older one when they were opened again.",
        server_default="0",
    ),
    # The key is on the digest, because a thousand thresholds do not fit into an index.
    sa.UniqueConstraint("classifier_id", "settings_digest"),
    # What the points of a calibrator refer to, so that a rule about them can depend on the method.
    sa.UniqueConstraint("id", "method"),
    sa.CheckConstraint("alpha > 0 AND alpha < 1", name="alpha"),
    sa.CheckConstraint("delta > 0", name="delta"),
    sa.CheckConstraint("kappa >= 1", name="kappa"),
    sa.CheckConstraint("1 - alpha <= ALL (thresholds) AND 1 >= ALL (thresholds)", name="thresholds"),
    sa.CheckConstraint("method IN ('venn-admit', 'venn-abers')", name="method"),
    sa.CheckConstraint("score IN ('auto', 'network', 'reliability')", name="score"),
    sa.CheckConstraint("(method = 'venn-abers') = (score IS NOT NULL)", name="venn_abers"),
    sa.CheckConstraint(
        "array_to_string(certify, ',') ~ '^(predicted|true|(predicted[*])?group:[^,]+)"
        "(,(predicted|true|(predicted[*])?group:[^,]+))*$'",
        name="certify",
    ),
    sa.CheckConstraint("confidence > 0 AND confidence < 1", name="confidence"),
    sa.CheckConstraint("document_test IN ('finite-sample', 'asymptotic')", name="document_test"),
    # A policy has thresholds of its own.
    sa.CheckConstraint(
        "(certify IS NULL) = (confidence IS NULL) AND (certify IS NULL) = (document_test IS NULL) "
        "AND (certify IS NULL OR (method = 'venn-abers' AND 1 - alpha = ALL (thresholds)))",
        name="certification",
    ),
    sa.CheckConstraint(
        "(method = 'venn-admit') = (delta IS NOT NULL) AND (method = 'venn-admit') = (kappa IS NOT NULL)",
        name="venn_admit",
    ),
    sa.CheckConstraint(
        "coalesce(promise, 'pointwise') = 'pointwise' "
        "OR (method = 'venn-abers' AND 1 - alpha = ALL (thresholds) AND certify IS NOT DISTINCT FROM "
        "CASE promise WHEN 'strongest' THEN '{predicted,true}'::text[] END)",
        name="promised",
    ),
    sa.CheckConstraint("loss IS NULL OR certify IS NOT NULL", name="costed"),
    sa.CheckConstraint("undivided IS NOT TRUE OR method = 'venn-admit'", name="undivided"),
    sa.CheckConstraint("standing IS NOT TRUE OR (certify = '{predicted}' AND loss IS NULL)", name="standing"),
    sa.CheckConstraint("family IS NOT TRUE OR (certify IS NOT NULL AND standing IS NOT TRUE)", name="family"),
    sa.CheckConstraint(
        "(class_shares IS NULL) = (class_shares_within IS NULL) AND (class_shares IS NULL "
        "OR (certify @> '{predicted}' AND loss IS NULL AND standing IS NOT TRUE))",
        name="declared",
    ),
    *_checks_of_added(),
    comment="Settings under which classifiers are calibrated.",
)


calibration = sa.Table(
    "calibration",
    metadata,
    key("Key, to which decisions are pinned."),
    required("calibrator_id", sa.ForeignKey(calibrator.c.id), "Calibrator, which holds the settings."),
    required(
        "number",
        sa.Integer,
        "1, 2, ... within the calibrator; the validity of calibration points is counted in this number.",
    ),
    required("revision", sa.Uuid, "Identifies its cached copy.", server_default=sa.func.gen_random_uuid()),
    optional(
        "knn_parameters_id",
        sa.ForeignKey(knn_parameters.c.id),
        "KNN parameters that it rests on; null if the classifier has logits only.",
    ),
    required("mc_count", sa.Integer, "Number of points of split mc."),
    required("vp_count", sa.Integer, "Number of points of split vp."),
    required("reason", sa.Text, "Reason for which it was made."),
    required("state", sa.Text, "current, retired, or withheld if it was never put in use."),
    created_at("it was made"),
    sa.UniqueConstraint("calibrator_id", "number"),
    sa.CheckConstraint("state IN ('current', 'retired', 'withheld')", name="state"),
    sa.CheckConstraint("number >= 1", name="number"),
    # Readers take the current snapshot; there is never more than one.
    sa.Index("calibration_current_key", "calibrator_id", unique=True, postgresql_where=sa.text("state = 'current'")),
    comment="Immutable, numbered snapshots of a calibrator.",
)


def snapshot_key() -> sa.Column[Any]:
    """Return the key of a table that has at most one row for each snapshot, and loses it with the snapshot."""
    return sa.Column(
        "calibration_id",
        sa.ForeignKey(calibration.c.id, ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
        comment="The snapshot.",
    )


def validity() -> tuple[SchemaItem, ...]:
    """Return the columns of a row-versioned table by which a snapshot finds its rows, and their check."""
    return (
        required("valid_from", sa.Integer, "Number of the first snapshot that holds this row."),
        optional(
            "valid_until",
            sa.Integer,
            "Number of the first snapshot that no longer holds it; null while the current one does.",
        ),
        sa.CheckConstraint("valid_until > valid_from", name="validity"),
    )


band_radius = sa.Table(
    "band_radius",
    metadata,
    snapshot_key(),
    required(
        "s_hat", sa.Double, "Sample standard deviation of d over the points of mc with q > 0 and a correct prediction."
    ),
    required("omega", sa.Double, "Band radius, delta * s_hat."),
    comment="Radius of the bands of each snapshot of the method venn-admit.",
)


snapshot_quartiles = sa.Table(
    "snapshot_quartiles",
    metadata,
    snapshot_key(),
    optional(
        "quartiles",
        ARRAY(sa.Double),
        "The three quartiles of d over all points of the snapshot, ascending; null if they have no d.",
    ),
    comment="Quartiles of d of each snapshot, by which reports tell partitions apart.",
)


calibration_point = sa.Table(
    "calibration_point",
    metadata,
    required("calibrator_id", sa.Integer, "The calibrator."),
    required("exemplar_id", sa.ForeignKey(exemplar.c.id), "The exemplar."),
    *validity(),
    required("split", sa.Text, "mc or vp; vp for all points of a calibration that is undivided."),
    required("label", sa.Integer, "y, the label."),
    required(
        "predicted",
        sa.Integer,
        "Prediction that is decided on: the KNN's for venn-admit, the network's for venn-abers.",
    ),
    optional(
        "match_count",
        sa.Integer,
        "q, number of consecutive nearest neighbours that match the prediction; null without vectors.",
    ),
    required("bin", sa.Integer, "Bin of q under the bin edges of the calibrator; 0, the only one, without vectors."),
    optional("distance", sa.Double, "d, distance to the nearest training exemplar; null without vectors."),
    required(
        "score", sa.Double, "Nonconformity score of the label, 1 - pi^y; for venn-abers s, the score of the prediction."
    ),
    optional("admit_set", BIT(varying=True), "ADMIT set, one bit per class; null in mc, and for venn-abers."),
    sa.Column(
        "is_singleton",
        sa.Boolean,
        sa.Computed("bit_count(admit_set) = 1", persisted=True),
        comment="Whether the ADMIT set is {predicted}; null if there is none.",
    ),
    required("method", sa.Text, "Method of the calibrator: venn-abers or venn-admit."),
    optional("logits", ARRAY(sa.Double), "KNN(x) of each class, by which the sets of an undivided calibration change."),
    sa.PrimaryKeyConstraint("calibrator_id", "exemplar_id", "valid_from"),
    sa.ForeignKeyConstraint(["calibrator_id", "method"], [calibrator.c.id, calibrator.c.method]),
    sa.CheckConstraint("split IN ('mc', 'vp')", name="split"),
    sa.CheckConstraint("(split = 'vp' AND method = 'venn-admit') = (admit_set IS NOT NULL)", name="admit_set"),
    sa.CheckConstraint("logits IS NULL OR (split = 'vp' AND method = 'venn-admit')", name="logits"),
    # Without vectors there are neither neighbours nor bands.
    sa.CheckConstraint(
        "(match_count IS NULL) = (distance IS NULL) AND (match_count IS NOT NULL OR (bin = 0 AND admit_set IS NULL))",
        name="knn",
    ),
    sa.Index(None, "exemplar_id"),
    # One open row an exemplar.
    sa.Index(
        "calibration_point_open_key",
        "calibrator_id",
        "exemplar_id",
        unique=True,
        postgresql_where=sa.text("valid_until IS NULL"),
    ),
    # A band query reads this index alone.
    sa.Index(
        "calibration_point_band_idx",
        "calibrator_id",
        "split",
        "bin",
        "distance",
        postgresql_include=["label", "predicted", "score", "is_singleton"],
        postgresql_where=sa.text("valid_until IS NULL"),
    ),
    comment="Row-versioned calibration data: a snapshot consists of the rows that are valid at its number.",
)
