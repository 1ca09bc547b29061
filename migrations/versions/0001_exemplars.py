"""Classifiers, their exemplars, vectors and labels.

Why: Everything else is computed from these; vectors stand apart, in partitions that are made with each
classifier, so that a scan of them reads nothing else.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import VECTOR
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ROUTINES = Path(__file__).parents[1] / "routines" / "functions"


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    # In public, where any other program in this database looks for it too.
    op.execute("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public")
    op.create_table(
        "classifier",
        sa.Column("id", sa.Integer(), sa.Identity(always=True), nullable=False, comment="Key."),
        sa.Column("name", sa.Text(), nullable=False, comment="What users call it."),
        sa.Column(
            "class_names",
            postgresql.ARRAY(sa.Text()),
            nullable=False,
            comment="Name of each class; position is the class number.",
        ),
        sa.Column("dimension", sa.Integer(), nullable=False, comment="D, length of an exemplar vector."),
        sa.Column("neighbour_count", sa.Integer(), nullable=False, comment="K, neighbours of the KNN approximation."),
        sa.Column("knn_share", sa.Numeric(), nullable=False, comment="Share of held-out labelled points in split knn."),
        sa.Column("mc_share", sa.Numeric(), nullable=False, comment="Share in split mc; the rest is split vp."),
        sa.Column("seed", sa.BigInteger(), nullable=False, comment="Seed of the split hash and of training."),
        sa.Column(
            "support_revision",
            sa.Uuid(),
            server_default=sa.text("gen_random_uuid()"),
            nullable=False,
            comment="Changes with every change of the training exemplars; names their cached copy.",
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was created.",
        ),
        sa.CheckConstraint("cardinality(class_names) >= 2", name=op.f("classifier_class_names_check")),
        sa.CheckConstraint("char_length(name) BETWEEN 1 AND 100", name=op.f("classifier_name_check")),
        sa.CheckConstraint("dimension BETWEEN 1 AND 16000", name=op.f("classifier_dimension_check")),
        sa.CheckConstraint(
            "knn_share > 0 AND mc_share > 0 AND knn_share + mc_share < 1", name=op.f("classifier_shares_check")
        ),
        sa.CheckConstraint("neighbour_count >= 1", name=op.f("classifier_neighbour_count_check")),
        sa.PrimaryKeyConstraint("id", name=op.f("classifier_pkey")),
        sa.UniqueConstraint("name", name=op.f("classifier_name_key")),
        schema="venn_admit",
        comment="A deployed classifier (the paper's task) whose predictions are calibrated.",
    )
    op.create_table(
        "exemplar",
        sa.Column(
            "id",
            sa.BigInteger(),
            sa.Identity(always=False),
            nullable=False,
            comment="Key; ascends in order of ingestion.",
        ),
        sa.Column("classifier_id", sa.Integer(), nullable=False, comment="Whose instance it is."),
        sa.Column("external_id", sa.Text(), nullable=False, comment="The user's id of the instance."),
        sa.Column(
            "document_id",
            sa.Text(),
            nullable=True,
            comment="Document the instance is part of; null where it stands alone.",
        ),
        sa.Column("split", sa.Text(), nullable=False, comment="train, knn, mc, vp or scored."),
        sa.Column(
            "network_logits",
            postgresql.ARRAY(sa.REAL()),
            nullable=False,
            comment="f, the network's logits, one a class.",
        ),
        sa.Column("network_predicted", sa.Integer(), nullable=False, comment="argmax f, ties to the lower class."),
        sa.Column(
            "label",
            sa.Integer(),
            nullable=True,
            comment="Current label: that of the latest label event; null while unknown.",
        ),
        sa.Column(
            "attributes",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
            comment="What else the user gave.",
        ),
        sa.Column(
            "content_digest", sa.LargeBinary(), nullable=False, comment="BLAKE2b-128 of vector, logits and document id."
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was ingested.",
        ),
        sa.CheckConstraint("split = 'scored' OR label IS NOT NULL", name=op.f("exemplar_labelled_split_check")),
        sa.CheckConstraint("split IN ('train', 'knn', 'mc', 'vp', 'scored')", name=op.f("exemplar_split_check")),
        sa.CheckConstraint("label >= 0", name=op.f("exemplar_label_check")),
        sa.ForeignKeyConstraint(
            ["classifier_id"], ["venn_admit.classifier.id"], name=op.f("exemplar_classifier_id_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("exemplar_pkey")),
        sa.UniqueConstraint("classifier_id", "external_id", name=op.f("exemplar_classifier_id_external_id_key")),
        schema="venn_admit",
        comment="One instance of a classifier: a document, or a token of one. Its vector is in exemplar_vector.",
    )
    op.create_index(
        op.f("exemplar_classifier_id_split_id_idx"),
        "exemplar",
        ["classifier_id", "split", "id"],
        unique=False,
        schema="venn_admit",
    )
    op.create_table(
        "exemplar_vector",
        sa.Column("classifier_id", sa.Integer(), nullable=False, comment="Partition key: whose exemplar it is."),
        sa.Column("support", sa.Boolean(), nullable=False, comment="Partition key: whether it is a training exemplar."),
        sa.Column("exemplar_id", sa.BigInteger(), nullable=False, comment="The exemplar."),
        sa.Column("r", VECTOR(), nullable=False, comment="r, the exemplar vector; each partition checks its length."),
        sa.ForeignKeyConstraint(
            ["exemplar_id"], ["venn_admit.exemplar.id"], name=op.f("exemplar_vector_exemplar_id_fkey")
        ),
        sa.PrimaryKeyConstraint("classifier_id", "support", "exemplar_id", name=op.f("exemplar_vector_pkey")),
        schema="venn_admit",
        comment="Exemplar vectors, apart and narrow; two partitions a classifier, made by create_vector_partitions_v1.",
        postgresql_partition_by="LIST (classifier_id)",
    )
    op.create_table(
        "label_event",
        sa.Column(
            "id", sa.BigInteger(), sa.Identity(always=True), nullable=False, comment="Key; ascends in order of arrival."
        ),
        sa.Column("exemplar_id", sa.BigInteger(), nullable=False, comment="What was labelled."),
        sa.Column("label", sa.Integer(), nullable=True, comment="The label given; null retracts the one before."),
        sa.Column("selection", sa.Text(), nullable=False, comment="random, or selected by someone or by a rule."),
        sa.Column("source", sa.Text(), nullable=False, comment="Where it came from, such as a file's name."),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it arrived.",
        ),
        sa.CheckConstraint("selection IN ('random', 'selected')", name=op.f("label_event_selection_check")),
        sa.CheckConstraint("label >= 0", name=op.f("label_event_label_check")),
        sa.ForeignKeyConstraint(["exemplar_id"], ["venn_admit.exemplar.id"], name=op.f("label_event_exemplar_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("label_event_pkey")),
        schema="venn_admit",
        comment="Append-only ledger of labels. Only random ones calibrate: a chosen set is not like the traffic.",
    )
    op.create_index(
        op.f("label_event_exemplar_id_id_idx"), "label_event", ["exemplar_id", "id"], unique=False, schema="venn_admit"
    )
    op.execute((ROUTINES / "create_vector_partitions_v1.sql").read_text())


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("DROP FUNCTION venn_admit.create_vector_partitions_v1")
    op.drop_table("label_event", schema="venn_admit")
    op.drop_table("exemplar_vector", schema="venn_admit")
    op.drop_table("exemplar", schema="venn_admit")
    op.drop_table("classifier", schema="venn_admit")
