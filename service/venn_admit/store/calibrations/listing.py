"""What is told of snapshots without reading them: their numbers, since when each was in use, and what was not."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Row

from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars.classifiers import Classifier


def summaries(
    connection: Connection,
    classifier: Classifier,
    *,
    limit: int,
    before: int | None = None,
    calibration_id: int | None = None,
) -> Sequence[Row[Any]]:
    """Return the newest snapshots of a classifier, newest first: setting, time, reason and number of points.

    before: a snapshot; only older ones are wanted. calibration_id: the only one that is wanted.
    """
    parameters = {
        "classifier_id": classifier.id,
        "row_limit": limit,
        "before": before,
        "calibration_id": calibration_id,
    }
    return execute(connection, "calibrations.calibrations", **parameters).all()


def uses(connection: Connection, classifier: Classifier, *, limit: int) -> Sequence[Row[Any]]:
    """Return which snapshots were in use, the newest first: since and until when, who put them in use, and why."""
    return execute(connection, "in_use.uses", name=classifier.name, row_limit=limit).all()


def withheld(connection: Connection, classifier: Classifier) -> Sequence[Row[Any]]:
    """Return what was found of the snapshots that are stored and were never put in use, the newest first."""
    return execute(connection, "in_use.withheld", name=classifier.name).all()


def looks(connection: Connection, classifier: Classifier) -> Sequence[Row[Any]]:
    """Return every certificate that looked at the held-out labels of a classifier, each once, the newest first.

    With each comes the confidence that it and those before it hold together.
    """
    return execute(connection, "certificates.looks", first_id=classifier.first_id).all()


def spent(connection: Connection, classifier: Classifier) -> tuple[int, Decimal]:
    """Return how many certificates looked at the held-out labels of a classifier, and the sum of 1 - confidence."""
    row = execute(connection, "certificates.spent", first_id=classifier.first_id).one()
    return row.looks, row.spent
