"""Points are drawn to be audited when they are decided on, and labels of drawn points count by their probability.

Why: labels of reviewed points were lost for calibration, because nobody knew with which probability a point had come to
be reviewed. Decisions and labels from before have no draw, and stay as they are.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

from venn_admit.store.database.routines import routine_statements

revision = "0094"
down_revision = "0091"
branch_labels = None
depends_on = None

LEDGER = "Append-only ledger of labels."
SELECTION = "(by a person or by a rule)."


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    make_rules()
    make_draws()
    op.add_column(
        "standing_evidence",
        sa.Column(
            "weight",
            sa.Double,
            comment="That of a drawn point: the smallest probability of its predicted class divided by its own; null "
            "for 1.",
        ),
        schema="venn_admit",
    )
    op.execute(
        "-- squawk-ignore constraint-missing-not-valid\nALTER TABLE venn_admit.standing_evidence "
        "ADD CONSTRAINT standing_evidence_weight_check CHECK (weight BETWEEN 0 AND 1)"
    )
    know_selections(
        "'random', 'review', 'selected'",
        f"random, review if it was drawn with a known probability, or selected {SELECTION}",
    )
    op.execute(
        f"COMMENT ON TABLE venn_admit.label_event IS '{LEDGER} Selected points do not represent the traffic, and never "
        "calibrate.'"
    )
    replace("audit_draw_v1", "standing_label_v1", "label_v1_since_0094")
    oldest_program(revision)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.execute("DROP VIEW report.audit_draw_v1")
    op.execute("DROP VIEW venn_admit.standing_label_v1")
    replace("label_v1")
    op.execute("UPDATE venn_admit.label_event SET selection = 'selected' WHERE selection = 'review'")
    know_selections("'random', 'selected'", f"random, or selected {SELECTION}")
    op.execute(
        f"COMMENT ON TABLE venn_admit.label_event IS '{LEDGER} Only random ones calibrate: selected points do not "
        "represent the traffic.'"
    )
    op.execute("-- squawk-ignore ban-drop-column\nALTER TABLE venn_admit.standing_evidence DROP COLUMN weight")
    op.drop_table("audit_draw", schema="venn_admit")
    op.drop_table("audit_rule", schema="venn_admit")
    oldest_program("0091")


def make_rules() -> None:
    op.create_table(
        "audit_rule",
        identity("Key; the newest of a generation is in force."),
        required("classifier_id", sa.Integer, "Generation of a classifier."),
        required("key", sa.LargeBinary, "Key of the draws, the same for all rules of a classifier."),
        sa.Column(
            "admitted_rates",
            ARRAY(sa.Double),
            comment="Probability with which admitted points of each predicted class are drawn; null if nothing is "
            "drawn.",
        ),
        sa.Column(
            "rejected_rate",
            sa.Double,
            comment="Probability with which rejected points are drawn; null if nothing is drawn.",
        ),
        created_at("When it was stated."),
        sa.PrimaryKeyConstraint("id", name=op.f("audit_rule_pkey")),
        refers("audit_rule", "classifier_id", "classifier"),
        sa.CheckConstraint("octet_length(key) = 16", name=op.f("audit_rule_key_check")),
        sa.CheckConstraint(
            "0 < ALL(admitted_rates) AND 1 >= ALL(admitted_rates)", name=op.f("audit_rule_admitted_rates_check")
        ),
        sa.CheckConstraint("rejected_rate BETWEEN 0 AND 1", name=op.f("audit_rule_rejected_rate_check")),
        sa.CheckConstraint(
            "(admitted_rates IS NULL) = (rejected_rate IS NULL)", name=op.f("audit_rule_all_rates_check")
        ),
        schema="venn_admit",
        comment="Rules by which points are drawn to be audited when they are decided on.",
    )
    op.create_index(op.f("audit_rule_classifier_id_id_idx"), "audit_rule", ["classifier_id", "id"], schema="venn_admit")


def make_draws() -> None:
    op.create_table(
        "audit_draw",
        required("exemplar_id", sa.BigInteger, "The point, which has one draw for ever."),
        required("audit_rule_id", sa.BigInteger, "Rule that was in force at its first decision."),
        required("predicted", sa.Integer, "Predicted class of that decision."),
        required("is_admitted", sa.Boolean, "Whether that decision admitted it."),
        required("probability", sa.Double, "Probability with which it was drawn."),
        required(
            "least_probability", sa.Double, "The smallest one that a point of the predicted class could have had."
        ),
        required("is_drawn", sa.Boolean, "Whether it was drawn, so that its label is asked for."),
        required("content", sa.LargeBinary, "What of it was hashed: a digest of what it holds, or its id."),
        created_at("When it was drawn, or not."),
        sa.PrimaryKeyConstraint("exemplar_id", name=op.f("audit_draw_pkey")),
        refers("audit_draw", "exemplar_id", "exemplar"),
        refers("audit_draw", "audit_rule_id", "audit_rule"),
        sa.CheckConstraint("probability BETWEEN 0 AND 1", name=op.f("audit_draw_probability_check")),
        sa.CheckConstraint(
            "least_probability BETWEEN 0 AND probability", name=op.f("audit_draw_least_probability_check")
        ),
        sa.CheckConstraint("probability > 0 OR NOT is_drawn", name=op.f("audit_draw_is_drawn_check")),
        schema="venn_admit",
        comment="Whether each point was drawn to be audited, with the probability, as fixed by its first decision.",
    )
    op.create_index(
        "audit_draw_content_idx",
        "audit_draw",
        ["content"],
        schema="venn_admit",
        postgresql_where=sa.text("is_drawn"),
    )
    op.create_index(
        "audit_draw_drawn_idx",
        "audit_draw",
        ["audit_rule_id", "exemplar_id"],
        schema="venn_admit",
        postgresql_where=sa.text("is_drawn"),
    )


def know_selections(known: str, comment: str) -> None:
    """Change which ways there are to choose labels."""
    op.execute(
        "-- squawk-ignore ban-drop-constraint\n"
        "ALTER TABLE venn_admit.label_event DROP CONSTRAINT label_event_selection_check"
    )
    op.execute(
        "ALTER TABLE venn_admit.label_event ADD CONSTRAINT label_event_selection_check "
        f"CHECK (selection IN ({known})) NOT VALID"
    )
    op.execute(
        "-- squawk-ignore constraint-missing-not-valid\n"
        "ALTER TABLE venn_admit.label_event VALIDATE CONSTRAINT label_event_selection_check"
    )
    op.execute(f"COMMENT ON COLUMN venn_admit.label_event.selection IS '{comment}'")


def replace(*views: str) -> None:
    for view in views:
        for statement in routine_statements(f"views/{view}"):
            op.execute(statement.replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))


def oldest_program(oldest: str) -> None:
    op.execute(
        f"CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE RETURN '{oldest}'"
    )


def identity(comment: str) -> sa.Column:
    return sa.Column("id", sa.BigInteger, sa.Identity(always=True), nullable=False, comment=comment)


def created_at(comment: str) -> sa.Column:
    return sa.Column(
        "created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now(), comment=comment
    )


def required(name: str, kind: type[sa.types.TypeEngine], comment: str) -> sa.Column:
    return sa.Column(name, kind, nullable=False, comment=comment)


def refers(table: str, column: str, other: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"venn_admit.{other}.id"], name=op.f(f"{table}_{column}_fkey"))
