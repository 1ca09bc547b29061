"""The partition map of a page: the cells of a table, each with its colour."""

from dataclasses import dataclass

from venn_admit.core.evaluation.tallies import MINIMUM_TO_JUDGE
from venn_admit.core.monitoring.partitions import PartitionMap
from venn_admit.report.calibration.common.partition_map import caption, map_names
from venn_admit.report.calibration.contents import CalibrationReport
from venn_admit.report.calibration.sections import ratio_text

# The colours of cells: this many steps below the target, and above it.
_BELOW, _ABOVE = 3, 2


@dataclass(frozen=True, slots=True)
class MapCell:
    """A cell. row, column: its group of q and of d. tone: how its share right compares with the target."""

    row: int
    column: int
    points: int
    right: str
    admitted: str
    traffic: str
    tone: str


@dataclass(frozen=True, slots=True)
class MapTable:
    """A map. rows: from many matching neighbours to few, each with its name and its cells from near to far."""

    classifier: str
    calibration: int
    split: str
    target: str
    columns: list[str]
    caption: str
    rows: list[tuple[str, list[MapCell]]]


def map_table(report: CalibrationReport, found: PartitionMap) -> MapTable:
    """Return the map as a table shows it."""
    target = float(1 - report.snapshot.alpha)
    match_names, distance_names = map_names(found)
    rows = [
        (name, [_cell(found, row, column, target) for column in range(len(distance_names))])
        for row, name in enumerate(match_names)
    ]
    return MapTable(
        classifier=report.classifier,
        calibration=report.snapshot.id,
        split=str(report.part.reference),
        target=str(1 - report.snapshot.alpha),
        columns=distance_names,
        caption=caption(report, found),
        rows=rows[::-1],
    )


def tone_of(right: float, target: float) -> str:
    """Return the step of colour of a share right: `below-3` is the worst, `above-2` the best.

    >>> [tone_of(right, 0.9) for right in (0.1, 0.75, 0.85, 0.9, 0.99)]
    ['below-3', 'below-2', 'below-1', 'above-1', 'above-2']
    """
    if right < target:
        return f"below-{min(_BELOW, 1 + int(10 * (target - right)))}"
    return f"above-{min(_ABOVE, 1 + int(_ABOVE * (right - target) / max(1 - target, 1e-9)))}"


def _cell(found: PartitionMap, row: int, column: int, target: float) -> MapCell:
    place = (row, column)
    points, right, admitted = (int(of[place]) for of in (found.points, found.right, found.admitted))
    traffic = int(found.traffic.sum())
    is_judged = points >= MINIMUM_TO_JUDGE
    return MapCell(
        row=row,
        column=column,
        points=points,
        right=ratio_text(right, points) if is_judged else "",
        admitted=ratio_text(admitted, points) if is_judged else "",
        traffic=ratio_text(int(found.traffic[place]), traffic) if traffic else "",
        tone=tone_of(right / points, target) if is_judged else "",
    )
