"""What only the method venn-admit has moves to tables of its own, and a calibrator names its method.

Why: a second method of calibration has neither bands nor ADMIT sets, and would have to leave these columns empty. The
views keep their columns and their rows, so they keep their names.

The tables `decision`, `calibration` and `calibrator` are locked against readers and writers to the end of the
migration, which writes one row for each decision: two million took 13 seconds, so ten million take about a minute. The
columns that it drops keep their room until the table is rewritten (VACUUM FULL). Programs of before use these columns,
so they no longer work on this schema. The way back writes each decision anew: two million took 86 seconds.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

VIEWS = Path(__file__).parents[1] / "routines" / "views"
REDEFINED = ("calibration_v1", "decision_v1")

ADD_RADIUS = """
INSERT INTO venn_admit.band_radius (calibration_id, s_hat, omega)
SELECT id, s_hat, omega FROM venn_admit.calibration
"""

ADD_EVIDENCE = """
INSERT INTO venn_admit.admit_evidence (decision_id, admit_set, band_size, threshold, category_size)
SELECT id, admit_set, band_size, threshold, category_size FROM venn_admit.decision
"""

REFUSE_OTHER_METHODS = """
DO $block$
BEGIN
    IF EXISTS (SELECT 1 FROM venn_admit.calibrator WHERE method <> 'venn-admit') THEN
        RAISE EXCEPTION 'there are calibrations by other methods than venn-admit, which an older schema cannot hold';
    END IF;
END
$block$
"""

TAKE_RADIUS_BACK = """
UPDATE venn_admit.calibration
SET s_hat = radius.s_hat, omega = radius.omega
FROM venn_admit.band_radius AS radius
WHERE radius.calibration_id = calibration.id
"""

TAKE_EVIDENCE_BACK = """
UPDATE venn_admit.decision
SET
    admit_set = evidence.admit_set,
    band_size = evidence.band_size,
    threshold = evidence.threshold,
    category_size = evidence.category_size
FROM venn_admit.admit_evidence AS evidence
WHERE evidence.decision_id = decision.id
"""


def upgrade() -> None:
    _lock(statement_timeout="10min")
    _create_band_radius()
    op.execute(ADD_RADIUS)
    _create_admit_evidence()
    op.execute(ADD_EVIDENCE)
    # Once for all rows is many times as fast as for each row that is inserted.
    _constrain_admit_evidence()
    for view in REDEFINED:
        op.execute((VIEWS / f"{view}_since_0017.sql").read_text())
    _drop_columns("calibration", "s_hat", "omega")
    _drop_columns("decision", "admit_set", "band_size", "threshold", "category_size")
    _comment_decision(
        "Decisions to admit or reject, each pinned to a snapshot. Evidence of one method alone has its own table."
    )
    _add_method()
    _let_programs_work_from("0017")


def downgrade() -> None:
    _lock(statement_timeout="60min")
    op.execute(REFUSE_OTHER_METHODS)
    _let_programs_work_from("0014")
    _drop_method()
    _comment_decision("Decisions to admit or reject, with their evidence, each pinned to a snapshot.")
    _add_columns(
        "calibration",
        sa.Column(
            "s_hat",
            sa.Double(),
            comment="Sample standard deviation of d over the points of mc with q > 0 and a correct prediction.",
        ),
        sa.Column("omega", sa.Double(), comment="Band radius, delta * s_hat."),
        filled_by=TAKE_RADIUS_BACK,
    )
    _add_columns("decision", *_evidence_columns(nullable=True), filled_by=TAKE_EVIDENCE_BACK)
    for view in REDEFINED:
        op.execute((VIEWS / f"{view}.sql").read_text().replace("CREATE VIEW", "CREATE OR REPLACE VIEW"))
    op.drop_table("admit_evidence", schema="venn_admit")
    op.drop_table("band_radius", schema="venn_admit")


def _lock(*, statement_timeout: str) -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute(f"SET LOCAL statement_timeout = '{statement_timeout}'")
    # All at once and first: a lock that is strengthened later can end in a deadlock after minutes of work.
    op.execute("LOCK TABLE venn_admit.calibrator, venn_admit.calibration, venn_admit.decision IN ACCESS EXCLUSIVE MODE")


def _create_band_radius() -> None:
    op.create_table(
        "band_radius",
        sa.Column("calibration_id", sa.BigInteger(), autoincrement=False, nullable=False, comment="The snapshot."),
        sa.Column(
            "s_hat",
            sa.Double(),
            nullable=False,
            comment="Sample standard deviation of d over the points of mc with q > 0 and a correct prediction.",
        ),
        sa.Column("omega", sa.Double(), nullable=False, comment="Band radius, delta * s_hat."),
        sa.ForeignKeyConstraint(
            ["calibration_id"],
            ["venn_admit.calibration.id"],
            name=op.f("band_radius_calibration_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("calibration_id", name=op.f("band_radius_pkey")),
        schema="venn_admit",
        comment="Radius of the bands of each snapshot of the method venn-admit.",
    )


def _evidence_columns(*, nullable: bool) -> tuple[sa.Column[object], ...]:
    return (
        sa.Column(
            "admit_set",
            postgresql.BIT(varying=True),
            nullable=nullable,
            comment="ADMIT set, one bit per class.",
        ),
        sa.Column(
            "band_size",
            postgresql.ARRAY(sa.Integer()),
            nullable=nullable,
            comment="n_c, number of points of each class in the band, in mc.",
        ),
        sa.Column(
            "threshold",
            postgresql.ARRAY(sa.Double()),
            nullable=nullable,
            comment="tau_c of each class; may be -infinity.",
        ),
        sa.Column(
            "category_size",
            sa.Integer(),
            nullable=nullable,
            comment="|T|, in vp; 0 if the set is not a singleton.",
        ),
    )


def _create_admit_evidence() -> None:
    op.create_table(
        "admit_evidence",
        sa.Column("decision_id", sa.BigInteger(), autoincrement=False, nullable=False, comment="The decision."),
        *_evidence_columns(nullable=False),
        schema="venn_admit",
        comment="Evidence of decisions by the method venn-admit, besides what every decision has.",
    )


def _constrain_admit_evidence() -> None:
    # Nobody sees the table yet.
    op.execute("ALTER TABLE venn_admit.admit_evidence ADD CONSTRAINT admit_evidence_pkey PRIMARY KEY (decision_id)")
    op.execute(
        "-- squawk-ignore adding-foreign-key-constraint, constraint-missing-not-valid\n"
        "ALTER TABLE venn_admit.admit_evidence ADD CONSTRAINT admit_evidence_decision_id_fkey "
        "FOREIGN KEY (decision_id) REFERENCES venn_admit.decision (id) ON DELETE CASCADE"
    )


def _drop_columns(table: str, *names: str) -> None:
    # Older programs break, and are told so by `oldest_program`.
    dropped = ", ".join(f"DROP COLUMN {name}" for name in names)
    op.execute(f"-- squawk-ignore ban-drop-column\nALTER TABLE venn_admit.{table} {dropped}")


def _add_columns(table: str, *columns: sa.Column[object], filled_by: str) -> None:
    for column in columns:
        op.add_column(table, column, schema="venn_admit")
    op.execute(filled_by)
    for column in columns:
        op.alter_column(table, column.name, nullable=False, schema="venn_admit")


def _comment_decision(comment: str) -> None:
    op.execute(f"COMMENT ON TABLE venn_admit.decision IS '{comment}'")


def _add_method() -> None:
    # There is one row for each setting that was ever asked for: few.
    op.execute("ALTER TABLE venn_admit.calibrator ADD COLUMN method text NOT NULL DEFAULT 'venn-admit'")
    op.execute("-- squawk-ignore ban-drop-default\nALTER TABLE venn_admit.calibrator ALTER COLUMN method DROP DEFAULT")
    for name in ("delta", "kappa"):
        op.execute(
            f"-- squawk-ignore ban-drop-not-null\nALTER TABLE venn_admit.calibrator ALTER COLUMN {name} DROP NOT NULL"
        )
    _add_check("method", "method IN ('venn-admit', 'venn-abers')")
    _add_check(
        "venn_admit",
        "(method = 'venn-admit') = (delta IS NOT NULL) AND (method = 'venn-admit') = (kappa IS NOT NULL)",
    )
    _comment_calibrator(
        settings_digest="BLAKE2b-128 of the settings, as the method writes them.",
        method="Method of calibration: venn-abers or venn-admit.",
        delta="Band radius in standard deviations of d; may be infinite; null unless the method is venn-admit.",
        kappa="Least number of points of each class in a band; null unless the method is venn-admit.",
    )


def _drop_method() -> None:
    for name in ("venn_admit", "method"):
        op.execute(f"ALTER TABLE venn_admit.calibrator DROP CONSTRAINT calibrator_{name}_check")
    for name in ("delta", "kappa"):
        op.alter_column("calibrator", name, nullable=False, schema="venn_admit")
    op.drop_column("calibrator", "method", schema="venn_admit")
    _comment_calibrator(
        settings_digest="BLAKE2b-128 of the settings in the columns that follow.",
        delta="Band radius in standard deviations of d; may be infinite.",
        kappa="Least number of points of each class in a band.",
    )


def _add_check(name: str, condition: str) -> None:
    op.execute(
        "-- squawk-ignore constraint-missing-not-valid\n"
        f"ALTER TABLE venn_admit.calibrator ADD CONSTRAINT calibrator_{name}_check CHECK ({condition})"
    )


def _comment_calibrator(**comments: str) -> None:
    for name, comment in comments.items():
        op.execute(f"COMMENT ON COLUMN venn_admit.calibrator.{name} IS '{comment}'")


def _let_programs_work_from(revision: str) -> None:
    op.execute(
        "CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE "
        f"RETURN '{revision}'"
    )
