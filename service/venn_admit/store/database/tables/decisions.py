"""Decisions, and the evidence that each method keeps."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, BIT, INT8MULTIRANGE

from venn_admit.store.database.tables.base import created_at, metadata
from venn_admit.store.database.tables.calibrations import calibration
from venn_admit.store.database.tables.exemplars import classifier, exemplar

decision = sa.Table(
    "decision",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True, comment="Key."),
    sa.Column(
        "calibration_id", sa.ForeignKey(calibration.c.id), nullable=False, comment="The snapshot that it rests on."
    ),
    sa.Column("exemplar_id", sa.ForeignKey(exemplar.c.id), nullable=False, comment="Exemplar that was decided on."),
    sa.Column(
        "weighted", sa.Boolean, nullable=False, comment="Whether the probabilities are up-weighted by the localizer."
    ),
    sa.Column("require_full_match", sa.Boolean, nullable=False, comment="Whether a point with q < K was rejected."),
    sa.Column("support_version", sa.BigInteger, nullable=False, comment="Support version at which it was decided."),
    sa.Column(
        "predicted",
        sa.Integer,
        nullable=False,
        comment="Prediction that was decided on: the KNN's for venn-admit, the network's for venn-abers.",
    ),
    sa.Column(
        "match_count",
        sa.Integer,
        comment="q, number of consecutive nearest neighbours that match the prediction; null without vectors.",
    ),
    sa.Column("distance", sa.Double, comment="d, distance to the nearest training exemplar; null without vectors."),
    sa.Column("logits", ARRAY(sa.Double), comment="KNN(x), one per class; null without vectors."),
    sa.Column("upweight", sa.Double, comment="w; infinite if psi' = 0; null if the set is not a singleton."),
    sa.Column("lower", sa.Double, comment="Lower probability of the prediction; null if the set is not a singleton."),
    sa.Column("upper", sa.Double, comment="Upper probability of the prediction; null if the set is not a singleton."),
    sa.Column("decision", sa.Integer, comment="Admitted class; null if rejected."),
    sa.Column("reason", sa.Text, comment="Why it was rejected; null if admitted."),
    created_at("it was decided"),
    sa.UniqueConstraint("calibration_id", "exemplar_id", "weighted", "require_full_match", name="decision_key"),
    sa.CheckConstraint("(decision IS NULL) = (reason IS NOT NULL)", name="reason"),
    sa.CheckConstraint("decision = predicted", name="decision"),
    # Without vectors there are no neighbours, and nothing to weight by.
    sa.CheckConstraint(
        "num_nulls(match_count, distance, logits) IN (0, 3) "
        "AND (match_count IS NOT NULL OR NOT (weighted OR require_full_match))",
        name="knn",
    ),
    # Decisions on one exemplar, by any snapshot.
    sa.Index(None, "exemplar_id", "calibration_id"),
    # Pages of those by some snapshots, admitted or rejected, the newest first. It does not begin with the snapshot:
    # the planner would take it for the key as long as its statistics know no decision by the snapshot.
    sa.Index("decision_outcome_idx", sa.text("(decision IS NOT NULL)"), "calibration_id", "id"),
    # Those of a day. They are not stored in the order of days: new ones take the room of removed ones.
    sa.Index("decision_date_idx", sa.text("((created_at AT TIME ZONE 'UTC')::date)")),
    comment="Decisions to admit or reject, each pinned to a snapshot. Evidence of one method alone has its own table.",
)


admit_evidence = sa.Table(
    "admit_evidence",
    metadata,
    sa.Column(
        "decision_id",
        sa.ForeignKey(decision.c.id, ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
        comment="The decision.",
    ),
    sa.Column("admit_set", BIT(varying=True), nullable=False, comment="ADMIT set, one bit per class."),
    sa.Column(
        "band_size",
        ARRAY(sa.Integer),
        nullable=False,
        comment="n_c, number of points of each class in the band, in mc.",
    ),
    sa.Column("threshold", ARRAY(sa.Double), nullable=False, comment="tau_c of each class; may be -infinity."),
    sa.Column("category_size", sa.Integer, nullable=False, comment="|T|, in vp; 0 if the set is not a singleton."),
    comment="Evidence of decisions by the method venn-admit, besides what every decision has.",
)


abers_evidence = sa.Table(
    "abers_evidence",
    metadata,
    sa.Column(
        "decision_id",
        sa.ForeignKey(decision.c.id, ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
        comment="The decision.",
    ),
    sa.Column("score", sa.Double, nullable=False, comment="s, the score of the prediction."),
    sa.Column(
        "step_score",
        sa.Double,
        nullable=False,
        comment="Score from which the plain step of its cell holds; -infinity for the first, and in an empty cell.",
    ),
    comment="Evidence of decisions by the method venn-abers, besides what every decision has.",
)


decision_removal = sa.Table(
    "decision_removal",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True, comment="Key."),
    sa.Column(
        "classifier_id",
        sa.ForeignKey(classifier.c.id, ondelete="CASCADE"),
        nullable=False,
        index=True,
        comment="Classifier that had decided.",
    ),
    sa.Column(
        "removed_at",
        sa.DateTime(timezone=True),
        nullable=False,
        server_default=sa.func.now(),
        comment="When they were removed.",
    ),
    sa.Column(
        "reason", sa.Text, nullable=False, comment="age, by the setting; or request, because somebody asked for it."
    ),
    sa.Column("decisions", INT8MULTIRANGE, nullable=False, comment="Keys of the decisions."),
    sa.Column("decision_count", sa.Integer, nullable=False, comment="Number of the decisions."),
    sa.Column(
        "decided_until",
        sa.DateTime(timezone=True),
        nullable=False,
        comment="When the newest of the decisions was made.",
    ),
    sa.CheckConstraint("reason IN ('age', 'request')", name="reason"),
    sa.CheckConstraint("decision_count > 0", name="decision_count"),
    # Why a decision is no longer there.
    sa.Index(None, "decisions", postgresql_using="gist"),
    comment="Decisions that were removed, a row for each transaction that did.",
)
