"""Classifiers may be asked one after the other, with one certificate for what they serve together.

Why: a small classifier answers most points at little cost. Certificates of single classifiers do not hold of what a
later one serves, which is what the earlier ones left. A generation of a classifier that is a stage cannot be deleted.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from venn_admit.store.database.routines import routine_statements

revision = "0067"
down_revision = "0066"
branch_labels = None
depends_on = None

TABLES = ("classifier_cascade", "cascade_stage", "cascade_calibration", "cascade_calibration_stage")


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    make_tables()
    for statement in routine_statements("views/cascade_stage_v1"):
        op.execute(statement)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("-- squawk-ignore ban-drop-view\nDROP VIEW report.cascade_stage_v1")
    for table in reversed(TABLES):
        op.drop_table(table, schema="venn_admit")


def make_tables() -> None:
    op.create_table(
        "classifier_cascade",
        key("Key."),
        required("name", sa.Text, "What users call it."),
        created_at("it was created"),
        sa.UniqueConstraint("name", name=op.f("classifier_cascade_name_key")),
        check("classifier_cascade", "name", "name <> ''"),
        schema="venn_admit",
        comment="Classifiers that are asked one after the other: a point goes to the next where it is rejected.",
    )
    op.create_table(
        "cascade_stage",
        of_cascade("cascade_stage"),
        required("place", sa.Integer, "Place of the stage, from 1."),
        sa.Column(
            "classifier_id",
            sa.Integer,
            sa.ForeignKey("venn_admit.classifier.id", name="cascade_stage_classifier_id_fkey"),
            comment="Generation of a classifier, which cannot be deleted meanwhile; null for a person, who is the last "
            "stage.",
        ),
        required("cost", sa.Double, "What a point costs that reaches the stage, in the user's unit."),
        sa.PrimaryKeyConstraint("cascade_id", "place", name=op.f("cascade_stage_pkey")),
        sa.UniqueConstraint("cascade_id", "classifier_id", name=op.f("cascade_stage_cascade_id_classifier_id_key")),
        check("cascade_stage", "place", "place >= 1"),
        check("cascade_stage", "cost", "cost >= 0 AND cost < 'infinity'"),
        schema="venn_admit",
        comment="Stages of each cascade, in order.",
    )
    op.create_table(
        "cascade_calibration",
        key("Key; a cascade serves by the newest."),
        of_cascade("cascade_calibration"),
        created_at("it looked at the labels"),
        required("alpha", sa.Numeric, "Share of what is served of each class that may be wrong."),
        required("confidence", sa.Numeric, "Confidence that was asked for."),
        required("is_certified", sa.Boolean, "Whether a policy passed; without one, nothing is served."),
        required("points", sa.Integer, "Number of points of evidence."),
        required("document", JSONB, "The certificate in full: what was asked, each policy tested, and the results."),
        check("cascade_calibration", "alpha", "alpha > 0 AND alpha < 1"),
        check("cascade_calibration", "confidence", "confidence > 0 AND confidence < 1"),
        schema="venn_admit",
        comment="Certificates of each cascade. Only added to.",
    )
    op.create_table(
        "cascade_calibration_stage",
        sa.Column(
            "cascade_calibration_id",
            sa.BigInteger,
            sa.ForeignKey(
                "venn_admit.cascade_calibration.id",
                ondelete="CASCADE",
                name="cascade_calibration_stage_cascade_calibration_id_fkey",
            ),
            nullable=False,
            comment="The certificate.",
        ),
        required("place", sa.Integer, "Place of the stage."),
        required("calibration_id", sa.BigInteger, "Snapshot of the stage's classifier then, which may be gone by now."),
        required("score", sa.Text, "Score that the thresholds bound: network or reliability."),
        sa.Column(
            "knn_parameters_id",
            sa.BigInteger,
            comment="Parameters of that score; null for a classifier with logits only.",
        ),
        required(
            "thresholds", ARRAY(sa.Double), "Least score at which each predicted class is served; null for never."
        ),
        required("reached", sa.Integer, "Points of evidence that reach the stage."),
        required("served", ARRAY(sa.Integer), "Those of them that it serves, by predicted class."),
        required("served_right", ARRAY(sa.Integer), "Those of the served that are right."),
        sa.PrimaryKeyConstraint("cascade_calibration_id", "place", name=op.f("cascade_calibration_stage_pkey")),
        check("cascade_calibration_stage", "score", "score IN ('network', 'reliability')"),
        schema="venn_admit",
        comment="What each stage of a cascade serves of the evidence of a certificate.",
    )
    for table, column in (
        ("cascade_stage", "classifier_id"),
        ("cascade_calibration", "cascade_id"),
    ):
        op.create_index(f"{table}_{column}_idx", table, [column], schema="venn_admit")


def key(comment: str) -> sa.Column[Any]:
    return sa.Column("id", sa.BigInteger, sa.Identity(always=True), primary_key=True, comment=comment)


def of_cascade(table: str) -> sa.Column[Any]:
    return sa.Column(
        "cascade_id",
        sa.BigInteger,
        sa.ForeignKey("venn_admit.classifier_cascade.id", ondelete="CASCADE", name=f"{table}_cascade_id_fkey"),
        nullable=False,
        comment="The cascade.",
    )


def created_at(what: str) -> sa.Column[Any]:
    return sa.Column(
        "created_at",
        sa.DateTime(timezone=True),
        nullable=False,
        comment=f"When {what}.",
        server_default=sa.func.now(),
    )


def required(name: str, kind: Any, comment: str) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, comment=comment)


def check(table: str, name: str, rule: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(rule, name=op.f(f"{table}_{name}_check"))
