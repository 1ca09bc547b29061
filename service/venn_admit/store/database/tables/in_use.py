"""Which calibration was in use when, those that were not put in use, and the certificates that looked at labels."""

import sqlalchemy as sa

from venn_admit.store.database.tables.access import api_key
from venn_admit.store.database.tables.base import TIME, created_at, key, metadata, optional, required
from venn_admit.store.database.tables.calibrations import calibrator, snapshot_key
from venn_admit.store.database.tables.exemplars import classifier

withheld_calibration = sa.Table(
    "withheld_calibration",
    metadata,
    snapshot_key(),
    required("in_use_id", sa.BigInteger, "The snapshot that stayed in use, which may be gone by now."),
    required("points", sa.Integer, "Calibration points that both judge; 0 if each was measured on its own."),
    required("share", sa.Double, "Share of them that it would admit."),
    required("share_in_use", sa.Double, "Share of them that the one in use would admit."),
    comment="What was found of each snapshot that was not put in use because it admits far less than the one in use.",
)
calibration_use = sa.Table(
    "calibration_use",
    metadata,
    key("Key; uses are in order of it."),
    required("classifier_id", sa.ForeignKey(classifier.c.id), "The classifier.", index=True),
    required("calibrator_id", sa.ForeignKey(calibrator.c.id), "The calibrator of the snapshot.", index=True),
    required("calibration_id", sa.BigInteger, "The snapshot, which may be gone by now."),
    required("created_at", TIME, "When it was put in use.", server_default=sa.func.clock_timestamp()),
    optional("origin", sa.Text, "http, command line or schedule; null for those in use when this history was begun."),
    optional("key_id", sa.ForeignKey(api_key.c.id), "The key that was shown; null without one."),
    optional("subject", sa.Text, "Subject of the token that was shown; null without."),
    required("reason", sa.Text, "Why it was put in use."),
    sa.CheckConstraint("origin IN ('http', 'command line', 'schedule')", name="origin"),
    sa.CheckConstraint("key_id IS NULL OR subject IS NULL", name="who"),
    comment="Which snapshot each classifier decided with, from when on. Only added to.",
)
certificate_look = sa.Table(
    "certificate_look",
    metadata,
    key("Key."),
    required("classifier_id", sa.ForeignKey(classifier.c.id), "The classifier.", index=True),
    required("calibrator_id", sa.ForeignKey(calibrator.c.id), "The calibrator of the snapshot."),
    required("calibration_id", sa.BigInteger, "The first snapshot with it, which may be gone by now."),
    required("digest", sa.LargeBinary, "BLAKE2b-128 of the points and the outcome."),
    required("confidence", sa.Numeric, "Confidence that was asked for."),
    created_at("it looked at the labels"),
    sa.UniqueConstraint("calibrator_id", "digest"),
    sa.CheckConstraint("confidence > 0 AND confidence < 1", name="confidence"),
    comment="Every certificate that looked at the held-out labels of a classifier, each once. Only added to.",
)
