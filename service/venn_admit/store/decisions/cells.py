"""One cell of the partition map: what a snapshot has there, and some of its points."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row

from venn_admit.store.calibrations.calibrations import Calibration
from venn_admit.store.database.statements import execute


def classes(connection: Connection, calibration: Calibration, match_counts: range, quartile: int) -> Sequence[Row[Any]]:
    """Return the points of a cell by split and true class. match_counts: its values of q. quartile: of d, from 0."""
    return execute(connection, "cells.cell_classes", **_of_cell(calibration, match_counts, quartile)).all()


def points(
    connection: Connection,
    calibration: Calibration,
    match_counts: range,
    quartile: int,
    *,
    after: tuple[bool, int] | None,
    limit: int,
) -> Sequence[Row[Any]]:
    """Return at most `limit` points of a cell, those that are wrong first.

    after: whether the last one before them is right, and its exemplar; None for the first ones.
    """
    is_right, exemplar_id = after or (False, 0)
    parameters = _of_cell(calibration, match_counts, quartile) | {
        "after_right": is_right,
        "after_exemplar": exemplar_id,
        "row_limit": limit,
    }
    return execute(connection, "cells.cell_points", **parameters).all()


def _of_cell(calibration: Calibration, match_counts: range, quartile: int) -> dict[str, Any]:
    return {
        "calibration_id": calibration.id,
        "least_q": match_counts[0],
        "greatest_q": match_counts[-1],
        "quartile": quartile,
    }
