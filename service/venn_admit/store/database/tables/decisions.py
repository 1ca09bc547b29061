"""Decisions, and the evidence that each method keeps."""

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, BIT, INT8MULTIRANGE
from sqlalchemy.types import TypeEngine

from venn_admit.core.evidence import EVIDENCE, SHARED, Field, Kind, MethodEvidence
from venn_admit.core.reasons import Reason
from venn_admit.store.database.tables.base import TIME, created_at, key, metadata, required
from venn_admit.store.database.tables.calibrations import calibration
from venn_admit.store.database.tables.exemplars import classifier, exemplar

_TYPES: dict[Kind, TypeEngine[Any]] = {
    Kind.INTEGER: sa.Integer(),
    Kind.CLASS: sa.Integer(),
    Kind.REAL: sa.Double(),
    Kind.UNBOUNDED: sa.Double(),
    Kind.REASON: sa.Text(),
    Kind.INTEGERS: ARRAY(sa.Integer),
    Kind.UNBOUNDEDS: ARRAY(sa.Double),
    Kind.BITS: BIT(varying=True),
}


def columns_of(fields: Iterable[Field]) -> list[sa.Column[Any]]:
    """Return the columns of some fields."""
    return [
        sa.Column(field.name, _TYPES[field.kind], nullable=field.nullable, comment=field.meaning) for field in fields
    ]


decision = sa.Table(
    "decision",
    metadata,
    key("Key."),
    required("calibration_id", sa.ForeignKey(calibration.c.id), "The snapshot that it rests on."),
    required("exemplar_id", sa.ForeignKey(exemplar.c.id), "Exemplar that was decided on."),
    required("weighted", sa.Boolean, "Whether the probabilities are up-weighted by the localizer."),
    required("require_full_match", sa.Boolean, "Whether a point with q < K was rejected."),
    required("support_version", sa.BigInteger, "Support version at which it was decided."),
    *columns_of(SHARED),
    created_at("it was decided"),
    sa.UniqueConstraint("calibration_id", "exemplar_id", "weighted", "require_full_match", name="decision_key"),
    sa.CheckConstraint("(decision IS NULL) = (reason IS NOT NULL)", name="reason"),
    sa.CheckConstraint(f"reason IN ({', '.join(map(repr, map(str, Reason)))})", name="known_reason"),
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


def _evidence_table(evidence: MethodEvidence) -> sa.Table:
    return sa.Table(
        evidence.table,
        metadata,
        sa.Column(
            "decision_id",
            sa.ForeignKey(decision.c.id, ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
            comment="The decision.",
        ),
        *columns_of(evidence.fields),
        comment=f"Evidence of decisions by the method {evidence.method}, besides what every decision has.",
    )


admit_evidence, abers_evidence = map(_evidence_table, EVIDENCE.values())


decision_removal = sa.Table(
    "decision_removal",
    metadata,
    key("Key."),
    required(
        "classifier_id", sa.ForeignKey(classifier.c.id, ondelete="CASCADE"), "Classifier that had decided.", index=True
    ),
    required("removed_at", TIME, "When they were removed.", server_default=sa.func.now()),
    required("reason", sa.Text, "age, by the setting; or request, because somebody asked for it."),
    required("decisions", INT8MULTIRANGE, "Keys of the decisions."),
    required("decision_count", sa.Integer, "Number of the decisions."),
    required("decided_until", TIME, "When the newest of the decisions was made."),
    sa.CheckConstraint("reason IN ('age', 'request')", name="reason"),
    sa.CheckConstraint("decision_count > 0", name="decision_count"),
    # Why a decision is no longer there.
    sa.Index(None, "decisions", postgresql_using="gist"),
    comment="Decisions that were removed, a row for each transaction that did.",
)
