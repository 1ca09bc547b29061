"""Each share right of the partition map stands with its interval, on a terminal, on the page and in JSON."""

import numpy as np
import pytest

from tests.report.test_calibration_report import made_report, shown
from venn_admit.cli.advice import command
from venn_admit.core.evaluation.tallies import MINIMUM_TO_JUDGE, wilson_interval
from venn_admit.report.calibration.common.partition_map import map_table
from venn_admit.report.calibration.payload import calibration_payload
from venn_admit.report.evaluation.wording import interval_text
from venn_admit.report.pages.calibration import render_calibration


@pytest.mark.usefixtures("blank_charts")
def test_every_share_right_has_its_interval() -> None:
    report = made_report(("red", "green"))
    assert report.map is not None
    counts = list(zip(report.map.right.ravel().tolist(), report.map.points.ravel().tolist(), strict=True))
    ends = [wilson_interval(right, points) for right, points in counts]
    intervals = [(float(low), float(high)) for low, high in ends]
    assert [tuple(cell["interval"]) for cell in calibration_payload(report, command)["map"]["cells"]] == intervals
    terminal, page = shown(report), render_calibration(report, command)
    for (_, points), interval in zip(counts, intervals, strict=True):
        if points:
            assert interval_text(interval) in terminal
            assert f"<td>{interval_text(interval)}</td>" in page
        if points >= MINIMUM_TO_JUDGE:
            assert f"<span>{interval_text(interval)}</span>" in page


def test_a_cell_with_too_few_points_has_no_interval() -> None:
    report = made_report(("red", "green"))
    assert report.map is not None
    points = np.zeros_like(report.map.points)
    points[0, 0] = MINIMUM_TO_JUDGE - 1
    report.map.points[:], report.map.right[:] = points, points
    cells = [cell for _, row in map_table(report, report.map).rows for cell in row]
    assert {(cell.right, cell.interval, cell.tone) for cell in cells} == {("", "", "")}
