"""Workers certify cascades, and a cascade is certified again once data have arrived at its stages.

Why: a certificate was computed while its request waited. One that nobody asked for must not replace one that serves far
more. Programs before this one know no such jobs.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0071"
down_revision = "0067"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    allow_kinds("'approximate', 'score', 'fit', 'certify'", "approximate, score, fit or certify.")
    op.add_column(
        "cascade_calibration",
        sa.Column(
            "is_withheld",
            sa.Boolean,
            nullable=False,
            comment="Whether nothing is served by it, because nobody asked for it and it serves far less than the one "
            "before.",
            server_default=sa.text("false"),
        ),
        schema="venn_admit",
    )
    describe_key("Key; a cascade serves by the newest that is not withheld.")
    op.create_table(
        "cascade_request",
        sa.Column(
            "job_id",
            sa.BigInteger,
            sa.ForeignKey("venn_admit.job.id", ondelete="CASCADE", name="cascade_request_job_id_fkey"),
            primary_key=True,
            autoincrement=False,
            comment="The job.",
        ),
        sa.Column(
            "cascade_id",
            sa.BigInteger,
            sa.ForeignKey(
                "venn_admit.classifier_cascade.id", ondelete="CASCADE", name="cascade_request_cascade_id_fkey"
            ),
            nullable=False,
            comment="Cascade to certify.",
        ),
        required("alpha", sa.Numeric(), "Share of what is served of each class that may be wrong."),
        required("certify", ARRAY(sa.Text()), "Classes that are promised something: predicted, true, or both."),
        required("confidence", sa.Numeric(), "Confidence that is asked for."),
        required(
            "document_test", sa.Text(), "How documents of several points are tested: finite-sample or asymptotic."
        ),
        required("is_scheduled", sa.Boolean(), "Whether nobody asked for it, but data arrived at the stages."),
        schema="venn_admit",
        comment="What jobs of the kind certify are asked for.",
    )
    op.create_index("cascade_request_cascade_id_idx", "cascade_request", ["cascade_id"], schema="venn_admit")
    oldest_program(revision)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.drop_table("cascade_request", schema="venn_admit")
    op.execute(
        "DELETE FROM venn_admit.job_chunk WHERE job_id IN (SELECT id FROM venn_admit.job WHERE kind = 'certify')"
    )
    op.execute("DELETE FROM venn_admit.job_row WHERE job_id IN (SELECT id FROM venn_admit.job WHERE kind = 'certify')")
    op.execute("DELETE FROM venn_admit.job WHERE kind = 'certify'")
    allow_kinds("'approximate', 'score', 'fit'", "approximate, score or fit.")
    # The program before served by the newest, whatever it admits.
    op.execute("DELETE FROM venn_admit.cascade_calibration WHERE is_withheld")
    op.execute("-- squawk-ignore ban-drop-column\nALTER TABLE venn_admit.cascade_calibration DROP COLUMN is_withheld")
    describe_key("Key; a cascade serves by the newest.")
    oldest_program("0066")


def allow_kinds(kinds: str, comment: str) -> None:
    op.execute("-- squawk-ignore ban-drop-constraint\nALTER TABLE venn_admit.job DROP CONSTRAINT job_kind_check")
    op.execute(
        "-- squawk-ignore constraint-missing-not-valid\n"
        f"ALTER TABLE venn_admit.job ADD CONSTRAINT job_kind_check CHECK (kind IN ({kinds}))"
    )
    op.execute(f"COMMENT ON COLUMN venn_admit.job.kind IS '{comment}'")


def describe_key(comment: str) -> None:
    op.execute(f"COMMENT ON COLUMN venn_admit.cascade_calibration.id IS '{comment}'")


def required(name: str, kind: sa.types.TypeEngine[object], comment: str) -> sa.Column[object]:
    return sa.Column(name, kind, nullable=False, comment=comment)


def oldest_program(oldest: str) -> None:
    op.execute(
        f"CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE RETURN '{oldest}'"
    )
