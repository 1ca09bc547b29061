"""Monitors of the promise, which may be looked at after every label, with the views that show them.

Why: whether at least 1 - alpha of the admitted are right is known only from labels that come later, one by one, and a
test that is made anew after each of them is wrong far too often. Four new tables and two views: it takes no time, and
older programs go on.
"""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

from venn_admit.service.store.database.routines import view_statements

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

IN_USE = Path(__file__).parents[1] / "routines" / "views" / "calibration_in_use_v1.sql"
NEW_VIEWS = ("monitor_v1", "alarm_v1")


def upgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("SET LOCAL statement_timeout = '10min'")
    _create_monitor()
    _create_state()
    _create_reading()
    _create_alarm()
    op.execute(IN_USE.read_text())
    for view in NEW_VIEWS:
        for statement in view_statements(view):
            op.execute(statement)


def downgrade() -> None:
    op.execute("SET LOCAL lock_timeout = '5s'")
    for view in reversed(NEW_VIEWS):
        op.execute(f"DROP VIEW report.{view}")
    op.execute("DROP VIEW venn_admit.calibration_in_use_v1")
    for table in ("monitor_alarm", "monitor_reading", "monitor_state", "monitor"):
        op.drop_table(table, schema="venn_admit")


def _create_monitor() -> None:
    op.create_table(
        "monitor",
        sa.Column(
            "id",
            sa.BigInteger(),
            sa.Identity(always=True),
            nullable=False,
            comment="Key; the newest of a calibrator counts.",
        ),
        sa.Column("calibrator_id", sa.Integer(), nullable=False, comment="Calibrator that it watches."),
        sa.Column(
            "knn_parameters_id",
            sa.Integer(),
            nullable=False,
            comment="KNN parameters of the snapshots whose decisions count.",
        ),
        sa.Column(
            "calibration_number",
            sa.Integer(),
            nullable=False,
            comment="Number of the snapshot whose points are the calibration data of the plan.",
        ),
        sa.Column(
            "after_event",
            sa.BigInteger(),
            nullable=False,
            comment="Last label event that does not count; labels that came later do.",
        ),
        sa.Column(
            "seen_event",
            sa.BigInteger(),
            server_default=sa.text("0"),
            nullable=False,
            comment="Newest label event, of any classifier, when labels were last read.",
        ),
        sa.Column(
            "plan", sa.JSON(), nullable=False, comment="What is fixed before the first label, as the core writes it."
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was started.",
        ),
        sa.CheckConstraint("after_event >= 0", name=op.f("monitor_after_event_check")),
        sa.ForeignKeyConstraint(
            ["calibrator_id"], ["venn_admit.calibrator.id"], name=op.f("monitor_calibrator_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["knn_parameters_id"], ["venn_admit.knn_parameters.id"], name=op.f("monitor_knn_parameters_id_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("monitor_pkey")),
        schema="venn_admit",
        comment="Monitors of the promise of a calibrator across its snapshots, from some label event on.",
    )
    op.create_index(
        op.f("monitor_calibrator_id_id_idx"), "monitor", ["calibrator_id", "id"], unique=False, schema="venn_admit"
    )


def _create_state() -> None:
    op.create_table(
        "monitor_state",
        sa.Column("monitor_id", sa.BigInteger(), nullable=False, comment="The monitor."),
        sa.Column(
            "documents", sa.Integer(), nullable=False, comment="Number of documents after which it is the state."
        ),
        sa.Column(
            "digest",
            sa.LargeBinary(),
            nullable=False,
            comment="BLAKE2b-128 of these documents; another one outdates it.",
        ),
        sa.Column("state", sa.JSON(), nullable=False, comment="The state, as the core writes it."),
        sa.CheckConstraint("documents >= 0", name=op.f("monitor_state_documents_check")),
        sa.CheckConstraint("octet_length(digest) = 16", name=op.f("monitor_state_digest_check")),
        sa.ForeignKeyConstraint(
            ["monitor_id"], ["venn_admit.monitor.id"], name=op.f("monitor_state_monitor_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("monitor_id", "documents", name=op.f("monitor_state_pkey")),
        schema="venn_admit",
        comment="States of monitors after every thousand documents and after the last, from which they go on.",
    )


def _create_reading() -> None:
    op.create_table(
        "monitor_reading",
        sa.Column("monitor_id", sa.BigInteger(), nullable=False, comment="The monitor."),
        sa.Column("lamp", sa.Text(), nullable=False, comment="promise, true_classes, partitions or mix."),
        sa.Column(
            "number",
            sa.Integer(),
            nullable=False,
            comment="Number of the class; of a partition, its group of q times C, plus the predicted class.",
        ),
        sa.Column("documents", sa.Integer(), nullable=False, comment="Documents that count in it."),
        sa.Column(
            "points", sa.Integer(), nullable=False, comment="Admitted points of these with a label; for mix, documents."
        ),
        sa.Column(
            "correct",
            sa.Integer(),
            nullable=True,
            comment="Admitted points whose prediction is the label; null for mix.",
        ),
        sa.Column(
            "lower_bound",
            sa.Double(),
            nullable=True,
            comment="Lower bound of the share right that holds at all times; null for mix.",
        ),
        sa.Column(
            "e_value", sa.Double(), nullable=True, comment="e-value now; null if it is not tested; may be infinite."
        ),
        sa.Column(
            "largest_e_value",
            sa.Double(),
            nullable=True,
            comment="Largest e-value so far; null if it is not tested; may be infinite.",
        ),
        sa.Column("needed", sa.Double(), nullable=False, comment="e-value that lights the lamp."),
        sa.Column(
            "lit_at",
            sa.Integer(),
            nullable=True,
            comment="Number of documents at which the lamp was lit; null if it never was.",
        ),
        sa.CheckConstraint(
            "lamp IN ('promise', 'true_classes', 'partitions', 'mix')", name=op.f("monitor_reading_lamp_check")
        ),
        sa.CheckConstraint("correct BETWEEN 0 AND points", name=op.f("monitor_reading_correct_check")),
        sa.CheckConstraint("e_value >= 0 AND largest_e_value >= e_value", name=op.f("monitor_reading_e_value_check")),
        sa.CheckConstraint("lit_at >= 1", name=op.f("monitor_reading_lit_at_check")),
        sa.CheckConstraint("lower_bound >= 0 AND lower_bound <= 1", name=op.f("monitor_reading_lower_bound_check")),
        sa.CheckConstraint("number >= 0", name=op.f("monitor_reading_number_check")),
        sa.ForeignKeyConstraint(
            ["monitor_id"], ["venn_admit.monitor.id"], name=op.f("monitor_reading_monitor_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("monitor_id", "lamp", "number", name=op.f("monitor_reading_pkey")),
        schema="venn_admit",
        comment="What the newest state of each monitor says of each class and partition that has labels.",
    )


def _create_alarm() -> None:
    op.create_table(
        "monitor_alarm",
        sa.Column(
            "id", sa.BigInteger(), sa.Identity(always=True), nullable=False, comment="Key; ascends in order of alarms."
        ),
        sa.Column("monitor_id", sa.BigInteger(), nullable=False, comment="The monitor."),
        sa.Column("lamp", sa.Text(), nullable=False, comment="promise, true_classes, partitions or mix."),
        sa.Column("number", sa.Integer(), nullable=False, comment="Class or partition, as in monitor_reading."),
        sa.Column(
            "label_event_id", sa.BigInteger(), nullable=False, comment="Label event of the document that lit the lamp."
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
            comment="When it was seen.",
        ),
        sa.Column(
            "ended_at",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="When labels were corrected so that it no longer stands, or the monitor was started anew; or null.",
        ),
        sa.Column(
            "notified_at",
            sa.DateTime(timezone=True),
            nullable=True,
            comment="When a webhook took it; null if none did.",
        ),
        sa.CheckConstraint(
            "lamp IN ('promise', 'true_classes', 'partitions', 'mix')", name=op.f("monitor_alarm_lamp_check")
        ),
        sa.CheckConstraint("number >= 0", name=op.f("monitor_alarm_number_check")),
        sa.ForeignKeyConstraint(
            ["monitor_id"], ["venn_admit.monitor.id"], name=op.f("monitor_alarm_monitor_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("monitor_alarm_pkey")),
        schema="venn_admit",
        comment="Alarms and notices that lamps were lit for.",
    )
    op.create_index(
        "monitor_alarm_standing_key",
        "monitor_alarm",
        ["monitor_id", "lamp", "number"],
        unique=True,
        schema="venn_admit",
        postgresql_where=sa.text("ended_at IS NULL"),
    )
