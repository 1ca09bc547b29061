"""Charts: that they are drawn, are the same each time, and carry any name there is."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib.figure import Figure

from service.report.charts import CHARTS, coverage_figure, heatmap_figure, save_charts, save_png, to_svg
from service.report.dataset import DatasetReport, build_dataset_report
from tests.report.samples import ALPHA, made_points

PNG_START = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("which", ["sentiment", "hostile"])
def test_every_chart_is_saved(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    report: DatasetReport = request.getfixturevalue(which)
    paths = save_charts(report, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)
    assert len(paths) == len(CHARTS) == 4
    assert all(re.fullmatch(r"[\w.-]+\.png", path.name) for path in paths)
    for path in paths:
        content = path.read_bytes()
        assert content.startswith(PNG_START)
        assert len(content) > 20_000


def test_the_same_report_gives_the_same_bytes(sentiment: DatasetReport, tmp_path: Path) -> None:
    first, second = (save_png(coverage_figure(sentiment), tmp_path / name).read_bytes() for name in ("a", "b"))
    assert first == second
    assert to_svg(coverage_figure(sentiment), "x", "l") == to_svg(coverage_figure(sentiment), "x", "l")


def test_svg_is_an_element_without_outside_reference(hostile: DatasetReport) -> None:
    svg = to_svg(coverage_figure(hostile), "left", 'a "label" <here>')
    root = ET.fromstring(svg)
    assert (root.tag, root.get("role"), root.get("aria-label")) == ("svg", "img", 'a "label" <here>')
    assert "http" not in svg
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    assert all(str(name).startswith("left-") for name in ids)
    referred = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg))
    assert referred
    assert {a or b for a, b in referred} <= set(ids)


def test_the_dot_lies_where_the_table_says(sentiment: DatasetReport) -> None:
    figure = coverage_figure(sentiment)
    left = figure.axes[0]
    dots = {tuple(np.ravel(line.get_xydata())) for line in left.lines if line.get_marker() == "o"}
    tallies = sentiment.method("Venn-ADMIT weighted").per_true_class
    for curve, tally in zip(sentiment.curves_by_true_class, tallies, strict=True):
        assert (tally.count / curve.total, tally.share) in dots


def test_cells_of_the_heat_map_say_how_many(sentiment: DatasetReport) -> None:
    words = [text.get_text() for text in heatmap_figure(sentiment).axes[0].texts]
    assert len(words) == sentiment.grid.count.size
    for count, correct in zip(sentiment.grid.count.flat, sentiment.grid.correct.flat, strict=True):
        if count >= 10:
            assert any(word.endswith(f"n = {count}") and "few" not in word for word in words)
        elif count:
            assert f"too few\nn = {count}" in words
        assert correct <= count


@pytest.mark.parametrize("chart", CHARTS)
def test_an_evaluation_set_with_nothing_to_draw_is_drawn(chart: str, tmp_path: Path) -> None:
    points = made_points(label=[1], predicted=[0], decision=[-1], class_count=2)
    report = build_dataset_report("one", ("a", "b"), points, 5, ALPHA)
    figure = CHARTS[chart](report)
    assert isinstance(figure, Figure)
    assert save_png(figure, tmp_path / "one.png", dots_per_inch=40).stat().st_size > 1000
