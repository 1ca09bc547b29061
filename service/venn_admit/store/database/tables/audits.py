"""Audits: by which rules points are drawn when they are decided on, and which were."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from venn_admit.store.database.tables.base import created_at, key, metadata, optional, required
from venn_admit.store.database.tables.exemplars import classifier, exemplar

audit_rule = sa.Table(
    "audit_rule",
    metadata,
    key("Key; the newest of a generation is in force."),
    required("classifier_id", sa.ForeignKey(classifier.c.id), "Generation of a classifier."),
    required("key", sa.LargeBinary, "Key of the draws, the same for all rules of a classifier."),
    optional(
        "admitted_rates",
        ARRAY(sa.Double),
        "Probability with which admitted points of each predicted class are drawn; null if nothing is drawn.",
    ),
    optional("rejected_rate", sa.Double, "Probability with which rejected points are drawn; null if nothing is drawn."),
    created_at("it was stated"),
    sa.CheckConstraint("octet_length(key) = 16", name="key"),
    sa.CheckConstraint("0 < ALL(admitted_rates) AND 1 >= ALL(admitted_rates)", name="admitted_rates"),
    sa.CheckConstraint("rejected_rate BETWEEN 0 AND 1", name="rejected_rate"),
    sa.CheckConstraint("(admitted_rates IS NULL) = (rejected_rate IS NULL)", name="all_rates"),
    sa.Index(None, "classifier_id", "id"),
    comment="Rules by which points are drawn to be audited when they are decided on.",
)


audit_draw = sa.Table(
    "audit_draw",
    metadata,
    sa.Column(
        "exemplar_id", sa.ForeignKey(exemplar.c.id), primary_key=True, comment="The point, which has one draw for ever."
    ),
    required("audit_rule_id", sa.ForeignKey(audit_rule.c.id), "Rule that was in force at its first decision."),
    required("predicted", sa.Integer, "Predicted class of that decision."),
    required("is_admitted", sa.Boolean, "Whether that decision admitted it."),
    required("probability", sa.Double, "Probability with which it was drawn."),
    required("least_probability", sa.Double, "The smallest one that a point of the predicted class could have had."),
    required("is_drawn", sa.Boolean, "Whether it was drawn, so that its label is asked for."),
    required("content", sa.LargeBinary, "What of it was hashed: a digest of what it holds, or its id."),
    created_at("it was drawn, or not"),
    sa.CheckConstraint("probability BETWEEN 0 AND 1", name="probability"),
    sa.CheckConstraint("least_probability BETWEEN 0 AND probability", name="least_probability"),
    sa.CheckConstraint("probability > 0 OR NOT is_drawn", name="is_drawn"),
    sa.Index("audit_draw_content_idx", "content", postgresql_where=sa.text("is_drawn")),
    sa.Index("audit_draw_drawn_idx", "audit_rule_id", "exemplar_id", postgresql_where=sa.text("is_drawn")),
    comment="Whether each point was drawn to be audited, with the probability, as fixed by its first decision.",
)
