"""Reviewers have a queue: points to label, claims on them that expire, and the labels that each of them gave.

Why: several people who label what was rejected did so twice, or waited for one another, and where their labels differed
only the last one was known. The ledger of labels stays what counts.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0084"
down_revision = "0077"
branch_labels = None
depends_on = None

TABLES = ("review_queue", "review_point", "review_label")
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.create_table(
        "review_queue",
        sa.Column("classifier_id", sa.Integer, nullable=False, comment="Classifier."),
        sa.Column("filled_at", TIME, nullable=False, comment="When rejected points were last looked for."),
        sa.PrimaryKeyConstraint("classifier_id", name=op.f("review_queue_pkey")),
        refers("review_queue", "classifier_id", "classifier", ondelete="CASCADE"),
        schema="venn_admit",
        comment="When the queue of each classifier was last filled.",
    )
    make_points()
    make_labels()


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for table in reversed(TABLES):
        op.drop_table(table, schema="venn_admit")


def make_points() -> None:
    op.create_table(
        "review_point",
        sa.Column("exemplar_id", sa.BigInteger, nullable=False, comment="The point."),
        sa.Column("classifier_id", sa.Integer, nullable=False, comment="Its classifier."),
        sa.Column(
            "decision_id",
            sa.BigInteger,
            nullable=False,
            comment="The newest decision on it then, which may have been removed since.",
        ),
        optional("reason", sa.Text, "Why it was rejected; null if it was admitted and drawn for an audit."),
        optional("due", sa.Text, "Day by which it is due, YYYY-MM-DD, by its attribute `due`; null if that is none."),
        optional("lower", sa.Double, "Lower probability of its prediction; null if none was computed."),
        optional(
            "near_id", sa.BigInteger, "The nearest training exemplar, which near duplicates share; null if unknown."
        ),
        created_at("it was queued"),
        optional("reviewer", sa.Text, "Who has claimed it; null if nobody has."),
        optional("claimed_at", TIME, "When it was claimed; null if it is not."),
        optional("lease_until", TIME, "Until when the claim holds unless it is renewed; null if it is not claimed."),
        optional("done_at", TIME, "When a label came; null while it waits for one."),
        sa.PrimaryKeyConstraint("exemplar_id", name=op.f("review_point_pkey")),
        refers("review_point", "exemplar_id", "exemplar"),
        refers("review_point", "classifier_id", "classifier"),
        sa.CheckConstraint("due ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'", name=op.f("review_point_due_check")),
        sa.CheckConstraint(
            "num_nulls(reviewer, claimed_at, lease_until) IN (0, 3)", name=op.f("review_point_claim_check")
        ),
        schema="venn_admit",
        comment="Points that reviewers label, and those that they have labelled.",
    )
    op.create_index(
        "review_point_waiting_idx", "review_point", ["classifier_id", sa.text("(done_at IS NULL)")], schema="venn_admit"
    )


def make_labels() -> None:
    op.create_table(
        "review_label",
        sa.Column(
            "id", sa.BigInteger, sa.Identity(always=True), nullable=False, comment="Key; ascends in order of arrival."
        ),
        sa.Column("exemplar_id", sa.BigInteger, nullable=False, comment="Exemplar that was labelled."),
        sa.Column("reviewer", sa.Text, nullable=False, comment="Who gave the label."),
        sa.Column("label", sa.Integer, nullable=False, comment="The label."),
        sa.Column(
            "resolves",
            sa.Boolean,
            nullable=False,
            comment="Whether it ends a disagreement between the labels before it.",
        ),
        created_at("it was given"),
        sa.PrimaryKeyConstraint("id", name=op.f("review_label_pkey")),
        refers("review_label", "exemplar_id", "exemplar"),
        sa.CheckConstraint("label >= 0", name=op.f("review_label_label_check")),
        schema="venn_admit",
        comment="Append-only: every label that a reviewer gave, also one that another had given before.",
    )
    op.create_index(op.f("review_label_exemplar_id_id_idx"), "review_label", ["exemplar_id", "id"], schema="venn_admit")


def optional(name: str, kind: Any, comment: str) -> sa.Column[Any]:
    return sa.Column(name, kind, comment=comment)


def created_at(what: str) -> sa.Column[Any]:
    return sa.Column("created_at", TIME, nullable=False, comment=f"When {what}.", server_default=sa.func.now())


def refers(table: str, column: str, other: str, ondelete: str | None = None) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], [f"venn_admit.{other}.id"], name=op.f(f"{table}_{column}_fkey"), ondelete=ondelete
    )
