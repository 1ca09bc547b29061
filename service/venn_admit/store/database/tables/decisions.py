"""Decisions, and the evidence that each method keeps."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, BIT, INT8MULTIRANGE

from venn_admit.store.database.tables.base import created_at, metadata
from venn_admit.store.database.tables.calibrations import calibration
from venn_admit.store.database.tables.exemplars import classifier, exemplar

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
        comment="q, number of consecutive nearest neighbours that match the prediction; null without vectors.",
    ),
    Column("distance", Double, comment="d, distance to the nearest training exemplar; null without vectors."),
    Column("logits", ARRAY(Double), comment="KNN(x), one per class; null without vectors."),
    Column("upweight", Double, comment="w; infinite if psi' = 0; null if the set is not a singleton."),
    Column("lower", Double, comment="Lower probability of the prediction; null if the set is not a singleton."),
    Column("upper", Double, comment="Upper probability of the prediction; null if the set is not a singleton."),
    Column("decision", Integer, comment="Admitted class; null if rejected."),
    Column("reason", Text, comment="Why it was rejected; null if admitted."),
    created_at("it was decided"),
    UniqueConstraint("calibration_id", "exemplar_id", "weighted", "require_full_match", name="decision_key"),
    CheckConstraint("(decision IS NULL) = (reason IS NOT NULL)", name="reason"),
    CheckConstraint("decision = predicted", name="decision"),
    # Without vectors there are no neighbours, and nothing to weight by.
    CheckConstraint(
        "num_nulls(match_count, distance, logits) IN (0, 3) "
        "AND (match_count IS NOT NULL OR NOT (weighted OR require_full_match))",
        name="knn",
    ),
    # Decisions on one exemplar, by any snapshot.
    Index(None, "exemplar_id", "calibration_id"),
    # Pages of those by some snapshots, admitted or rejected, the newest first. It does not begin with the snapshot:
    # the planner would take it for the key as long as its statistics know no decision by the snapshot.
    Index("decision_outcome_idx", text("(decision IS NOT NULL)"), "calibration_id", "id"),
    # Those of a day. They are not stored in the order of days: new ones take the room of removed ones.
    Index("decision_date_idx", text("((created_at AT TIME ZONE 'UTC')::date)")),
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


decision_removal = Table(
    "decision_removal",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True, comment="Key."),
    Column(
        "classifier_id",
        ForeignKey(classifier.c.id, ondelete="CASCADE"),
        nullable=False,
        index=True,
        comment="Classifier that had decided.",
    ),
    Column(
        "removed_at",
        DateTime(timezone=True),
        nullable=False,
        server_default=func.now(),
        comment="When they were removed.",
    ),
    Column("reason", Text, nullable=False, comment="age, by the setting; or request, because somebody asked for it."),
    Column("decisions", INT8MULTIRANGE, nullable=False, comment="Keys of the decisions."),
    Column("decision_count", Integer, nullable=False, comment="Number of the decisions."),
    Column(
        "decided_until",
        DateTime(timezone=True),
        nullable=False,
        comment="When the newest of the decisions was made.",
    ),
    CheckConstraint("reason IN ('age', 'request')", name="reason"),
    CheckConstraint("decision_count > 0", name="decision_count"),
    # Why a decision is no longer there.
    Index(None, "decisions", postgresql_using="gist"),
    comment="Decisions that were removed, a row for each transaction that did.",
)
