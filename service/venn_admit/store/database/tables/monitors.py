"""Monitors of the promise: their plans, their states after some documents, what these say, and alarms."""

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from venn_admit.store.database.tables.approximations import knn_parameters
from venn_admit.store.database.tables.base import created_at, metadata
from venn_admit.store.database.tables.calibrations import calibrator

_LAMPS = "lamp IN ('promise', 'true_classes', 'partitions', 'mix')"

monitor = Table(
    "monitor",
    metadata,
    Column(
        "id", BigInteger, Identity(always=True), primary_key=True, comment="Key; the newest of a calibrator counts."
    ),
    Column("calibrator_id", ForeignKey(calibrator.c.id), nullable=False, comment="Calibrator that it watches."),
    Column(
        "knn_parameters_id",
        ForeignKey(knn_parameters.c.id),
        comment="KNN parameters of the snapshots whose decisions count; null if the classifier has logits only.",
    ),
    Column(
        "calibration_number",
        Integer,
        nullable=False,
        comment="Number of the snapshot whose points are the calibration data of the plan.",
    ),
    Column(
        "after_event",
        BigInteger,
        nullable=False,
        comment="Last label event that does not count; labels that came later do.",
    ),
    Column(
        "seen_event",
        BigInteger,
        nullable=False,
        server_default=text("0"),
        comment="Newest label event, of any classifier, that was seen; settled once those of awaited are over.",
    ),
    Column(
        "awaited",
        ARRAY(Text),
        nullable=False,
        server_default=text("'{}'"),
        comment="Virtual ids of the transactions that were under way when seen_event was.",
    ),
    Column(
        "settled_event",
        BigInteger,
        nullable=False,
        server_default=text("0"),
        comment="Last label event that need not be read again: no transaction can add one before it, or a decision.",
    ),
    Column("plan", JSON, nullable=False, comment="What is fixed before the first label, as the core writes it."),
    created_at("it was started"),
    CheckConstraint("after_event >= 0", name="after_event"),
    # Without a KNN, partitions are predicted classes; with one, they have a group of q too.
    CheckConstraint(
        "(knn_parameters_id IS NULL) "
        "= (json_array_length(plan -> 'documents') = CAST(plan ->> 'class_count' AS integer))",
        name="partitions",
    ),
    Index(None, "calibrator_id", "id"),
    comment="Monitors of the promise of a calibrator across its snapshots, from some label event on.",
)


monitor_state = Table(
    "monitor_state",
    metadata,
    Column("monitor_id", ForeignKey(monitor.c.id, ondelete="CASCADE"), nullable=False, comment="The monitor."),
    Column("documents", Integer, nullable=False, comment="Number of documents after which it is the state."),
    Column("event", BigInteger, nullable=False, comment="Label event by which the last of these documents counts."),
    Column("digest", LargeBinary, nullable=False, comment="BLAKE2b-128 of these documents; another one outdates it."),
    Column("state", JSON, nullable=False, comment="The state, as the core writes it."),
    PrimaryKeyConstraint("monitor_id", "documents"),
    CheckConstraint("documents >= 0", name="documents"),
    CheckConstraint("octet_length(digest) = 16", name="digest"),
    comment="States of monitors after every thousand documents and after the last, from which they go on.",
)


monitor_reading = Table(
    "monitor_reading",
    metadata,
    Column("monitor_id", ForeignKey(monitor.c.id, ondelete="CASCADE"), nullable=False, comment="The monitor."),
    Column("lamp", Text, nullable=False, comment="promise, true_classes, partitions or mix."),
    Column(
        "number",
        Integer,
        nullable=False,
        comment="Number of the class; of a partition, its group of q times C, plus the predicted class.",
    ),
    Column("documents", Integer, nullable=False, comment="Documents that count in it."),
    Column("points", Integer, nullable=False, comment="Admitted points of these with a label; for mix, documents."),
    Column("correct", Integer, comment="Admitted points whose prediction is the label; null for mix."),
    Column("lower_bound", Double, comment="Lower bound of the share right that holds at all times; null for mix."),
    Column("e_value", Double, comment="e-value now; null if it is not tested; may be infinite."),
    Column("largest_e_value", Double, comment="Largest e-value so far; null if it is not tested; may be infinite."),
    Column("needed", Double, nullable=False, comment="e-value that lights the lamp."),
    Column("lit_at", Integer, comment="Number of documents at which the lamp was lit; null if it never was."),
    PrimaryKeyConstraint("monitor_id", "lamp", "number"),
    CheckConstraint(_LAMPS, name="lamp"),
    CheckConstraint("number >= 0", name="number"),
    CheckConstraint("correct BETWEEN 0 AND points", name="correct"),
    CheckConstraint("lower_bound >= 0 AND lower_bound <= 1", name="lower_bound"),
    CheckConstraint("e_value >= 0 AND largest_e_value >= e_value", name="e_value"),
    CheckConstraint("lit_at >= 1", name="lit_at"),
    comment="What the newest state of each monitor says of each class and partition that has labels.",
)


monitor_alarm = Table(
    "monitor_alarm",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True, comment="Key; ascends in order of alarms."),
    Column("monitor_id", ForeignKey(monitor.c.id, ondelete="CASCADE"), nullable=False, comment="The monitor."),
    Column("lamp", Text, nullable=False, comment="promise, true_classes, partitions or mix."),
    Column("number", Integer, nullable=False, comment="Class or partition, as in monitor_reading."),
    Column("label_event_id", BigInteger, nullable=False, comment="Label event of the document that lit the lamp."),
    created_at("it was seen"),
    Column(
        "ended_at",
        DateTime(timezone=True),
        comment="When labels were corrected so that it no longer stands, or the monitor was started anew; or null.",
    ),
    Column("notified_at", DateTime(timezone=True), comment="When a webhook took it; null if none did."),
    CheckConstraint(_LAMPS, name="lamp"),
    CheckConstraint("number >= 0", name="number"),
    # A lamp is lit once, until its alarm ends.
    Index(
        "monitor_alarm_standing_key",
        "monitor_id",
        "lamp",
        "number",
        unique=True,
        postgresql_where=text("ended_at IS NULL"),
    ),
    comment="Alarms and notices that lamps were lit for.",
)
