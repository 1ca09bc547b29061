"""The row-versioned points of a calibrator: the open rows, and closing and opening the rows that changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from sqlalchemy import Connection, Engine

from venn_admit.core.calibrators.snapshot_rows import CalibrationRows, changed_rows
from venn_admit.core.method_names import VENN_ADMIT
from venn_admit.core.split_names import Split
from venn_admit.core.types import NO_MATCH_COUNT, CalibrationPoints, IntArray
from venn_admit.store.database.binary_copy import (
    BOOL,
    FLOAT8,
    INT4,
    INT8,
    TEXT,
    Array,
    Column,
    FixedColumn,
    PackedBits,
    copy_in,
    read_columns,
)
from venn_admit.store.database.engine import driver_cursor, unlimited
from venn_admit.store.database.statements import execute

POINT: dict[str, FixedColumn] = {
    "label": INT4,
    "predicted": INT4,
    "match_count": INT4,
    "distance": FLOAT8,
    "score": FLOAT8,
}
"""The columns of a point, by the names of the fields of `CalibrationPoints`."""


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """The rows that a new snapshot wrote: rows closed because they no longer hold, and rows opened.

    before: the rows that were open before; None if they were not read.
    """

    closed: int
    opened: int
    before: CalibrationRows | None = field(default=None, compare=False, repr=False)


def write_changes(
    connection: Connection,
    calibrator_id: int,
    method: str,
    number: int,
    rows: CalibrationRows,
    stored: CalibrationRows | None = None,
    among: IntArray | None = None,
) -> ChangedRows:
    """Make these the open rows from snapshot `number` on, writing only the rows that differ.

    method: of the calibrator; by any other than venn-admit, points have no ADMIT sets. stored: the open rows, if they
    have been read. among: the exemplars whose rows may differ; None for all.
    """
    stored = stored or rows_of(connection, calibrator_id, rows.class_count, undivided=rows.logits is not None)
    changes = changed_rows(stored, rows, among)
    if len(changes.closed_ids):
        parameters = {"calibrator_id": calibrator_id, "number": number, "exemplar_ids": changes.closed_ids}
        execute(connection, "calibration_points.close_points", **parameters)
    if len(changes.opened):
        _append(connection, calibrator_id, method, number, rows, _in_order_of_bands(rows, changes.opened))
    return ChangedRows(closed=len(changes.closed_ids), opened=len(changes.opened), before=stored)


def _in_order_of_bands(rows: CalibrationRows, positions: IntArray) -> IntArray:
    """The order in which rows are written: rows of the same band lie together in the table."""
    order = np.lexsort((rows.points.distance[positions], rows.bins[positions], rows.in_vp[positions]))
    return positions[order]


def rows_of(
    connection: Connection, calibrator_id: int, class_count: int, *, number: int | None = None, undivided: bool = False
) -> CalibrationRows:
    """Return the rows of a snapshot of a calibrator, in no particular order; number: None for the current one.

    undivided: whether its points are, so that they have logits.
    """
    columns = {
        "exemplar_id": INT8,
        "in_vp": BOOL,
        **POINT,
        "bin": INT4,
        "admit_set": PackedBits(class_count),
        "logits": logits_column(class_count, undivided),
    }
    parameters = {"calibrator_id": calibrator_id, "class_count": class_count, "number": number}
    found = read_columns(connection, "calibration_points.rows_of_snapshot", columns, **parameters)
    return CalibrationRows(
        class_count=class_count,
        exemplar_ids=found["exemplar_id"],
        in_vp=found["in_vp"],
        points=points_of(found),
        bins=found["bin"],
        packed_sets=found["admit_set"],
        logits=found["logits"] if undivided else None,
    )


def logits_column(class_count: int, undivided: bool) -> Array:
    """Return the column of logits, which holds a single NaN if points have none."""
    return Array(">f8", class_count if undivided else 1)


def points_of(found: Mapping[str, Any]) -> CalibrationPoints:
    """Return the points in rows with the columns `POINT`."""
    return CalibrationPoints(**{name: found[name] for name in POINT})


def _append(
    connection: Connection, calibrator_id: int, method: str, number: int, rows: CalibrationRows, positions: IntArray
) -> None:
    n, points, in_vp = len(positions), rows.points, rows.in_vp[positions]
    columns: dict[str, tuple[Column, Any]] = {
        "calibrator_id": (INT4, np.full(n, calibrator_id)),
        "exemplar_id": (INT8, rows.exemplar_ids[positions]),
        "valid_from": (INT4, np.full(n, number)),
        "split": (TEXT, np.where(in_vp, Split.VP.encode(), Split.MC.encode()).tolist()),
        **{name: (column, getattr(points, name)[positions]) for name, column in POINT.items()},
        "bin": (INT4, rows.bins[positions]),
        "admit_set": (PackedBits(rows.class_count), rows.packed_sets[positions]),
        **({} if rows.logits is None else {"logits": (logits_column(rows.class_count, True), rows.logits[positions])}),
        "method": (TEXT, [method.encode()] * n),
    }
    has_no_set = ~in_vp if method == VENN_ADMIT else np.ones(n, dtype=np.bool_)
    without_knn = points.match_count[positions] == NO_MATCH_COUNT
    nulls = {"admit_set": has_no_set, "match_count": without_knn, "distance": without_knn}
    copy_in(driver_cursor(connection), "calibration_point", columns, nulls=nulls)


def delete_unheld(connection: Connection, calibrator_id: int) -> None:
    """Delete the rows that no snapshot of the calibrator holds."""
    execute(connection, "calibration_points.delete_unheld_points", calibrator_id=calibrator_id)


class Vacuum(StrEnum):
    """How much of a vacuum is done of the points, by the name of the statement.

    `PAGES` takes a twentieth of the time of `ROWS`: it leaves dead rows in the indices, and the pages that hold some.
    `STATISTICS` refreshes these too, which takes as long as a recalibration of one label; the server does it by itself
    once a tenth of the rows has changed.
    """

    PAGES = "vacuum_pages"
    ROWS = "vacuum_points"
    STATISTICS = "vacuum_and_analyse_points"


def vacuum_points(engine: Engine, how: Vacuum = Vacuum.STATISTICS) -> None:
    """Let band queries read only the index from now on, rather than only after the next autovacuum."""
    with unlimited(engine) as connection:
        execute(connection, f"calibration_points.{how}")
