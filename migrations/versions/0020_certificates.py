"""Calibrators of the method venn-abers may ask for a certificate, and a snapshot keeps what became of it.

Why: the certified promise is made by a policy that is tested on split vp. A calibrator says what is to be certified,
its snapshots keep the policy and all proposals, and the points of vp that they were tested on. Those points have no
ADMIT sets, so a calibration point names the method of its calibrator, which a foreign key holds to be the right one,
and has a set if it is in vp of the method venn-admit.

Programs of before would decide by the thresholds of the calibrator instead of the policy, and do not know the reason to
reject without one, so they no longer work on this schema. The table `calibration_point` is locked while its foreign key
and its check are validated, which reads it twice; only rows of the method venn-abers are written.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from venn_admit.service.store.database.routines import view_statements

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


REFUSE_CERTIFICATES = """
DO $block$
BEGIN
    IF EXISTS (SELECT 1 FROM venn_admit.calibrator WHERE certify IS NOT NULL) THEN
        RAISE EXCEPTION 'there are certified calibrations, which an older schema cannot hold';
    END IF;
END
$block$
"""

NAME_THE_METHOD = """
UPDATE venn_admit.calibration_point AS point
SET method = calibrator.method
FROM venn_admit.calibrator AS calibrator
WHERE
    point.calibrator_id = calibrator.id
    AND calibrator.method <> 'venn-admit'
"""

CALIBRATOR_CHECKS = {
    "certify": "certify IN ('{predicted}', '{true}', '{predicted,true}')",
    "confidence": "confidence > 0 AND confidence < 1",
    "document_test": "document_test IN ('finite-sample', 'asymptotic')",
    "certification": (
        "(certify IS NULL) = (confidence IS NULL) AND (certify IS NULL) = (document_test IS NULL) "
        "AND (certify IS NULL OR (method = 'venn-abers' AND 1 - alpha = ALL (thresholds)))"
    ),
}
ADMIT_SET = "(split = 'vp' AND method = 'venn-admit') = (admit_set IS NOT NULL)"
ADMIT_SET_BEFORE = "(split = 'vp') = (admit_set IS NOT NULL)"


def upgrade() -> None:
    _lock()
    for column in (
        sa.Column(
            "certify",
            postgresql.ARRAY(sa.Text()),
            nullable=True,
            comment="Classes that a certificate is asked for: predicted, true or both; null for the pointwise promise.",
        ),
        sa.Column("confidence", sa.Numeric(), nullable=True, comment="Confidence of the certificate asked for."),
        sa.Column(
            "document_test",
            sa.Text(),
            nullable=True,
            comment="Test of documents of several points for the certificate: finite-sample or asymptotic.",
        ),
    ):
        op.add_column("calibrator", column, schema="venn_admit")
    for name, condition in CALIBRATOR_CHECKS.items():
        _add_constraint("calibrator", f"calibrator_{name}_check", f"CHECK ({condition})")
    _add_constraint("calibrator", "calibrator_id_method_key", "UNIQUE (id, method)")
    _name_the_method()
    _create_certificate()
    for statement in view_statements("policy_v1"):
        op.execute(statement)
    _comment(
        admit_set="ADMIT set, one bit per class; null in mc, and for venn-abers.",
        is_singleton="Whether the ADMIT set is {predicted}; null if there is none.",
    )
    _let_programs_work_from("0020")


def downgrade() -> None:
    _lock()
    op.execute(REFUSE_CERTIFICATES)
    _let_programs_work_from("0019")
    _comment(
        admit_set="ADMIT set, one bit per class; null in mc.",
        is_singleton="Whether the ADMIT set is {predicted}; null in mc.",
    )
    op.execute("DROP VIEW report.policy_v1")
    op.drop_table("certificate", schema="venn_admit")
    for table, name in (
        ("calibration_point", "calibration_point_admit_set_check"),
        ("calibration_point", "calibration_point_calibrator_id_fkey"),
        ("calibrator", "calibrator_id_method_key"),
    ):
        op.drop_constraint(name, table, schema="venn_admit")
    op.drop_column("calibration_point", "method", schema="venn_admit")
    _add_constraint(
        "calibration_point",
        "calibration_point_calibrator_id_fkey",
        "FOREIGN KEY (calibrator_id) REFERENCES venn_admit.calibrator (id)",
    )
    _add_constraint("calibration_point", "calibration_point_admit_set_check", f"CHECK ({ADMIT_SET_BEFORE})")
    for column in ("document_test", "confidence", "certify"):
        op.drop_column("calibrator", column, schema="venn_admit")


def _lock() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    # All at once and first: a lock that is strengthened later can end in a deadlock after minutes of work.
    op.execute("LOCK TABLE venn_admit.calibrator, venn_admit.calibration_point IN ACCESS EXCLUSIVE MODE")


def _name_the_method() -> None:
    op.add_column(
        "calibration_point",
        sa.Column(
            "method",
            sa.Text(),
            nullable=False,
            # The rows there are read it from the catalogue, so that they need not be written.
            server_default="venn-admit",
            comment="Method of the calibrator: venn-abers or venn-admit.",
        ),
        schema="venn_admit",
    )
    op.execute(NAME_THE_METHOD)
    op.execute(
        "-- squawk-ignore ban-drop-default\nALTER TABLE venn_admit.calibration_point ALTER COLUMN method DROP DEFAULT"
    )
    for name in ("calibration_point_calibrator_id_fkey", "calibration_point_admit_set_check"):
        # Both come back, with the method in them.
        op.execute(
            f"-- squawk-ignore ban-drop-constraint\nALTER TABLE venn_admit.calibration_point DROP CONSTRAINT {name}"
        )
    _add_constraint(
        "calibration_point",
        "calibration_point_calibrator_id_fkey",
        "FOREIGN KEY (calibrator_id, method) REFERENCES venn_admit.calibrator (id, method)",
    )
    _add_constraint("calibration_point", "calibration_point_admit_set_check", f"CHECK ({ADMIT_SET})")


def _create_certificate() -> None:
    op.create_table(
        "certificate",
        sa.Column("calibration_id", sa.BigInteger(), autoincrement=False, nullable=False, comment="The snapshot."),
        sa.Column(
            "thresholds",
            postgresql.ARRAY(sa.Double()),
            nullable=True,
            comment="Least p0 at which a predicted class is admitted; a null among them is never; null if no policy is "
            "certified.",
        ),
        sa.Column(
            "p_value",
            sa.Double(),
            nullable=True,
            comment="The policy's p-value, the largest of its classes'.",
        ),
        sa.Column("mc_share", sa.Double(), nullable=True, comment="Share of mc that the certified policy admits."),
        sa.Column("vp_share", sa.Double(), nullable=True, comment="Share of vp that the certified policy admits."),
        sa.Column("vp_documents", sa.Integer(), nullable=False, comment="Number of documents of vp."),
        sa.Column(
            "documents_needed",
            sa.Numeric(),
            nullable=True,
            comment="Documents of vp with which a policy is likely to pass; null if one is certified, or none would.",
        ),
        sa.Column(
            "document",
            postgresql.JSONB(),
            nullable=False,
            comment="The certificate in full: what was asked, each proposal, and the results of its classes.",
        ),
        sa.ForeignKeyConstraint(
            ["calibration_id"],
            ["venn_admit.calibration.id"],
            name=op.f("certificate_calibration_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.CheckConstraint(
            "0 <= ALL (thresholds) AND 1 >= ALL (thresholds)", name=op.f("certificate_thresholds_check")
        ),
        sa.CheckConstraint(
            "(thresholds IS NULL) = (p_value IS NULL) AND (thresholds IS NULL) = (mc_share IS NULL) "
            "AND (thresholds IS NULL) = (vp_share IS NULL)",
            name=op.f("certificate_policy_check"),
        ),
        sa.PrimaryKeyConstraint("calibration_id", name=op.f("certificate_pkey")),
        schema="venn_admit",
        comment="What became of the certificate that a snapshot was asked for: the certified policy, if there is one.",
    )


def _add_constraint(table: str, name: str, definition: str) -> None:
    op.execute(
        "-- squawk-ignore constraint-missing-not-valid, adding-foreign-key-constraint, disallowed-unique-constraint\n"
        f"ALTER TABLE venn_admit.{table} ADD CONSTRAINT {name} {definition}"
    )


def _comment(**comments: str) -> None:
    for column, comment in comments.items():
        op.execute(f"COMMENT ON COLUMN venn_admit.calibration_point.{column} IS '{comment}'")


def _let_programs_work_from(revision: str) -> None:
    op.execute(
        "CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE "
        f"RETURN '{revision}'"
    )
