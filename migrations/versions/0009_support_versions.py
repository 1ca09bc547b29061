"""Versions of the training exemplars.

Why: when they grow, only the new ones are searched; when one is removed or relabelled, only the lists that hold it
are looked at; and a decision replays among those of its time.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

COMMENTS = (
    ("neighbours", "Support version it was complete to when written.", "Newest training exemplar that was searched."),
    ("approximation", "Support version it was computed at.", "That of the neighbours it was computed from."),
    ("decision", "Support version it was decided at.", "Newest training exemplar its neighbours are from."),
)


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.add_column(
        "classifier",
        sa.Column(
            "support_version",
            sa.BigInteger(),
            server_default=sa.text("0"),
            nullable=False,
            comment="Of the training exemplars: ascends with every change, in one sequence with exemplar ids.",
        ),
        schema="venn_admit",
    )
    op.add_column(
        "classifier",
        sa.Column(
            "neighbours_complete_to",
            sa.BigInteger(),
            server_default=sa.text("0"),
            nullable=False,
            comment="Support version that all neighbour lists stored are complete to, whatever their rows say.",
        ),
        schema="venn_admit",
    )
    op.add_column(
        "job",
        sa.Column(
            "support_version",
            sa.BigInteger(),
            nullable=True,
            comment="Neighbour lists are all complete to it once done; null: not all.",
        ),
        schema="venn_admit",
    )
    op.create_table(
        "support_change",
        sa.Column("classifier_id", sa.Integer(), nullable=False, comment="Whose training exemplars."),
        sa.Column("version", sa.BigInteger(), nullable=False, comment="Support version from which on it holds."),
        sa.Column("exemplar_id", sa.BigInteger(), nullable=False, comment="What changed."),
        sa.Column("kind", sa.Text(), nullable=False, comment="added, removed or relabelled."),
        sa.Column(
            "label_before",
            sa.Integer(),
            nullable=True,
            comment="Label until then; null where it was no training exemplar.",
        ),
        sa.CheckConstraint("kind IN ('added', 'removed', 'relabelled')", name=op.f("support_change_kind_check")),
        sa.CheckConstraint("(kind = 'added') = (label_before IS NULL)", name=op.f("support_change_label_before_check")),
        sa.ForeignKeyConstraint(
            ["classifier_id"], ["venn_admit.classifier.id"], name=op.f("support_change_classifier_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["exemplar_id"], ["venn_admit.exemplar.id"], name=op.f("support_change_exemplar_id_fkey")
        ),
        sa.PrimaryKeyConstraint("classifier_id", "version", "exemplar_id", name=op.f("support_change_pkey")),
        schema="venn_admit",
        comment="Changes of training exemplars but their ingestion, whose version is the exemplar's id.",
    )
    for table, comment, before in COMMENTS:
        op.alter_column(table, "complete_to", comment=comment, existing_comment=before, schema="venn_admit")
    # Until now the newest training exemplar was the version.
    op.execute(
        """
        UPDATE venn_admit.classifier
        SET
            support_version = coalesce(
                (
                    SELECT max(exemplar.id)
                    FROM venn_admit.exemplar
                    WHERE
                        exemplar.classifier_id = classifier.id
                        AND exemplar.split = 'train'
                ),
                0
            )
        """
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for table, comment, before in COMMENTS:
        op.alter_column(table, "complete_to", comment=before, existing_comment=comment, schema="venn_admit")
    op.drop_table("support_change", schema="venn_admit")
    op.drop_column("job", "support_version", schema="venn_admit")
    op.drop_column("classifier", "neighbours_complete_to", schema="venn_admit")
    op.drop_column("classifier", "support_version", schema="venn_admit")
