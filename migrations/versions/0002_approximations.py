"""Neighbours, KNN parameters and approximations.

Why: The search for neighbours is the expensive part: its result is kept, and new parameters need no other
search.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    op.create_table(
        "neighbours",
        sa.Column("exemplar_id", sa.BigInteger(), nullable=False, comment="The point."),
        sa.Column(
            "complete_to", sa.BigInteger(), nullable=False, comment="Newest training exemplar that was searched."
        ),
        sa.Column(
            "neighbour_ids",
            postgresql.ARRAY(sa.BigInteger()),
            nullable=False,
            comment="K training exemplars, nearest first.",
        ),
        sa.Column(
            "distances", postgresql.ARRAY(sa.Double()), nullable=False, comment="Their Euclidean distances, ascending."
        ),
        sa.CheckConstraint(
            "cardinality(neighbour_ids) = cardinality(distances)", name=op.f("neighbours_lengths_check")
        ),
        sa.ForeignKeyConstraint(["exemplar_id"], ["venn_admit.exemplar.id"], name=op.f("neighbours_exemplar_id_fkey")),
        sa.PrimaryKeyConstraint("exemplar_id", name=op.f("neighbours_pkey")),
        schema="venn_admit",
        comment="The exact K nearest training exemplars of each held-out or scored point, under any parameters.",
    )
    op.create_table(
        "knn_parameters",
        sa.Column("id", sa.Integer(), sa.Identity(always=True), nullable=False, comment="Key."),
        sa.Column("classifier_id", sa.Integer(), nullable=False, comment="Whose KNN it is."),
        sa.Column("origin", sa.Text(), nullable=False, comment="fitted here, or given by the user."),
        sa.Column("beta", postgresql.ARRAY(sa.Double()), nullable=False, comment="Bias of each class."),
        sa.Column(
            "gamma", postgresql.ARRAY(sa.Double()), nullable=False, comment="Weight of the label term of each class."
        ),
        sa.Column(
            "eta", sa.Double(), nullable=False, comment="Temperature of the neighbour weights, in units of distance."
        ),
        sa.Column(
            "eta_loc", sa.Double(), nullable=False, comment="Temperature of the localizer, in units of distance."
        ),
        sa.Column("fit_count", sa.Integer(), nullable=True, comment="Points of the fit half; null where given."),
        sa.Column("dev_count", sa.Integer(), nullable=True, comment="Points of the dev half; null where given."),
        sa.Column(
            "dev_discrepancies",
            sa.Integer(),
            nullable=True,
            comment="Dev points where KNN and network differ; null where given.",
        ),
        sa.Column("is_current", sa.Boolean(), nullable=False, comment="Whether new work uses it."),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was fitted or given.",
        ),
        sa.CheckConstraint("origin IN ('fitted', 'given')", name=op.f("knn_parameters_origin_check")),
        sa.CheckConstraint("eta > 0 AND eta_loc > 0", name=op.f("knn_parameters_temperatures_check")),
        sa.ForeignKeyConstraint(
            ["classifier_id"], ["venn_admit.classifier.id"], name=op.f("knn_parameters_classifier_id_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("knn_parameters_pkey")),
        schema="venn_admit",
        comment="Parameters of the KNN approximation and the localizer, one row a fit.",
    )
    op.create_index(
        "knn_parameters_current_key",
        "knn_parameters",
        ["classifier_id"],
        unique=True,
        schema="venn_admit",
        postgresql_where=sa.text("is_current"),
    )
    op.create_table(
        "training_epoch",
        sa.Column("knn_parameters_id", sa.Integer(), nullable=False, comment="Which fit."),
        sa.Column("model", sa.Text(), nullable=False, comment="knn or localizer."),
        sa.Column("epoch", sa.Integer(), nullable=False, comment="0 is the start, before any step."),
        sa.Column(
            "loss",
            sa.Double(),
            nullable=True,
            comment="Mean loss over the points it was taken over; null where none was taken.",
        ),
        sa.Column("masked", sa.Boolean(), nullable=False, comment="Whether the loss was over discrepant points only."),
        sa.Column("discrepancies", sa.Integer(), nullable=False, comment="Prediction discrepancies on the dev half."),
        sa.Column("parameters", postgresql.ARRAY(sa.Double()), nullable=False, comment="beta, gamma, eta; or eta_loc."),
        sa.CheckConstraint("model IN ('knn', 'localizer')", name=op.f("training_epoch_model_check")),
        sa.ForeignKeyConstraint(
            ["knn_parameters_id"], ["venn_admit.knn_parameters.id"], name=op.f("training_epoch_knn_parameters_id_fkey")
        ),
        sa.PrimaryKeyConstraint("knn_parameters_id", "model", "epoch", name=op.f("training_epoch_pkey")),
        schema="venn_admit",
        comment="Training log, one row an epoch.",
    )
    op.create_table(
        "approximation",
        sa.Column("knn_parameters_id", sa.Integer(), nullable=False, comment="Under which parameters."),
        sa.Column("exemplar_id", sa.BigInteger(), nullable=False, comment="The point."),
        sa.Column(
            "complete_to", sa.BigInteger(), nullable=False, comment="That of the neighbours it was computed from."
        ),
        sa.Column("predicted", sa.Integer(), nullable=False, comment="argmax KNN, ties to the lower class."),
        sa.Column(
            "match_count", sa.Integer(), nullable=False, comment="q, matches among consecutive nearest neighbours."
        ),
        sa.Column("distance", sa.Double(), nullable=False, comment="d, distance to the nearest training exemplar."),
        sa.Column("logits", postgresql.ARRAY(sa.Double()), nullable=False, comment="KNN(x), one a class."),
        sa.ForeignKeyConstraint(
            ["exemplar_id"], ["venn_admit.exemplar.id"], name=op.f("approximation_exemplar_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["knn_parameters_id"], ["venn_admit.knn_parameters.id"], name=op.f("approximation_knn_parameters_id_fkey")
        ),
        sa.PrimaryKeyConstraint("knn_parameters_id", "exemplar_id", name=op.f("approximation_pkey")),
        schema="venn_admit",
        comment="The KNN approximation of each point, from its stored neighbours.",
    )


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.drop_table("approximation", schema="venn_admit")
    op.drop_table("training_epoch", schema="venn_admit")
    op.drop_table("knn_parameters", schema="venn_admit")
    op.drop_table("neighbours", schema="venn_admit")
