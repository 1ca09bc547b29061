"""What a snapshot of the method venn-abers consists of besides its points: score, certificate and steps."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    Numeric,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from venn_admit.store.database.tables.base import metadata
from venn_admit.store.database.tables.calibrations import calibrator, snapshot_key, validity

score_choice = Table(
    "score_choice",
    metadata,
    snapshot_key(),
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


certificate = Table(
    "certificate",
    metadata,
    snapshot_key(),
    Column(
        "thresholds",
        ARRAY(Double),
        comment="Least p0 at which a predicted class is admitted; a null among them is never; null if no policy is "
        "certified.",
    ),
    Column("p_value", Double, comment="The policy's p-value, the largest of its classes'."),
    Column("mc_share", Double, comment="Share of mc that the certified policy admits."),
    Column("vp_share", Double, comment="Share of vp that the certified policy admits."),
    Column("vp_documents", Integer, nullable=False, comment="Number of documents of vp."),
    Column(
        "documents_needed",
        Numeric,
        comment="Documents of vp with which a policy is likely to pass; null if one is certified, or none would.",
    ),
    Column(
        "document",
        JSONB,
        nullable=False,
        comment="The certificate in full: what was asked, each proposal, and the results of its classes.",
    ),
    CheckConstraint("0 <= ALL (thresholds) AND 1 >= ALL (thresholds)", name="thresholds"),
    CheckConstraint(
        "(thresholds IS NULL) = (p_value IS NULL) AND (thresholds IS NULL) = (mc_share IS NULL) "
        "AND (thresholds IS NULL) = (vp_share IS NULL)",
        name="policy",
    ),
    comment="What became of the certificate that a snapshot was asked for: the certified policy, if there is one.",
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
    *validity(),
    Column("lower", Double, nullable=False, comment="p0 within the step."),
    Column("upper_at", Double, nullable=False, comment="p1 at the score itself."),
    Column("upper_above", Double, nullable=False, comment="p1 above it, within the step."),
    PrimaryKeyConstraint("calibrator_id", "cell", "score", "valid_from"),
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
