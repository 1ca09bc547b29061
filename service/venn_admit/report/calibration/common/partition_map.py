"""The partition map: as sentences and a table, and as the cells of a page's table, each with its colour."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from venn_admit.core.evaluation.tallies import MINIMUM_TO_JUDGE, share_interval
from venn_admit.core.monitoring.partitions import PartitionMap
from venn_admit.core.split_names import Split
from venn_admit.report.calibration.report import CalibrationReport
from venn_admit.report.calibration.sections import Section, TextTable, group_names, ratio_text
from venn_admit.report.evaluation.evaluated import edge_names
from venn_admit.report.evaluation.wording import interval_text
from venn_admit.report.wording import MOST_FULL_MATCHES, full_matches_text

QUERY = "partition_map"
# The colours of cells: this many steps below the target, and above it.
_BELOW, _ABOVE = 3, 2


def map_names(found: PartitionMap) -> tuple[list[str], list[str]]:
    """Return the names of the groups of q and of d."""
    return list(edge_names(found.match_edges)), group_names(found.distance_edges.tolist())


def caption(report: CalibrationReport, found: PartitionMap) -> str:
    """Return what the cells of the map show, in words."""
    split, deciding = report.part.reference, report.part.deciding
    traffic = (
        "the last line is the share of recent traffic there"
        if found.traffic.sum()
        else "there is no recent traffic to compare with"
    )
    return (
        f"The partition map: the points of {split} by q and d. Each cell shows the share of the predictions that is "
        f"right, which colours it, and its 95 % interval; the share that {deciding.by} would admit "
        f"({deciding.on_map}); and the number of points; {traffic}."
    )


def map_section(report: CalibrationReport, found: PartitionMap) -> Section:
    """Return the same as a table."""
    split, deciding, traffic = report.part.reference, report.part.deciding, int(found.traffic.sum())
    rows = tuple(
        (
            q_name,
            d_name,
            f"{points:,}",
            ratio_text(right, points),
            _interval_text(right, points),
            ratio_text(admitted, points),
            f"{recent:,}",
            ratio_text(recent, traffic),
        )
        for q_name, d_name, points, right, admitted, recent in _cells(found)
        if points or recent
    )
    heads = ("q", "d", f"points\nof {split}", "right", "95 %\ninterval", "admitted", "recent\ntraffic", "share\nof it")
    return Section(
        "How much is right in each partition",
        (TextTable(heads, rows, query=QUERY),),
        (
            "right: the share of the predictions, whose interval takes points for independent; admitted: the share "
            f"that {deciding.by} would admit ({deciding.on_map}). d is cut at its quartiles over the calibration data. "
            "Partitions without any point are left out.",
            *_full_matches(found, split),
        ),
    )


def _full_matches(found: PartitionMap, split: Split) -> Iterator[str]:
    """What it means if q is K for most points."""
    *_, last, end = found.match_edges
    if last == end - 1 and found.points.any():
        share = float(found.points[-1].sum() / found.points.sum())
        if share > MOST_FULL_MATCHES:
            yield full_matches_text(share, split)


def map_payload(found: PartitionMap) -> dict[str, Any]:
    """Return the map for programs."""
    return {
        "d_edges": found.distance_edges,
        "cells": [
            {
                "q": q_name,
                "d_group": number % found.points.shape[1],
                "points": points,
                "right": right,
                "interval": list(share_interval(right, points)),
                "admitted": admitted,
                "traffic": traffic,
            }
            for number, (q_name, _, points, right, admitted, traffic) in enumerate(_cells(found))
        ],
    }


def _cells(found: PartitionMap) -> Iterator[tuple[str, str, int, int, int, int]]:
    """Yield names and counts of every partition, by q, then by d."""
    match_names, distance_names = map_names(found)
    for row, q_name in enumerate(match_names):
        for column, d_name in enumerate(distance_names):
            counts = (found.points, found.right, found.admitted, found.traffic)
            points, right, admitted, traffic = (int(of[row, column]) for of in counts)
            yield q_name, d_name, points, right, admitted, traffic


@dataclass(frozen=True, slots=True)
class MapCell:
    """A cell. row, column: its group of q and of d. tone: how its share right compares with the target.

    right, interval, admitted and tone are empty if there are too few points to judge.
    """

    row: int
    column: int
    points: int
    right: str
    interval: str
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
        interval=_interval_text(right, points) if is_judged else "",
        admitted=ratio_text(admitted, points) if is_judged else "",
        traffic=ratio_text(int(found.traffic[place]), traffic) if traffic else "",
        tone=tone_of(right / points, target) if is_judged else "",
    )


def _interval_text(right: int, points: int) -> str:
    return interval_text(share_interval(right, points)) if points else "-"
