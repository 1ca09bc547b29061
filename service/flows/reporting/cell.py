"""One cell of the partition map, opened: its points by class, with their thresholds, and some of its exemplars."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, Row

from venn_admit.service.core.monitoring.partition_map import map_rows
from venn_admit.service.errors import NotFoundError
from venn_admit.service.store.calibrations import calibrations
from venn_admit.service.store.database.engine import consistent_view
from venn_admit.service.store.decisions import cells, reports
from venn_admit.service.store.exemplars import classifiers

SHOWN_POINTS = 100
QUARTILES = 4


@dataclass(frozen=True, slots=True)
class OpenedCell:
    """A cell of the map of a calibration.

    match_counts: its values of q. distances: from which d, up to which, not included. classes: its points by split and
    true class. points: at most `SHOWN_POINTS` of them, those that are wrong first.
    """

    calibration: int
    class_names: tuple[str, ...]
    match_counts: range
    distances: tuple[float, float]
    classes: Sequence[Row[Any]]
    points: Sequence[Row[Any]]


def open_cell(engine: Engine, name: str, calibration_id: int, row: int, column: int) -> OpenedCell:
    """Return a cell. row, column: its group of q and of d, each from 0, as in the map.

    Raises NotFoundError if there is no such classifier, calibration or cell.
    """
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        calibration = calibrations.by_id(connection, classifier, calibration_id)
        quartiles = reports.quartiles(connection, calibration)
        if quartiles is None:
            raise NotFoundError(f"calibration {calibration_id} has no partition map, because there are no vectors")
        edges = (
            *map_rows(calibration.method_settings.bin_edges, classifier.neighbour_count),
            classifier.neighbour_count + 1,
        )
        if not (0 <= row < len(edges) - 1 and 0 <= column < QUARTILES):
            raise NotFoundError(f"the map has {len(edges) - 1} by {QUARTILES} cells, and none at {row}, {column}")
        match_counts = range(edges[row], edges[row + 1])
        bounds = (0.0, *quartiles.tolist(), float("inf"))
        return OpenedCell(
            calibration=calibration.id,
            class_names=classifier.class_names,
            match_counts=match_counts,
            distances=(bounds[column], bounds[column + 1]),
            classes=cells.classes(connection, calibration, match_counts, column),
            points=cells.points(connection, calibration, match_counts, column, limit=SHOWN_POINTS),
        )
