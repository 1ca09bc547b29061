"""One cell of the partition map: what a snapshot has there, and some of its points."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row

from venn_admit.service.store.calibrations.calibrations import Calibration
from venn_admit.service.store.database.statements import statement


def classes(connection: Connection, calibration: Calibration, match_counts: range, quartile: int) -> Sequence[Row[Any]]:
    """Return the points of a cell by split and true class. match_counts: its values of q. quartile: of d, from 0."""
    return connection.execute(statement("cells.cell_classes"), _place(calibration, match_counts, quartile)).all()


def points(
    connection: Connection, calibration: Calibration, match_counts: range, quartile: int, *, limit: int
) -> Sequence[Row[Any]]:
    """Return at most so many points of a cell, those that are wrong first."""
    parameters = _place(calibration, match_counts, quartile) | {"row_limit": limit}
    return connection.execute(statement("cells.cell_points"), parameters).all()


def _place(calibration: Calibration, match_counts: range, quartile: int) -> dict[str, Any]:
    return {
        "calibration_id": calibration.id,
        "least_q": match_counts[0],
        "greatest_q": match_counts[-1],
        "quartile": quartile,
    }
