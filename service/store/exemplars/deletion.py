"""Deleting a generation of a classifier with all that hangs on it, some rows at a time."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from venn_admit.service.core.types import IntArray
from venn_admit.service.store.database.statements import statement
from venn_admit.service.store.exemplars.classifiers import Classifier

TABLES = (
    "recalibration_request",
    "monitor",
    "job_chunk",
    "job",
    "venn_abers_step",
    "forgotten_point",
    "calibration",
    "calibrator",
    "training_epoch",
    "knn_parameters",
    "forgotten_training",
)
"""What refers to no exemplar, in the order in which it can be deleted."""


def begin(connection: Connection, generations: Sequence[Classifier], *, every: bool) -> None:
    """Let generations count as being deleted; every: whether these are all, so that keys for the classifier go too."""
    parameters = {"classifier_ids": [one.id for one in generations]}
    connection.execute(statement("deletion.begin"), parameters)
    if every:
        connection.execute(statement("deletion.revoke_keys"), parameters)
        connection.execute(statement("deletion.end_sessions"), parameters)


def cancel_jobs(connection: Connection, classifier: Classifier) -> None:
    """Cancel jobs that were recorded while the deletion began."""
    connection.execute(statement("deletion.cancel_jobs"), {"classifier_id": classifier.id})


def drop_vectors(connection: Connection, classifier: Classifier) -> bool:
    """Drop the partitions of the vectors; return False if others kept the table in use, so that nothing was done."""
    parameters = {"classifier_id": classifier.id}
    dropped: bool = connection.execute(statement("deletion.drop_vector_partitions"), parameters).scalar_one()
    return dropped


def some_exemplars(connection: Connection, classifier: Classifier, batch: int) -> IntArray:
    """Return at most so many of the exemplars that are left."""
    parameters = {"classifier_id": classifier.id, "batch": batch}
    return np.array(
        connection.execute(statement("deletion.some_exemplars"), parameters).scalars().all(), dtype=np.int64
    )


def delete_some(connection: Connection, classifier: Classifier, table: str, batch: int) -> int:
    """Delete at most so many rows of a table, or all if there are never many; return how many."""
    parameters = {"classifier_id": classifier.id, "batch": batch}
    return connection.execute(statement(f"deletion.delete_{table}"), parameters).rowcount


def delete_row(connection: Connection, classifier: Classifier) -> bool:
    """Delete the generation itself; return False if something refers to it again.

    The generations that are left get another first one. What was rolled back in that case is to be done again.
    """
    parameters = {"classifier_id": classifier.id}
    savepoint = connection.begin_nested()
    try:
        connection.execute(statement("deletion.release_keys"), parameters)
        connection.execute(statement("deletion.hand_on"), parameters)
        connection.execute(statement("deletion.delete_classifier"), parameters)
    except IntegrityError:
        savepoint.rollback()
        return False
    savepoint.commit()
    return True


def counts(connection: Connection, classifier: Classifier) -> Counter[str]:
    """Return how many rows of each table belong to a generation."""
    rows = connection.execute(statement("deletion.count_rows"), {"classifier_id": classifier.id})
    return Counter({row.name: row.rows for row in rows})
