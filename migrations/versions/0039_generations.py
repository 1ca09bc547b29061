"""Generations of a classifier: a row each, of which the classifier's name stands for one.

Why: vectors of two extractors must not mix, so a new extractor takes a new set of exemplars. It is calibrated beside
the one in use, and then they change places at once. Everything that is stored of a classifier refers to its row, so
that a generation is a row of its own, and nothing else has to change. Rows stay as they are: each classifier that is
there is its own first generation, and of an extractor that was not stated. The table of classifiers is small, and the
new column of the ledger of labels has no default, so nothing is rewritten. Older programs go on: they know the current
generation by the classifier's name, and the others by theirs.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

from venn_admit.service.store.database.routines import view_statements

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None

VIEWS = Path(__file__).parents[1] / "routines" / "views"
ACTIONS = "What was asked for: the operationId of the route, authenticate, {}."
KEYS = "create_key or revoke_key"
GENERATIONS = "create_key, revoke_key, create_generation, switch_generation or state_extractor"
CLASSIFIERS = "Deployed classifiers (the paper's tasks) whose predictions are calibrated{}."


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '1min'")
    for column in (
        sa.Column(
            "extractor",
            sa.Text(),
            nullable=True,
            comment="Version of the extractor that its vectors come from; null if it was not stated.",
        ),
        sa.Column(
            "generation",
            sa.Integer(),
            server_default=sa.text("1"),
            nullable=False,
            comment="Number among the generations of the same classifier.",
        ),
        sa.Column(
            "is_current",
            sa.Boolean(),
            server_default=sa.text("true"),
            nullable=False,
            comment="Whether the classifier's name stands for it; that of any other generation is NAME@NUMBER.",
        ),
        sa.Column(
            "original_id",
            sa.Integer(),
            nullable=True,
            comment="First generation of the same classifier; null if it is the first.",
        ),
    ):
        op.add_column("classifier", column, schema="venn_admit")
    # The constraints are checked, and the indexes built, on a row for each classifier.
    op.execute(
        "-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid\n"
        "ALTER TABLE venn_admit.classifier ADD CONSTRAINT classifier_original_id_fkey "
        "FOREIGN KEY (original_id) REFERENCES venn_admit.classifier (id)"
    )
    op.execute(
        "-- squawk-ignore constraint-missing-not-valid\n"
        "ALTER TABLE venn_admit.classifier ADD CONSTRAINT classifier_extractor_check "
        "CHECK (char_length(extractor) BETWEEN 1 AND 200)"
    )
    op.execute(
        "-- squawk-ignore constraint-missing-not-valid\n"
        "ALTER TABLE venn_admit.classifier ADD CONSTRAINT classifier_generation_check "
        "CHECK (generation >= 1 AND (generation = 1) = (original_id IS NULL))"
    )
    op.execute(
        "-- squawk-ignore require-concurrent-index-creation\n"
        "CREATE UNIQUE INDEX classifier_generation_idx "
        "ON venn_admit.classifier (coalesce(original_id, id), generation)"
    )
    op.execute(
        "-- squawk-ignore require-concurrent-index-creation\n"
        "CREATE UNIQUE INDEX classifier_current_idx "
        "ON venn_admit.classifier (coalesce(original_id, id)) WHERE is_current"
    )
    op.add_column(
        "label_event",
        sa.Column(
            "first_arrived_at",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="When it arrived for another generation, from which it was carried over; null if it was not.",
        ),
        schema="venn_admit",
    )
    _comment(ACTIONS.format(GENERATIONS), before=ACTIONS.format(KEYS))
    _comment_table(CLASSIFIERS.format(", a row for each generation"), before=CLASSIFIERS.format(""))
    op.execute((VIEWS / "classifier_address_v1.sql").read_text())
    for view in ("classifier_v1", "label_v1_since_0039"):
        for statement in view_statements(view):
            op.execute(statement)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP VIEW report.classifier_v1")
    op.execute("DROP VIEW venn_admit.classifier_address_v1")
    op.execute("DROP VIEW report.label_v1")
    for statement in view_statements("label_v1"):
        op.execute(statement)
    _comment_table(CLASSIFIERS.format(""), before=CLASSIFIERS.format(", a row for each generation"))
    _comment(ACTIONS.format(KEYS), before=ACTIONS.format(GENERATIONS))
    op.drop_column("label_event", "first_arrived_at", schema="venn_admit")
    op.drop_index("classifier_current_idx", "classifier", schema="venn_admit")
    op.drop_index("classifier_generation_idx", "classifier", schema="venn_admit")
    for column in ("original_id", "is_current", "generation", "extractor"):
        op.drop_column("classifier", column, schema="venn_admit")


def _comment(comment: str, *, before: str) -> None:
    op.alter_column(
        "audit_event",
        "action",
        existing_type=sa.Text(),
        existing_nullable=False,
        existing_comment=before,
        comment=comment,
        schema="venn_admit",
    )


def _comment_table(comment: str, *, before: str) -> None:
    op.create_table_comment("classifier", comment, existing_comment=before, schema="venn_admit")
