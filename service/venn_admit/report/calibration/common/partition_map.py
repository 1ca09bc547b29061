"""The partition map of a report: what is right, what is admitted and where recent traffic lies, by q and d."""

from collections.abc import Iterator
from typing import Any

from venn_admit.core.monitoring.partitions import PartitionMap
from venn_admit.core.types import Split
from venn_admit.report.calibration.contents import CalibrationReport
from venn_admit.report.calibration.sections import Section, TextTable, group_names, ratio_text
from venn_admit.report.evaluation.evaluated import edge_names

QUERY = "partition_map"
HOW_ADMITTED = {
    Split.VP: "each point of vp is left out of its own category",
    Split.MC: "by the bounds of the calibration itself, which rest on these very points",
}


def map_names(found: PartitionMap) -> tuple[list[str], list[str]]:
    """Return the names of the groups of q and of d."""
    return list(edge_names(found.match_edges)), group_names(found.distance_edges.tolist())


def caption(report: CalibrationReport, found: PartitionMap) -> str:
    """Return what the cells of the map show, in words."""
    split = report.part.reference
    traffic = (
        "the last line is the share of recent traffic there"
        if found.traffic.sum()
        else "there is no recent traffic to compare with"
    )
    return (
        f"The partition map: the points of {split} by q and d. Each cell shows the share of the predictions that is "
        f"right, which colours it; the share that plain probabilities would admit ({HOW_ADMITTED[split]}); and the "
        f"number of points; {traffic}."
    )


def map_section(report: CalibrationReport, found: PartitionMap) -> Section:
    """Return the same as a table."""
    split, traffic = report.part.reference, int(found.traffic.sum())
    rows = tuple(
        (
            q_name,
            d_name,
            f"{points:,}",
            ratio_text(right, points),
            ratio_text(admitted, points),
            f"{recent:,}",
            ratio_text(recent, traffic),
        )
        for q_name, d_name, points, right, admitted, recent in _cells(found)
        if points or recent
    )
    heads = ("q", "d", f"points\nof {split}", "right", "admitted", "recent\ntraffic", "share\nof it")
    return Section(
        "How much is right in each partition",
        (TextTable(heads, rows, query=QUERY),),
        (
            "right: the share of the predictions; admitted: the share that plain probabilities would admit, "
            f"{HOW_ADMITTED[split]}. d is cut at its quartiles over the calibration data. Partitions without any point "
            "are left out.",
        ),
    )


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
