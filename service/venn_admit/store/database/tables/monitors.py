"""Monitors of the promise: their plans, their states after some documents, what these say, and alarms."""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from venn_admit.store.database.tables.approximations import knn_parameters
from venn_admit.store.database.tables.base import TIME, created_at, key, metadata, optional, required
from venn_admit.store.database.tables.calibrations import calibrator

_LAMPS = (
    "lamp IN ('promise', 'true_classes', 'groups', 'partitions', 'mix', 'early_promise', 'early_true_classes', "
    "'early_groups')"
)
_LAMP = "promise, true_classes, groups, the early_ warnings of these, partitions or mix."

monitor = sa.Table(
    "monitor",
    metadata,
    key("Key; the newest of a calibrator counts."),
    required("calibrator_id", sa.ForeignKey(calibrator.c.id), "Calibrator that it watches."),
    optional(
        "knn_parameters_id",
        sa.ForeignKey(knn_parameters.c.id),
        "KNN parameters of the snapshots whose decisions count; null if the classifier has logits only.",
    ),
    required(
        "calibration_number", sa.Integer, "Number of the snapshot whose points are the calibration data of the plan."
    ),
    required("after_event", sa.BigInteger, "Last label event that does not count; labels that came later do."),
    required(
        "seen_event",
        sa.BigInteger,
        "Newest label event, of any classifier, that was seen; settled once those of awaited are over.",
        server_default=sa.text("0"),
    ),
    required(
        "awaited",
        ARRAY(sa.Text),
        "Virtual ids of the transactions that were under way when seen_event was.",
        server_default=sa.text("'{}'"),
    ),
    required(
        "settled_event",
        sa.BigInteger,
        "Last label event that need not be read again: no transaction can add one before it, or a decision.",
        server_default=sa.text("0"),
    ),
    required("plan", sa.JSON, "What is fixed before the first label, as the core writes it."),
    created_at("it was started"),
    optional(
        "label_deadline",
        sa.Interval,
        "Time after the first decision on a document within which labels count, once it has passed; null if documents "
        "count by their labels.",
    ),
    required(
        "after_decision",
        sa.BigInteger,
        "Last decision that does not count, if there is a label deadline.",
        server_default=sa.text("0"),
    ),
    required(
        "passed_decision",
        sa.BigInteger,
        "Last decision up to which all label deadlines have passed.",
        server_default=sa.text("0"),
    ),
    required(
        "decided", sa.Integer, "Points decided on first between these two decisions.", server_default=sa.text("0")
    ),
    sa.CheckConstraint("after_event >= 0", name="after_event"),
    sa.CheckConstraint("label_deadline > interval '0'", name="label_deadline"),
    sa.CheckConstraint("passed_decision >= after_decision AND decided >= 0", name="decided"),
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
    required("monitor_id", sa.ForeignKey(monitor.c.id, ondelete="CASCADE"), "The monitor."),
    required("documents", sa.Integer, "Number of documents after which it is the state."),
    required(
        "event",
        sa.BigInteger,
        "Label event by which the last of these documents counts; if there is a label deadline, the first decision on "
        "it.",
    ),
    required("digest", sa.LargeBinary, "BLAKE2b-128 of these documents; another one outdates it."),
    required("state", sa.JSON, "The state, as the core writes it."),
    sa.PrimaryKeyConstraint("monitor_id", "documents"),
    sa.CheckConstraint("documents >= 0", name="documents"),
    sa.CheckConstraint("octet_length(digest) = 16", name="digest"),
    comment="States of monitors after every thousand documents and after the last, from which they go on.",
)


monitor_reading = sa.Table(
    "monitor_reading",
    metadata,
    required("monitor_id", sa.ForeignKey(monitor.c.id, ondelete="CASCADE"), "The monitor."),
    required("lamp", sa.Text, _LAMP),
    required(
        "number",
        sa.Integer,
        "Number of the class; of a group, its place in the plan; of a partition, its group of q times C, plus the "
        "predicted class.",
    ),
    required("documents", sa.Integer, "Documents that count in it."),
    required("points", sa.Integer, "Admitted points of these with a label; for mix, documents."),
    optional("correct", sa.Integer, "Admitted points whose prediction is the label; null for mix."),
    optional("lower_bound", sa.Double, "Lower bound of the share right that holds at all times; null for mix."),
    optional("e_value", sa.Double, "e-value now; null if it is not tested; may be infinite."),
    optional("largest_e_value", sa.Double, "Largest e-value so far; null if it is not tested; may be infinite."),
    required("needed", sa.Double, "e-value that lights the lamp."),
    optional("lit_at", sa.Integer, "Number of documents at which the lamp was lit; null if it never was."),
    sa.PrimaryKeyConstraint("monitor_id", "lamp", "number"),
    sa.CheckConstraint(_LAMPS, name="lamp"),
    sa.CheckConstraint("number >= 0", name="number"),
    sa.CheckConstraint("correct BETWEEN 0 AND points", name="correct"),
    sa.CheckConstraint("lower_bound >= 0 AND lower_bound <= 1", name="lower_bound"),
    sa.CheckConstraint("e_value >= 0 AND largest_e_value >= e_value", name="e_value"),
    sa.CheckConstraint("lit_at >= 1", name="lit_at"),
    comment="What the newest state of each monitor says of each class, group and partition that has labels.",
)


monitor_alarm = sa.Table(
    "monitor_alarm",
    metadata,
    key("Key; ascends in order of alarms."),
    required("monitor_id", sa.ForeignKey(monitor.c.id, ondelete="CASCADE"), "The monitor."),
    required("lamp", sa.Text, _LAMP),
    required("number", sa.Integer, "Class, group or partition, as in monitor_reading."),
    required("label_event_id", sa.BigInteger, "Label event of the document that lit the lamp."),
    created_at("it was seen"),
    optional(
        "ended_at",
        TIME,
        "When labels were corrected so that it no longer stands, or the monitor was started anew; or null.",
    ),
    optional("notified_at", TIME, "When a webhook took it; null if none did."),
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
