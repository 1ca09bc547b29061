"""Calibrators, their snapshots and row-versioned points.

Why: A decision is pinned to a snapshot; a new snapshot writes only the rows that changed, and any old one
can be read as it was.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.create_table(
        "calibrator",
        sa.Column("id", sa.Integer(), sa.Identity(always=True), nullable=False, comment="Key."),
        sa.Column("classifier_id", sa.Integer(), nullable=False, comment="What it calibrates."),
        sa.Column(
            "settings_digest",
            sa.LargeBinary(),
            nullable=False,
            comment="BLAKE2b-128 of the settings that follow.",
        ),
        sa.Column("alpha", sa.Numeric(), nullable=False, comment="Error level, exact."),
        sa.Column(
            "delta", sa.Double(), nullable=False, comment="Band radius in standard deviations of d; may be infinite."
        ),
        sa.Column("kappa", sa.Integer(), nullable=False, comment="Least number of points of each class in a band."),
        sa.Column(
            "bin_edges",
            postgresql.ARRAY(sa.Integer()),
            nullable=False,
            comment="Lower edges of the bins of q, the first 0.",
        ),
        sa.Column(
            "thresholds",
            postgresql.ARRAY(sa.Numeric()),
            nullable=False,
            comment="Least lower probability per predicted class.",
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was first asked for.",
        ),
        sa.CheckConstraint(
            "1 - alpha <= ALL (thresholds) AND 1 >= ALL (thresholds)", name=op.f("calibrator_thresholds_check")
        ),
        sa.CheckConstraint("alpha > 0 AND alpha < 1", name=op.f("calibrator_alpha_check")),
        sa.CheckConstraint("delta > 0", name=op.f("calibrator_delta_check")),
        sa.CheckConstraint("kappa >= 1", name=op.f("calibrator_kappa_check")),
        sa.ForeignKeyConstraint(
            ["classifier_id"], ["venn_admit.classifier.id"], name=op.f("calibrator_classifier_id_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("calibrator_pkey")),
        sa.UniqueConstraint(
            "classifier_id", "settings_digest", name=op.f("calibrator_classifier_id_settings_digest_key")
        ),
        schema="venn_admit",
        comment="A setting under which a classifier is calibrated.",
    )
    op.create_table(
        "calibration",
        sa.Column(
            "id",
            sa.BigInteger(),
            sa.Identity(always=True),
            nullable=False,
            comment="Key; what a decision is pinned to.",
        ),
        sa.Column("calibrator_id", sa.Integer(), nullable=False, comment="Under which setting."),
        sa.Column(
            "number",
            sa.Integer(),
            nullable=False,
            comment="1, 2, ... within the calibrator; validity is counted in it.",
        ),
        sa.Column(
            "revision",
            sa.Uuid(),
            server_default=sa.text("gen_random_uuid()"),
            nullable=False,
            comment="Names its cached copy.",
        ),
        sa.Column("knn_parameters_id", sa.Integer(), nullable=False, comment="Under which parameters."),
        sa.Column(
            "s_hat",
            sa.Double(),
            nullable=False,
            comment="Sample standard deviation of d over mc, q > 0, predicted right.",
        ),
        sa.Column("omega", sa.Double(), nullable=False, comment="Band radius, delta * s_hat."),
        sa.Column("mc_count", sa.Integer(), nullable=False, comment="Points of split mc."),
        sa.Column("vp_count", sa.Integer(), nullable=False, comment="Points of split vp."),
        sa.Column("reason", sa.Text(), nullable=False, comment="Why it was made."),
        sa.Column("state", sa.Text(), nullable=False, comment="current or retired."),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it became current.",
        ),
        sa.CheckConstraint("state IN ('current', 'retired')", name=op.f("calibration_state_check")),
        sa.CheckConstraint("number >= 1", name=op.f("calibration_number_check")),
        sa.ForeignKeyConstraint(
            ["calibrator_id"], ["venn_admit.calibrator.id"], name=op.f("calibration_calibrator_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["knn_parameters_id"], ["venn_admit.knn_parameters.id"], name=op.f("calibration_knn_parameters_id_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("calibration_pkey")),
        sa.UniqueConstraint("calibrator_id", "number", name=op.f("calibration_calibrator_id_number_key")),
        schema="venn_admit",
        comment="Immutable numbered snapshots of a calibrator.",
    )
    op.create_index(
        "calibration_current_key",
        "calibration",
        ["calibrator_id"],
        unique=True,
        schema="venn_admit",
        postgresql_where=sa.text("state = 'current'"),
    )
    op.create_table(
        "calibration_point",
        sa.Column("calibrator_id", sa.Integer(), nullable=False, comment="Whose point."),
        sa.Column("exemplar_id", sa.BigInteger(), nullable=False, comment="The exemplar."),
        sa.Column("valid_from", sa.Integer(), nullable=False, comment="First snapshot number that holds this row."),
        sa.Column(
            "valid_until",
            sa.Integer(),
            nullable=True,
            comment="First snapshot number that no longer does; null while it holds.",
        ),
        sa.Column("split", sa.Text(), nullable=False, comment="mc or vp."),
        sa.Column("label", sa.Integer(), nullable=False, comment="y."),
        sa.Column("predicted", sa.Integer(), nullable=False, comment="KNN's prediction."),
        sa.Column("match_count", sa.Integer(), nullable=False, comment="q."),
        sa.Column("bin", sa.Integer(), nullable=False, comment="Bin of q under the calibrator's edges."),
        sa.Column("distance", sa.Double(), nullable=False, comment="d."),
        sa.Column("score", sa.Double(), nullable=False, comment="Nonconformity score of the label, 1 - pi^y."),
        sa.Column(
            "admit_set", postgresql.BIT(varying=True), nullable=True, comment="ADMIT set, a bit a class; null in mc."
        ),
        sa.Column(
            "is_singleton",
            sa.Boolean(),
            sa.Computed("bit_count(admit_set) = 1", persisted=True),
            nullable=True,
            comment="Whether the ADMIT set is {predicted}; null in mc.",
        ),
        sa.CheckConstraint("(split = 'vp') = (admit_set IS NOT NULL)", name=op.f("calibration_point_admit_set_check")),
        sa.CheckConstraint("split IN ('mc', 'vp')", name=op.f("calibration_point_split_check")),
        sa.CheckConstraint("valid_until > valid_from", name=op.f("calibration_point_validity_check")),
        sa.ForeignKeyConstraint(
            ["calibrator_id"], ["venn_admit.calibrator.id"], name=op.f("calibration_point_calibrator_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["exemplar_id"], ["venn_admit.exemplar.id"], name=op.f("calibration_point_exemplar_id_fkey")
        ),
        sa.PrimaryKeyConstraint("calibrator_id", "exemplar_id", "valid_from", name=op.f("calibration_point_pkey")),
        schema="venn_admit",
        comment="Row-versioned calibration data: a snapshot is the rows valid at its number.",
    )
    op.create_index(
        "calibration_point_band_idx",
        "calibration_point",
        ["calibrator_id", "split", "bin", "distance"],
        unique=False,
        schema="venn_admit",
        postgresql_include=["label", "predicted", "score", "is_singleton"],
        postgresql_where=sa.text("valid_until IS NULL"),
    )
    op.create_index(
        "calibration_point_open_key",
        "calibration_point",
        ["calibrator_id", "exemplar_id"],
        unique=True,
        schema="venn_admit",
        postgresql_where=sa.text("valid_until IS NULL"),
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("calibration_point", schema="venn_admit")
    op.drop_table("calibration", schema="venn_admit")
    op.drop_table("calibrator", schema="venn_admit")
