"""A certificate may stand while labels arrive: its chain, the labels that count, and what they have shown are kept.

Why: a certificate that is made again after every few labels looks at them many times, and one of the looks falls short
far more often than its confidence says. Null stands for certificates that are made once, so that settings stay as they
are.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0075"
down_revision = "0072"
branch_labels = None
depends_on = None

TABLES = ("standing_chain", "standing_evidence", "standing_position", "standing_state")


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.add_column(
        "calibrator",
        sa.Column(
            "standing",
            sa.Boolean,
            comment="Venn-Abers only: whether the certificate, for predicted classes, stands while labels arrive: "
            "recalibrating advances it.",
        ),
        schema="venn_admit",
    )
    op.execute(
        "-- squawk-ignore constraint-missing-not-valid\nALTER TABLE venn_admit.calibrator ADD CONSTRAINT "
        "calibrator_standing_check CHECK (standing IS NOT TRUE OR (certify = '{predicted}' AND loss IS NULL))"
    )
    make_chain()
    make_evidence()
    make_states()
    op.add_column(
        "certificate",
        sa.Column(
            "chain_id",
            sa.BigInteger,
            comment="Chain whose certified thresholds these are, if the certificate stands while labels arrive; null "
            "otherwise.",
        ),
        schema="venn_admit",
    )
    op.execute(
        "-- squawk-ignore constraint-missing-not-valid, adding-foreign-key-constraint\nALTER TABLE "
        "venn_admit.certificate ADD CONSTRAINT certificate_chain_id_fkey FOREIGN KEY (chain_id) REFERENCES "
        "venn_admit.standing_chain (id)"
    )
    oldest_program(revision)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.execute("-- squawk-ignore ban-drop-column\nALTER TABLE venn_admit.certificate DROP COLUMN chain_id")
    for table in reversed(TABLES):
        op.drop_table(table, schema="venn_admit")
    op.execute("-- squawk-ignore ban-drop-column\nALTER TABLE venn_admit.calibrator DROP COLUMN standing")
    oldest_program("0071")


def make_chain() -> None:
    op.create_table(
        "standing_chain",
        sa.Column(
            "id",
            sa.BigInteger,
            sa.Identity(always=True),
            nullable=False,
            comment="Key; the newest of a calibrator is advanced.",
        ),
        required("calibrator_id", sa.Integer, "Calibrator whose snapshots it certifies."),
        required("number", sa.Integer, "1, 2, ... among all generations of the classifier."),
        sa.Column(
            "knn_parameters_id",
            sa.Integer,
            comment="KNN parameters of its snapshots; null if the classifier has logits only.",
        ),
        sa.Column(
            "support_version",
            sa.BigInteger,
            comment="Version of the training exemplars that its score depends on; null if that is the network's.",
        ),
        required("score", sa.Text, "Score that its thresholds are on: network or reliability."),
        required("proposing", sa.Integer, "Number of points that fixed it, which are no evidence."),
        required("chain", sa.JSON, "Its thresholds and its level, as the core writes them."),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            nullable=False,
            server_default=sa.func.now(),
            comment="When it was begun.",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("standing_chain_pkey")),
        refers("standing_chain", "calibrator_id", "calibrator"),
        refers("standing_chain", "knn_parameters_id", "knn_parameters"),
        sa.CheckConstraint("number >= 1", name=op.f("standing_chain_number_check")),
        sa.CheckConstraint("score IN ('network', 'reliability')", name=op.f("standing_chain_score_check")),
        schema="venn_admit",
        comment="Thresholds that were fixed before the labels that certify them, in the order in which they are "
        "certified.",
    )
    op.create_index(
        op.f("standing_chain_calibrator_id_id_idx"), "standing_chain", ["calibrator_id", "id"], schema="venn_admit"
    )


def make_evidence() -> None:
    op.create_table(
        "standing_evidence",
        required("chain_id", sa.BigInteger, "The chain."),
        required("exemplar_id", sa.BigInteger, "Exemplar whose label counts."),
        required("document", sa.Integer, "Number of its document, from 0 in the order in which documents count."),
        required("predicted", sa.Integer, "The network's prediction."),
        required("score", sa.Double, "Its score."),
        sa.Column("label", sa.Integer, comment="The label that counts; null from when it was taken back."),
        sa.PrimaryKeyConstraint("chain_id", "document", "exemplar_id", name=op.f("standing_evidence_pkey")),
        sa.UniqueConstraint("exemplar_id", "chain_id", name=op.f("standing_evidence_exemplar_id_chain_id_key")),
        refers("standing_evidence", "chain_id", "standing_chain"),
        refers("standing_evidence", "exemplar_id", "exemplar"),
        sa.CheckConstraint("document >= 0", name=op.f("standing_evidence_document_check")),
        schema="venn_admit",
        comment="The labelled points that count for each chain.",
    )


def make_states() -> None:
    op.create_table(
        "standing_position",
        required("chain_id", sa.BigInteger, "The chain."),
        required("documents", sa.Integer, "Number of documents that came to count up to here."),
        required("event", sa.BigInteger, "Last label event of the classifier that was seen."),
        required("counted", sa.Integer, "Number of these documents of which a label was not taken back."),
        required("points", sa.Integer, "Number of their points with such a label."),
        sa.PrimaryKeyConstraint("chain_id", "documents", name=op.f("standing_position_pkey")),
        refers("standing_position", "chain_id", "standing_chain", ondelete="CASCADE"),
        sa.CheckConstraint("documents >= 0", name=op.f("standing_position_documents_check")),
        schema="venn_admit",
        comment="How far each chain was advanced: the newest position, and the last in every thousand documents "
        "before.",
    )
    op.create_table(
        "standing_state",
        required("chain_id", sa.BigInteger, "The chain."),
        required("documents", sa.Integer, "Number of documents after which it is the state of the class."),
        required("predicted", sa.Integer, "The predicted class."),
        required("wealth", ARRAY(sa.Double), "Wealth of each gambler, threshold after threshold."),
        required("most", ARRAY(sa.Double), "Largest mean wealth so far, of each threshold."),
        required("admitted", ARRAY(sa.BigInteger), "Points that each threshold admits."),
        required("correct", ARRAY(sa.BigInteger), "Those of them whose prediction is the label."),
        required("capped", ARRAY(sa.BigInteger), "Documents of which each threshold admits more points than count."),
        sa.PrimaryKeyConstraint("chain_id", "documents", "predicted", name=op.f("standing_state_pkey")),
        sa.ForeignKeyConstraint(
            ["chain_id", "documents"],
            ["venn_admit.standing_position.chain_id", "venn_admit.standing_position.documents"],
            ondelete="CASCADE",
            name=op.f("standing_state_chain_id_fkey"),
        ),
        schema="venn_admit",
        comment="What the labels have shown of the thresholds of a class, where it changed since the position before.",
    )


def required(name: str, kind: type[sa.types.TypeEngine] | ARRAY, comment: str) -> sa.Column:
    return sa.Column(name, kind, nullable=False, comment=comment)


def refers(table: str, column: str, other: str, ondelete: str | None = None) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], [f"venn_admit.{other}.id"], name=op.f(f"{table}_{column}_fkey"), ondelete=ondelete
    )


def oldest_program(oldest: str) -> None:
    op.execute(
        f"CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE RETURN '{oldest}'"
    )
