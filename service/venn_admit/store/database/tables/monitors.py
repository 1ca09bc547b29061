"""Monitors of the promise: their plans, their states after some documents, what these say, and alarms."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from venn_admit.store.database.tables.approximations import knn_parameters
from venn_admit.store.database.tables.base import created_at, metadata
from venn_admit.store.database.tables.calibrations import calibrator

_LAMPS = "lamp IN ('promise', 'true_classes', 'partitions', 'mix')"

monitor = sa.Table(
    "monitor",
    metadata,
    sa.Column(
        "id",
        sa.BigInteger,
        sa.Identity(always=True),
        primary_key=True,
        comment="Key; the newest of a calibrator counts.",
    ),
    sa.Column("calibrator_id", sa.ForeignKey(calibrator.c.id), nullable=False, comment="Calibrator that it watches."),
    sa.Column(
        "knn_parameters_id",
        sa.ForeignKey(knn_parameters.c.id),
        comment="KNN parameters of the snapshots whose decisions count; null if the classifier has logits only.",
    ),
    sa.Column(
        "calibration_number",
        sa.Integer,
        nullable=False,
        comment="Number of the snapshot whose points are the calibration data of the plan.",
    ),
    sa.Column(
        "after_event",
        sa.BigInteger,
        nullable=False,
        comment="Last label event that does not count; labels that came later do.",
    ),
    sa.Column(
        "seen_event",
        sa.BigInteger,
        nullable=False,
        server_default=sa.text("0"),
        comment="Newest label event, of any classifier, that was seen; settled once those of awaited are over.",
    ),
    sa.Column(
        "awaited",
        ARRAY(sa.Text),
        nullable=False,
        server_default=sa.text("'{}'"),
        comment="Virtual ids of the transactions that were under way when seen_event was.",
    ),
    sa.Column(
        "settled_event",
        sa.BigInteger,
        nullable=False,
        server_default=sa.text("0"),
        comment="Last label event that need not be read again: no transaction can add one before it, or a decision.",
    ),
    sa.Column("plan", sa.JSON, nullable=False, comment="What is fixed before the first label, as the core writes it."),
    created_at("it was started"),
    sa.CheckConstraint("after_event >= 0", name="after_event"),
    # Without a KNN, partitions are predicted classes; with one, they have a group of q too.
    sa.CheckConstraint(
        "(knn_parameters_id IS NULL) "
        "= (json_array_length(plan -> 'documents') = CAST(plan ->> 'class_count' AS integer))",
        name="partitions",
    ),
    sa.Index(None, "calibrator_id", "id"),
    comment="Monitors of the promise of a calibrator across its snapshots, from some label event on.",
)


monitor_state = sa.Table(
    "monitor_state",
    metadata,
    sa.Column("monitor_id", sa.ForeignKey(monitor.c.id, ondelete="CASCADE"), nullable=False, comment="The monitor."),
    sa.Column("documents", sa.Integer, nullable=False, comment="Number of documents after which it is the state."),
    sa.Column(
        "event", sa.BigInteger, nullable=False, comment="Label event by which the last of these documents counts."
    ),
    sa.Column(
        "digest", sa.LargeBinary, nullable=False, comment="BLAKE2b-128 of these documents; another one outdates it."
    ),
    sa.Column("state", sa.JSON, nullable=False, comment="The state, as the core writes it."),
    sa.PrimaryKeyConstraint("monitor_id", "documents"),
    sa.CheckConstraint("documents >= 0", name="documents"),
    sa.CheckConstraint("octet_length(digest) = 16", name="digest"),
    comment="States of monitors after every thousand documents and after the last, from which they go on.",
)


monitor_reading = sa.Table(
    "monitor_reading",
    metadata,
    sa.Column("monitor_id", sa.ForeignKey(monitor.c.id, ondelete="CASCADE"), nullable=False, comment="The monitor."),
    sa.Column("lamp", sa.Text, nullable=False, comment="promise, true_classes, partitions or mix."),
    sa.Column(
        "number",
        sa.Integer,
        nullable=False,
        comment="Number of the class; of a partition, its group of q times C, plus the predicted class.",
    ),
    sa.Column("documents", sa.Integer, nullable=False, comment="Documents that count in it."),
    sa.Column(
        "points", sa.Integer, nullable=False, comment="Admitted points of these with a label; for mix, documents."
    ),
    sa.Column("correct", sa.Integer, comment="Admitted points whose prediction is the label; null for mix."),
    sa.Column(
        "lower_bound", sa.Double, comment="Lower bound of the share right that holds at all times; null for mix."
    ),
    sa.Column("e_value", sa.Double, comment="e-value now; null if it is not tested; may be infinite."),
    sa.Column(
        "largest_e_value", sa.Double, comment="Largest e-value so far; null if it is not tested; may be infinite."
    ),
    sa.Column("needed", sa.Double, nullable=False, comment="e-value that lights the lamp."),
    sa.Column("lit_at", sa.Integer, comment="Number of documents at which the lamp was lit; null if it never was."),
    sa.PrimaryKeyConstraint("monitor_id", "lamp", "number"),
    sa.CheckConstraint(_LAMPS, name="lamp"),
    sa.CheckConstraint("number >= 0", name="number"),
    sa.CheckConstraint("correct BETWEEN 0 AND points", name="correct"),
    sa.CheckConstraint("lower_bound >= 0 AND lower_bound <= 1", name="lower_bound"),
    sa.CheckConstraint("e_value >= 0 AND largest_e_value >= e_value", name="e_value"),
    sa.CheckConstraint("lit_at >= 1", name="lit_at"),
    comment="What the newest state of each monitor says of each class and partition that has labels.",
)


monitor_alarm = sa.Table(
    "monitor_alarm",
    metadata,
    sa.Column(
        "id", sa.BigInteger, sa.Identity(always=True), primary_key=True, comment="Key; ascends in order of alarms."
    ),
    sa.Column("monitor_id", sa.ForeignKey(monitor.c.id, ondelete="CASCADE"), nullable=False, comment="The monitor."),
    sa.Column("lamp", sa.Text, nullable=False, comment="promise, true_classes, partitions or mix."),
    sa.Column("number", sa.Integer, nullable=False, comment="Class or partition, as in monitor_reading."),
    sa.Column(
        "label_event_id", sa.BigInteger, nullable=False, comment="Label event of the document that lit the lamp."
    ),
    created_at("it was seen"),
    sa.Column(
        "ended_at",
        sa.DateTime(timezone=True),
        comment="When labels were corrected so that it no longer stands, or the monitor was started anew; or null.",
    ),
    sa.Column("notified_at", sa.DateTime(timezone=True), comment="When a webhook took it; null if none did."),
    sa.CheckConstraint(_LAMPS, name="lamp"),
    sa.CheckConstraint("number >= 0", name="number"),
    # A lamp is lit once, until its alarm ends.
    sa.Index(
        "monitor_alarm_standing_key",
        "monitor_id",
        "lamp",
        "number",
        unique=True,
        postgresql_where=sa.text("ended_at IS NULL"),
    ),
    comment="Alarms and notices that lamps were lit for.",
)
