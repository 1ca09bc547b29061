"""Charts: that they are drawn, are the same each time, and carry any name there is."""

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from service.report.charts import (
    CHARTS,
    coverage_figure,
    heatmap_figure,
    methods_figure,
    reliability_figure,
    save_charts,
    save_png,
    to_svg,
)
from service.report.dataset import DatasetReport, build_dataset_report
from tests.report.samples import ALPHA, made_points

Build = Callable[[list[tuple[int, int, int]]], DatasetReport]

PNG_START = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("which", ["hostile", "ten_classes"])
def test_every_chart_is_saved(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    report: DatasetReport = request.getfixturevalue(which)
    paths = save_charts(report, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)
    assert len(paths) == len(CHARTS) == 5
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


def marks(axes: Axes) -> list[tuple[float, float, bool]]:
    """Where the marks with intervals lie, and whether each is hollow."""
    drawn = [container.lines[0] for container in axes.containers if isinstance(container, ErrorbarContainer)]
    return [
        (float(x), float(y), line.get_markerfacecolor() == "white")
        for line in drawn
        for x, y in np.asarray(line.get_xydata())
    ]


def test_a_method_lies_at_its_admitted_share_and_share_correct(compared: DatasetReport) -> None:
    overall, true, predicted = methods_figure(compared).axes
    assert marks(overall) == [
        (row.singletons.overall.portion, row.singletons.overall.share, False) for row in compared.methods
    ]
    for axes in (overall, true, predicted):
        assert sorted(int(text.get_text()) for text in axes.texts) == list(range(1, 12))
    for row, (admitted, share, _) in zip(compared.methods, marks(true), strict=True):
        worst = min(range(2), key=lambda c: row.singletons.per_true_class[c].share)
        tally = row.singletons.per_true_class[worst]
        assert (admitted, share) == (tally.count / row.coverage.per_true_class[worst].count, tally.share)


def test_the_worst_class_is_one_with_enough_points(two_class_report: Build) -> None:
    # True rare 4 of 9, which is too few to judge; true common 90 of 95.
    report = two_class_report([(0, 0, 4), (0, 1, 5), (1, 1, 90), (1, 0, 5), (1, -1, 5)])
    _, true, _ = methods_figure(report).axes
    assert marks(true)[-1] == (95 / 100, 90 / 95, False)


def test_too_few_are_hollow_and_no_admitted_point_is_no_mark(
    of_few_documents: DatasetReport, two_class_report: Build
) -> None:
    for axes in methods_figure(of_few_documents).axes:
        assert marks(axes) == [(1.0, 1.0, True)] * 6
    overall, *_ = methods_figure(two_class_report([(0, -1, 30), (1, -1, 30)])).axes
    assert len(marks(overall)) == 1
    assert [text.get_text() for text in overall.texts] == ["1"]


def test_reliability_has_a_panel_a_bound(of_documents: DatasetReport) -> None:
    lower, below, upper, _ = reliability_figure(of_documents).axes
    assert below.get_xlabel() == "lower probability of the predicted class"
    for axes, measured in ((lower, of_documents.reliability_lower), (upper, of_documents.reliability_upper)):
        expected = {
            (bins.mean_probability[i], bins.frequency[i], bool(bins.few[i]))
            for bins in measured.values()
            for i in np.flatnonzero(bins.count)
        }
        assert set(marks(axes)) == expected
        assert {hollow for _, _, hollow in expected} == {True, False}


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
