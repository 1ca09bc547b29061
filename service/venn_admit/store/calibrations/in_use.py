"""Which snapshot a classifier decides with, since when, and why others are stored and not in use."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from venn_admit.core.comparison.strength import AdmittedPoints, Strength
from venn_admit.store.database.binary_copy import BOOL, INT8, read_columns
from venn_admit.store.database.statements import execute
from venn_admit.store.exemplars.classifiers import Classifier

if TYPE_CHECKING:
    from venn_admit.store.calibrations.calibrations import Calibration


def lock(connection: Connection, classifier: Classifier) -> None:
    """Wait until nobody else decides what is in use of a classifier; held to the end of the transaction."""
    execute(connection, "in_use.lock", classifier_id=classifier.id)


def current(connection: Connection, calibrator_id: int) -> int | None:
    """Return the current snapshot of a calibrator; None if none was ever put in use."""
    return execute(connection, "in_use.current_calibration", calibrator_id=calibrator_id).scalar_one_or_none()


def judged(connection: Connection, calibration_id: int) -> AdmittedPoints:
    """Return which of its calibration points a snapshot would admit."""
    columns = {"exemplar_id": INT8, "is_admitted": BOOL}
    found = read_columns(connection, "in_use.judged_points", columns, calibration_id=calibration_id)
    return AdmittedPoints(found["exemplar_id"], found["is_admitted"])


def add_withheld(connection: Connection, calibration_id: int, in_use_id: int, found: Strength) -> None:
    """Store why a new snapshot is not put in use."""
    execute(
        connection,
        "in_use.add_withheld",
        calibration_id=calibration_id,
        in_use_id=in_use_id,
        points=found.points,
        share=found.share,
        share_in_use=found.share_in_use,
    )


def add_use(
    connection: Connection, classifier: Classifier, calibration: "Calibration", *, asked: Mapping[str, Any], reason: str
) -> None:
    """Add to the history that a snapshot is in use from now on; asked: the columns that say who asked for it."""
    execute(
        connection,
        "in_use.add_use",
        classifier_id=classifier.id,
        calibrator_id=calibration.calibrator_id,
        calibration_id=calibration.id,
        reason=reason,
        **asked,
    )
