"""What people are to label: the points of the queue, who has claimed which, and the labels that reviewers gave."""

import sqlalchemy as sa

from venn_admit.store.database.tables.base import TIME, created_at, key, metadata, optional, required
from venn_admit.store.database.tables.exemplars import classifier, exemplar

review_queue = sa.Table(
    "review_queue",
    metadata,
    sa.Column(
        "classifier_id",
        sa.ForeignKey(classifier.c.id, ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
        comment="Classifier.",
    ),
    required("filled_at", TIME, "When rejected points were last looked for."),
    comment="When the queue of each classifier was last filled.",
)
review_point = sa.Table(
    "review_point",
    metadata,
    sa.Column("exemplar_id", sa.ForeignKey(exemplar.c.id), primary_key=True, autoincrement=False, comment="The point."),
    required("classifier_id", sa.ForeignKey(classifier.c.id), "Its classifier."),
    required("decision_id", sa.BigInteger, "The newest decision on it then, which may have been removed since."),
    optional("reason", sa.Text, "Why it was rejected; null if it was admitted and drawn for an audit."),
    optional("due", sa.Text, "Day by which it is due, YYYY-MM-DD, by its attribute `due`; null if that is none."),
    optional("lower", sa.Double, "Lower probability of its prediction; null if none was computed."),
    optional("near_id", sa.BigInteger, "The nearest training exemplar, which near duplicates share; null if unknown."),
    created_at("it was queued"),
    optional("reviewer", sa.Text, "Who has claimed it; null if nobody has."),
    optional("claimed_at", TIME, "When it was claimed; null if it is not."),
    optional("lease_until", TIME, "Until when the claim holds unless it is renewed; null if it is not claimed."),
    optional("done_at", TIME, "When a label came; null while it waits for one."),
    required(
        "is_drawn",
        sa.Boolean,
        "Whether it was drawn to be audited, so that its place in the queue follows from its key alone.",
        server_default=sa.text("false"),
    ),
    sa.CheckConstraint("due ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'", name="due"),
    sa.CheckConstraint("num_nulls(reviewer, claimed_at, lease_until) IN (0, 3)", name="claim"),
    sa.Index("review_point_waiting_idx", "classifier_id", sa.text("(done_at IS NULL)")),
    comment="Points that reviewers label, and those that they have labelled.",
)
review_label = sa.Table(
    "review_label",
    metadata,
    key("Key; ascends in order of arrival."),
    required("exemplar_id", sa.ForeignKey(exemplar.c.id), "Exemplar that was labelled."),
    required("reviewer", sa.Text, "Who gave the label."),
    required("label", sa.Integer, "The label."),
    required("resolves", sa.Boolean, "Whether it ends a disagreement between the labels before it."),
    created_at("it was given"),
    sa.CheckConstraint("label >= 0", name="label"),
    sa.Index(None, "exemplar_id", "id"),
    comment="Append-only: every label that a reviewer gave, also one that another had given before.",
)
