"""The row-versioned points of a calibrator: the open rows, and closing and opening the rows that changed."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, Engine

from venn_admit.core.calibrators.snapshot_rows import CalibrationRows, changed_rows
from venn_admit.core.method_names import VENN_ADMIT
from venn_admit.core.types import NO_MATCH_COUNT, CalibrationPoints, IntArray, Split
from venn_admit.store.database.binary_copy import (
    BOOL,
    FLOAT8,
    INT4,
    INT8,
    TEXT,
    Column,
    FixedColumn,
    PackedBits,
    copy_in,
    copy_out_whole,
    driver_cursor,
)
from venn_admit.store.database.engine import unlimited
from venn_admit.store.database.statements import copy_query, statement


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """The rows that a new snapshot wrote: rows closed because they no longer hold, and rows opened."""

    closed: int
    opened: int


def write_changes(
    connection: Connection, calibrator_id: int, method: str, number: int, rows: CalibrationRows
) -> ChangedRows:
    """Make these the open rows from snapshot `number` on, writing only the rows that differ.

    method: of the calibrator; by any other than venn-admit, points have no ADMIT sets.
    """
    changes = changed_rows(open_rows(connection, calibrator_id, rows.class_count), rows)
    if len(changes.closed_ids):
        parameters = {"calibrator_id": calibrator_id, "number": number, "exemplar_ids": changes.closed_ids.tolist()}
        connection.execute(statement("calibration_points.close_points"), parameters)
    if len(changes.opened):
        _append(connection, calibrator_id, method, number, rows, _in_order_of_bands(rows, changes.opened))
    return ChangedRows(closed=len(changes.closed_ids), opened=len(changes.opened))


def _in_order_of_bands(rows: CalibrationRows, positions: IntArray) -> IntArray:
    """The order in which rows are written: rows of the same band lie together in the table."""
    order = np.lexsort((rows.points.distance[positions], rows.bins[positions], rows.in_vp[positions]))
    return positions[order]


def open_rows(connection: Connection, calibrator_id: int, class_count: int) -> CalibrationRows:
    """Return the rows of a calibrator's current snapshot, in no particular order."""
    columns: dict[str, FixedColumn] = {
        "exemplar_id": INT8,
        "in_vp": BOOL,
        "label": INT4,
        "predicted": INT4,
        "match_count": INT4,
        "bin": INT4,
        "distance": FLOAT8,
        "score": FLOAT8,
        "admit_set": PackedBits(class_count),
    }
    parameters = {"calibrator_id": calibrator_id, "class_count": class_count}
    query = copy_query("calibration_points.open_points")
    found = copy_out_whole(driver_cursor(connection), query, parameters, columns)
    return CalibrationRows(
        class_count=class_count,
        exemplar_ids=found["exemplar_id"],
        in_vp=found["in_vp"],
        points=CalibrationPoints(
            label=found["label"].astype(np.int64),
            predicted=found["predicted"].astype(np.int64),
            match_count=found["match_count"].astype(np.int64),
            distance=found["distance"],
            score=found["score"],
        ),
        bins=found["bin"].astype(np.int64),
        packed_sets=found["admit_set"],
    )


def _append(
    connection: Connection, calibrator_id: int, method: str, number: int, rows: CalibrationRows, positions: IntArray
) -> None:
    n, points, in_vp = len(positions), rows.points, rows.in_vp[positions]
    columns: dict[str, Column] = {
        "calibrator_id": INT4,
        "exemplar_id": INT8,
        "valid_from": INT4,
        "split": TEXT,
        "label": INT4,
        "predicted": INT4,
        "match_count": INT4,
        "bin": INT4,
        "distance": FLOAT8,
        "score": FLOAT8,
        "admit_set": PackedBits(rows.class_count),
        "method": TEXT,
    }
    values: dict[str, Any] = {
        "calibrator_id": np.full(n, calibrator_id),
        "exemplar_id": rows.exemplar_ids[positions],
        "valid_from": np.full(n, number),
        "split": np.where(in_vp, Split.VP.encode(), Split.MC.encode()).tolist(),
        "label": points.label[positions],
        "predicted": points.predicted[positions],
        "match_count": points.match_count[positions],
        "bin": rows.bins[positions],
        "distance": points.distance[positions],
        "score": points.score[positions],
        "admit_set": rows.packed_sets[positions],
        "method": [method.encode()] * n,
    }
    has_no_set = ~in_vp if method == VENN_ADMIT else np.ones(n, dtype=np.bool_)
    without_knn = values["match_count"] == NO_MATCH_COUNT
    nulls = {"admit_set": has_no_set, "match_count": without_knn, "distance": without_knn}
    copy_in(driver_cursor(connection), "calibration_point", columns, values, nulls=nulls)


def delete_unheld(connection: Connection, calibrator_id: int) -> None:
    """Delete the rows that no snapshot of the calibrator holds."""
    connection.execute(statement("calibration_points.delete_unheld_points"), {"calibrator_id": calibrator_id})


def vacuum_points(engine: Engine) -> None:
    """Let band queries read only the index from now on, rather than only after the next autovacuum."""
    with unlimited(engine) as connection:
        connection.execute(statement("calibration_points.vacuum_points"))
