"""What the method venn-abers stores: its scores, the steps of its bounds, and the evidence of its decisions.

Why: a snapshot of Venn-Abers is a score, the points of mc with that score, and two step functions for each cell. The
steps are row-versioned as points are, so that a new snapshot writes what changed. Programs of before know no settings
of this method, so they no longer work on this schema. New tables and a column that may be null: it takes no time.
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

REFUSE_VENN_ABERS = """
DO $block$
BEGIN
    IF EXISTS (SELECT 1 FROM venn_admit.calibrator WHERE method = 'venn-abers') THEN
        RAISE EXCEPTION 'there are calibrations by the method venn-abers, which an older schema cannot hold';
    END IF;
END
$block$
"""


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.add_column(
        "calibrator",
        sa.Column(
            "score",
            sa.Text(),
            nullable=True,
            comment="Score asked for: auto, network or reliability; null unless the method is venn-abers.",
        ),
        schema="venn_admit",
    )
    for name, condition in (
        ("score", "score IN ('auto', 'network', 'reliability')"),
        ("venn_abers", "(method = 'venn-abers') = (score IS NOT NULL)"),
    ):
        op.execute(
            "-- squawk-ignore constraint-missing-not-valid\n"
            f"ALTER TABLE venn_admit.calibrator ADD CONSTRAINT calibrator_{name}_check CHECK ({condition})"
        )
    _create_score_choice()
    _create_steps()
    _create_evidence()
    _comment(
        predicted="Prediction that is decided on: the KNN's for venn-admit, the network's for venn-abers.",
        score="Nonconformity score of the label, 1 - pi^y; for venn-abers s, the score of the prediction.",
        decided="Prediction that was decided on: the KNN's for venn-admit, the network's for venn-abers.",
    )
    _let_programs_work_from("0019")


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute(REFUSE_VENN_ABERS)
    _let_programs_work_from("0017")
    _comment(
        predicted="KNN's prediction.",
        score="Nonconformity score of the label, 1 - pi^y.",
        decided="KNN's prediction.",
    )
    for table in ("abers_evidence", "venn_abers_step", "score_choice"):
        op.drop_table(table, schema="venn_admit")
    op.drop_column("calibrator", "score", schema="venn_admit")


def _create_score_choice() -> None:
    op.create_table(
        "score_choice",
        sa.Column("calibration_id", sa.BigInteger(), autoincrement=False, nullable=False, comment="The snapshot."),
        sa.Column("score", sa.Text(), nullable=False, comment="Score of the snapshot: network or reliability."),
        sa.Column(
            "network_share",
            sa.Double(),
            nullable=True,
            comment="Share of mc that the network's score admits by cross-fitting; null if a score was asked for.",
        ),
        sa.Column(
            "reliability_share",
            sa.Double(),
            nullable=True,
            comment="Share of mc that the reliability score admits by cross-fitting; null if a score was asked for.",
        ),
        sa.Column(
            "standard_error",
            sa.Double(),
            nullable=True,
            comment="Of the difference between the shares, over documents; null with fewer than two.",
        ),
        sa.Column(
            "documents", sa.Integer(), nullable=True, comment="Number of documents; null if a score was asked for."
        ),
        sa.ForeignKeyConstraint(
            ["calibration_id"],
            ["venn_admit.calibration.id"],
            name=op.f("score_choice_calibration_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.CheckConstraint("score IN ('network', 'reliability')", name=op.f("score_choice_score_check")),
        sa.PrimaryKeyConstraint("calibration_id", name=op.f("score_choice_pkey")),
        schema="venn_admit",
        comment="Score of each snapshot of the method venn-abers, and on what ground it was chosen.",
    )


def _create_steps() -> None:
    op.create_table(
        "venn_abers_step",
        sa.Column("calibrator_id", sa.Integer(), nullable=False, comment="The calibrator."),
        sa.Column(
            "cell",
            sa.Integer(),
            nullable=False,
            comment="Number of the cell: bin of q times number of classes, plus predicted class.",
        ),
        sa.Column(
            "score",
            sa.Double(),
            nullable=False,
            comment="Score from which the step holds, up to the next; -infinity for the first of a cell.",
        ),
        sa.Column(
            "valid_from", sa.Integer(), nullable=False, comment="Number of the first snapshot that holds this row."
        ),
        sa.Column(
            "valid_until",
            sa.Integer(),
            nullable=True,
            comment="Number of the first snapshot that no longer holds it; null while the current one does.",
        ),
        sa.Column("lower", sa.Double(), nullable=False, comment="p0 within the step."),
        sa.Column("upper_at", sa.Double(), nullable=False, comment="p1 at the score itself."),
        sa.Column("upper_above", sa.Double(), nullable=False, comment="p1 above it, within the step."),
        sa.ForeignKeyConstraint(
            ["calibrator_id"], ["venn_admit.calibrator.id"], name=op.f("venn_abers_step_calibrator_id_fkey")
        ),
        sa.CheckConstraint("valid_until > valid_from", name=op.f("venn_abers_step_validity_check")),
        sa.PrimaryKeyConstraint("calibrator_id", "cell", "score", "valid_from", name=op.f("venn_abers_step_pkey")),
        schema="venn_admit",
        comment="Row-versioned plain bounds of each cell as functions of the score: two probabilities a step.",
    )
    op.create_index(
        "venn_abers_step_open_key",
        "venn_abers_step",
        ["calibrator_id", "cell", "score"],
        unique=True,
        schema="venn_admit",
        postgresql_where=sa.text("valid_until IS NULL"),
    )


def _create_evidence() -> None:
    op.create_table(
        "abers_evidence",
        sa.Column("decision_id", sa.BigInteger(), autoincrement=False, nullable=False, comment="The decision."),
        sa.Column("score", sa.Double(), nullable=False, comment="s, the score of the prediction."),
        sa.Column(
            "step_score",
            sa.Double(),
            nullable=False,
            comment="Score from which the plain step of its cell holds; -infinity for the first, and in an empty cell.",
        ),
        sa.ForeignKeyConstraint(
            ["decision_id"],
            ["venn_admit.decision.id"],
            name=op.f("abers_evidence_decision_id_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("decision_id", name=op.f("abers_evidence_pkey")),
        schema="venn_admit",
        comment="Evidence of decisions by the method venn-abers, besides what every decision has.",
    )


def _comment(*, predicted: str, score: str, decided: str) -> None:
    for column, comment in (
        ("calibration_point.predicted", predicted),
        ("calibration_point.score", score),
        ("decision.predicted", decided),
    ):
        quoted = comment.replace("'", "''")
        op.execute(f"COMMENT ON COLUMN venn_admit.{column} IS '{quoted}'")


def _let_programs_work_from(revision: str) -> None:
    op.execute(
        "CREATE OR REPLACE FUNCTION venn_admit.oldest_program() RETURNS text LANGUAGE sql IMMUTABLE "
        f"RETURN '{revision}'"
    )
