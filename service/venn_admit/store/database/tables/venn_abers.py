"""What a snapshot of the method venn-abers consists of besides its points: score, certificate and steps."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from venn_admit.store.database.tables.base import metadata, optional, required
from venn_admit.store.database.tables.calibrations import calibrator, snapshot_key, validity
from venn_admit.store.database.tables.standing import standing_chain

score_choice = sa.Table(
    "score_choice",
    metadata,
    snapshot_key(),
    required("score", sa.Text, "Score of the snapshot: network or reliability."),
    optional(
        "network_share",
        sa.Double,
        "Share of mc that the network's score admits by cross-fitting; null if a score was asked for.",
    ),
    optional(
        "reliability_share",
        sa.Double,
        "Share of mc that the reliability score admits by cross-fitting; null if a score was asked for.",
    ),
    optional(
        "standard_error", sa.Double, "Of the difference between the shares, over documents; null with fewer than two."
    ),
    optional("documents", sa.Integer, "Number of documents; null if a score was asked for."),
    sa.CheckConstraint("score IN ('network', 'reliability')", name="score"),
    comment="Score of each snapshot of the method venn-abers, and on what ground it was chosen.",
)


certificate = sa.Table(
    "certificate",
    metadata,
    snapshot_key(),
    optional(
        "thresholds",
        ARRAY(sa.Double),
        "Least score or p0 at which a predicted class is admitted; a null among them is never; null if a certificate "
        "was asked for and no policy is certified.",
    ),
    optional(
        "bounded",
        sa.Text,
        "What the thresholds bound: score, or lower for p0 in older certificates; null without a policy.",
    ),
    optional(
        "groups",
        JSONB,
        "Least score of each group, by attribute and predicted class, which must be reached too; null if none were "
        "asked for.",
    ),
    optional("p_value", sa.Double, "The certified policy's p-value, the largest of its classes'."),
    optional("mc_share", sa.Double, "Share of mc that the policy admits, in older certificates, proposed on it."),
    optional("share", sa.Double, "Share of the evidence, or of the calibration points, that the policy admits."),
    required(
        "documents",
        sa.Integer,
        "Number of documents of evidence: mc and vp, or vp alone in older certificates; for the average promise, of "
        "the calibration points.",
    ),
    optional(
        "documents_needed",
        sa.Numeric,
        "Documents of evidence with which a policy is likely to pass; null if one is certified, or none would.",
    ),
    required(
        "document",
        JSONB,
        "The certificate in full: what was asked, each policy tested, and the results of its classes; for the average "
        "promise, what the threshold of each class rests on.",
    ),
    optional(
        "chain_id",
        sa.ForeignKey(standing_chain.c.id),
        "Chain whose certified thresholds these are, if the certificate stands while labels arrive; null otherwise.",
    ),
    sa.CheckConstraint("0 <= ALL (thresholds) AND 1 >= ALL (thresholds)", name="thresholds"),
    sa.CheckConstraint(
        "((thresholds IS NULL) = (p_value IS NULL) OR document ->> 'promise' = 'average') "
        "AND (thresholds IS NULL) = (share IS NULL) AND (thresholds IS NULL) = (bounded IS NULL)",
        name="policy",
    ),
    sa.CheckConstraint("bounded IN ('score', 'lower')", name="bounded"),
    comment="Policy of each snapshot that was asked for a certificate, if one passed, or for the average promise.",
)


venn_abers_step = sa.Table(
    "venn_abers_step",
    metadata,
    required("calibrator_id", sa.ForeignKey(calibrator.c.id), "The calibrator."),
    required("cell", sa.Integer, "Number of the cell: bin of q times number of classes, plus predicted class."),
    required("score", sa.Double, "Score from which the step holds, up to the next; -infinity for the first of a cell."),
    *validity(),
    required("lower", sa.Double, "p0 within the step."),
    required("upper_at", sa.Double, "p1 at the score itself."),
    required("upper_above", sa.Double, "p1 above it, within the step."),
    sa.PrimaryKeyConstraint("calibrator_id", "cell", "score", "valid_from"),
    # The step of a score is the last entry not above it; there is one open row a step.
    sa.Index(
        "venn_abers_step_open_key",
        "calibrator_id",
        "cell",
        "score",
        unique=True,
        postgresql_where=sa.text("valid_until IS NULL"),
    ),
    comment="Row-versioned plain bounds of each cell as functions of the score: two probabilities a step.",
)
