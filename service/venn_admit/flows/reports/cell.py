"""One cell of the partition map, opened: its points by class, with their thresholds, and some of its exemplars."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, Row

from venn_admit.core.monitoring.partitions import map_rows
from venn_admit.errors import NotFoundError
from venn_admit.store.calibrations import calibrations
from venn_admit.store.database.engine import consistent_view
from venn_admit.store.decisions import cells, reports
from venn_admit.store.exemplars import classifiers

SHOWN_POINTS = 100
QUARTILES = 4


@dataclass(frozen=True, slots=True)
class OpenedCell:
    """A cell of the map of a calibration.

    match_counts: its values of q. distances: from which d, up to which, not included. classes: its points by split and
    true class; none on later pages of its points. points: at most `SHOWN_POINTS` of them, those that are wrong first.
    has_more: whether more follow.
    """

    calibration: int
    class_names: tuple[str, ...]
    match_counts: range
    distances: tuple[float, float]
    classes: Sequence[Row[Any]]
    points: Sequence[Row[Any]]
    has_more: bool


def open_cell(
    engine: Engine,
    name: str,
    calibration_id: int,
    row: int,
    column: int,
    *,
    after: tuple[bool, int] | None = None,
) -> OpenedCell:
    """Return a cell.

    Args:
        row: Its group of q, from 0, as in the map.
        column: Its group of d, from 0, as in the map.
        after: Whether the last point of the page before is right, and its exemplar; None for the first page.

    Raises:
        NotFoundError: There is no such classifier, calibration or cell.
    """
    with consistent_view(engine) as connection:
        classifier = classifiers.by_name(connection, name)
        calibration = calibrations.by_id(connection, classifier, calibration_id)
        quartiles = reports.quartiles(connection, calibration)
        if quartiles is None:
            raise NotFoundError(f"calibration {calibration_id} has no partition map, because there are no vectors")
        edges = (
            *map_rows(calibration.method_settings.q_bins, classifier.neighbour_count),
            classifier.neighbour_count + 1,
        )
        if not (0 <= row < len(edges) - 1 and 0 <= column < QUARTILES):
            raise NotFoundError(f"the map has {len(edges) - 1} by {QUARTILES} cells, and none at {row}, {column}")
        match_counts = range(edges[row], edges[row + 1])
        bounds = (0.0, *quartiles.tolist(), float("inf"))
        points = cells.points(connection, calibration, match_counts, column, after=after, limit=SHOWN_POINTS + 1)
        return OpenedCell(
            calibration=calibration.id,
            class_names=classifier.class_names,
            match_counts=match_counts,
            distances=(bounds[column], bounds[column + 1]),
            classes=cells.classes(connection, calibration, match_counts, column) if after is None else (),
            points=points[:SHOWN_POINTS],
            has_more=len(points) > SHOWN_POINTS,
        )
