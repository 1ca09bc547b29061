"""A database of many decisions: classifiers one after the other in time, each with a million."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from sqlalchemy import Engine, text

from benchmarks.reporting_data import FIRST_DAY, fill
from benchmarks.storage import database
from venn_admit.store.database.engine import transaction
from venn_admit.store.exemplars import classifiers

DAYS = 50
TRAINING, CALIBRATING = 10_000, 2_000
TRAINING_AND_CALIBRATING = TRAINING + CALIBRATING
NEIGHBOUR_COUNT = 5

# One in twenty exemplars that were scored has a label, which came a day later; no training exemplar waits; jobs end on
# their day.
_AFTERWARDS = """
INSERT INTO label_event (exemplar_id, label, selection, source, created_at)
SELECT exemplar.id, exemplar.label, 'random', 'test', now()
FROM exemplar WHERE classifier_id = :classifier AND split = 'scored' AND label IS NOT NULL;
UPDATE classifier SET support_version = (
    SELECT max(id) FROM exemplar WHERE classifier_id = :classifier AND split = 'train'
) WHERE id = :classifier;
UPDATE job SET finished_at = created_at + interval '1 hour' WHERE classifier_id = :classifier;
"""


@contextmanager
def filled(home: Path, *, parts: int, decisions: int) -> Iterator[Engine]:
    """A server of its own with this number of parts, each of one classifier's decisions in fifty days.

    Args:
        home: Its folder.
        parts: How many classifiers, of which each decided after the one before.
        decisions: The number of decisions of each; a multiple of a hundred.
    """
    with database(home) as engine:
        fill_parts(engine, parts=parts, decisions=decisions)
        yield engine


def fill_parts(engine: Engine, *, parts: int, decisions: int) -> None:
    """Store the parts, one in each transaction."""
    with transaction(engine) as connection:
        # Filling it would take longer than all that is measured, and nothing here reads it.
        connection.exec_driver_sql("DROP INDEX neighbours_neighbour_ids_idx")
    for part in range(parts):
        add_part(engine, part, decisions=decisions)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("VACUUM (ANALYZE)")


def add_part(engine: Engine, part: int, *, decisions: int) -> None:
    """Store a classifier with its decisions, which come after those of the parts before."""
    with transaction(engine) as connection:
        classifier = classifiers.create(
            connection,
            name=f"part-{part}",
            class_names=("a", "b"),
            dimension=2,
            neighbour_count=NEIGHBOUR_COUNT,
            knn_share=Decimal("0.1"),
            mc_share=Decimal("0.45"),
            seed=0,
        )
        scored = decisions // 2
        fill(
            connection,
            classifier.id,
            first=1 + part * (TRAINING + CALIBRATING + scored),
            training=TRAINING,
            calibrating=CALIBRATING,
            scored=scored,
            days=DAYS,
            neighbour_count=NEIGHBOUR_COUNT,
            first_day=FIRST_DAY + timedelta(days=DAYS * part),
        )
        for statement in _AFTERWARDS.split(";\n")[:-1]:
            connection.execute(text(statement), {"classifier": classifier.id})
