"""Charts: that they are drawn, are the same each time, and carry any name there is."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection, LineCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from tests.report.samples import ALPHA, SCRIPTS, made_points
from venn_admit.core.evaluation.tallies import MINIMUM_TO_JUDGE, Verdict
from venn_admit.report.charts import looks
from venn_admit.report.charts.charts import (
    CHARTS,
    save_charts,
    save_png,
    to_svg,
)
from venn_admit.report.charts.looks import PAGE_FONTS, with_drawable_names
from venn_admit.report.evaluation.dataset import DatasetReport, build_dataset_report
from venn_admit.report.evaluation.glance import methods_that_matter
from venn_admit.report.wording import share_text

Build = Callable[[list[tuple[int, int, int]]], DatasetReport]

PNG_START = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("which", ["ten_classes", "many_scripts"])
def test_every_chart_is_saved(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    report: DatasetReport = request.getfixturevalue(which)
    paths = save_charts(report, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)
    assert len(paths) == len(CHARTS) == 6
    assert all(re.fullmatch(r"[\w.-]+\.png", path.name) for path in paths)
    for path in paths:
        content = path.read_bytes()
        assert content.startswith(PNG_START)
        assert len(content) > 20_000


def test_the_same_report_gives_the_same_bytes(sentiment: DatasetReport, tmp_path: Path) -> None:
    first, second = (save_png(CHARTS["coverage"](sentiment), tmp_path / name).read_bytes() for name in ("a", "b"))
    assert first == second
    assert to_svg(CHARTS["coverage"](sentiment), "x", "l") == to_svg(CHARTS["coverage"](sentiment), "x", "l")


def test_svg_keeps_names_of_any_script_as_text_for_the_browser_to_draw(many_scripts: DatasetReport) -> None:
    svg = to_svg(CHARTS["coverage"](many_scripts), "x", "l")
    words = {element.text for element in ET.fromstring(svg).iter("text")}
    assert {*SCRIPTS[:3], SCRIPTS[-1]} <= words
    assert "评价: Share right among admitted points, as more are admitted" in words
    assert set(re.findall(r"font-family: ([^;\"]*)", svg)) == {PAGE_FONTS}


def test_a_name_that_no_font_can_draw_gives_way_to_the_number_of_its_class(
    many_scripts: DatasetReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "_installed", lambda: ("DejaVu Sans",))
    looks._is_drawable.cache_clear()
    drawable = with_drawable_names(many_scripts)
    looks._is_drawable.cache_clear()
    assert drawable.name == "□□"
    # DejaVu Sans, which comes with matplotlib, has Arabic and no Chinese.
    assert drawable.class_names == ("class 0", SCRIPTS[1], "class 2", *SCRIPTS[3:])


def test_a_name_that_looks_like_an_attribute_is_left_as_it_is(hostile: DatasetReport) -> None:
    named = replace(hostile, name='a id="b" url(#c) xmlns="d"')
    assert f"{named.name}: Share right" in to_svg(CHARTS["coverage"](named), "x", "l")


def test_svg_is_an_element_without_outside_reference(hostile: DatasetReport) -> None:
    svg = to_svg(CHARTS["coverage"](hostile), "left", 'a "label" <here>')
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
    figure = CHARTS["coverage"](sentiment)
    left = figure.axes[0]
    dots = {tuple(np.ravel(line.get_xydata())) for line in left.lines if line.get_marker() in {"o", "X"}}
    tallies = sentiment.method("Venn-ADMIT weighted").per_true_class
    for curve, tally in zip(sentiment.coverage.curves_by_true_class, tallies, strict=True):
        # Beside it where marks would lie upon each other.
        assert any(x == pytest.approx(tally.count / curve.total, abs=0.04) and y == tally.share for x, y in dots)


def test_the_mark_shows_the_verdict(two_class_report: Build) -> None:
    # True rare 12 of 62 misses 0.9, predicted rare 12 of 12 cannot tell, true common 95 of 95 meets it.
    report = two_class_report([(0, 0, 12), (0, 1, 50), (1, 1, 95)])
    left, right, *_ = CHARTS["coverage"](report).axes

    def looks_of(axes: Axes) -> dict[float, tuple[object, bool]]:
        single = [line for line in axes.lines if line.get_marker() in {"o", "X"}]
        return {
            round(float(np.ravel(line.get_ydata())[0]), 3): (line.get_marker(), line.get_markerfacecolor() == "white")
            for line in single
        }

    assert looks_of(left) == {0.194: ("X", False), 1.0: ("o", False), 0.682: ("X", False)}
    assert looks_of(right) == {1.0: ("o", True), 0.655: ("X", False), 0.682: ("X", False)}


def bands(axes: Axes) -> list[list[tuple[float, float]]]:
    """The outlines of the bands."""
    filled = [one for one in axes.collections if isinstance(one, FillBetweenPolyCollection)]
    return [[(float(x), float(y)) for x, y in np.asarray(one.get_paths()[0].vertices)] for one in filled]


@pytest.mark.parametrize("which", ["sentiment", "of_documents"])
def test_curves_have_a_band_of_their_intervals(which: str, request: pytest.FixtureRequest) -> None:
    report: DatasetReport = request.getfixturevalue(which)
    left, right, *_ = CHARTS["coverage"](report).axes
    for axes, curves, of_class in (
        (left, report.coverage.curves_by_true_class, report.coverage.bands_by_true_class),
        (right, report.coverage.curves_by_predicted_class, report.coverage.bands_by_predicted_class),
    ):
        drawn = bands(axes)
        series = [(curves[c], of_class[c]) for c in range(2)] + [
            (report.coverage.curve_overall, report.coverage.band_overall)
        ]
        assert len(drawn) == len(series)
        for outline, (curve, band) in zip(drawn, series, strict=True):
            assert band.count[0] >= MINIMUM_TO_JUDGE
            for x, low, high in zip(band.count / curve.total, band.low, band.high, strict=True):
                assert {(float(x), float(low)), (float(x), float(high))} <= set(outline)


def test_of_many_classes_one_band_is_drawn_and_an_interval_at_each_mark(hostile: DatasetReport) -> None:
    left, *_ = CHARTS["coverage"](hostile).axes
    assert len(bands(left)) == 1
    bars = [one.get_segments()[0] for one in left.collections if isinstance(one, LineCollection)]
    tallies = [hostile.method("Venn-ADMIT weighted").per_true_class[c] for c in hostile.shown_classes()]
    assert {(float(bar[0][1]), float(bar[1][1])) for bar in bars} >= {tally.interval for tally in tallies}


def marks(axes: Axes) -> list[tuple[float, float, bool]]:
    """Where the marks with intervals lie, and whether each is hollow."""
    drawn = [container.lines[0] for container in axes.containers if isinstance(container, ErrorbarContainer)]
    return [
        (float(x), float(y), line.get_markerfacecolor() == "white")
        for line in drawn
        for x, y in np.asarray(line.get_xydata())
    ]


def shares(axes: Axes) -> list[tuple[float, float, object, bool]]:
    """The rows and the shares that are marked, with the marker, and whether it is hollow."""
    return [
        (float(y), float(x), line.get_marker(), line.get_markerfacecolor() == "white")
        for line in axes.lines
        if line.get_marker() not in {"None", None, ""}
        for x, y in np.asarray(line.get_xydata())
    ]


def test_methods_that_matter_have_a_row_with_what_they_admit_and_how_much_is_right(selective: DatasetReport) -> None:
    admitted, overall, true, predicted = CHARTS["methods"](selective).axes
    rows = methods_that_matter(selective)
    names = [label.get_text() for label in admitted.get_yticklabels()]
    assert names == [row.name for row in rows]
    assert names[0] == selective.own
    assert {"KNN", "softmax >= 1 - alpha", "APS", "SGR", "Venn-Abers network", "certified"} < set(names)
    assert not {"RAPS size", "Conf_BASE", "LocalConf_BASE", "ADMIT"} & set(names)
    assert [text.get_text() for text in admitted.texts] == [share_text(row.singletons.overall.portion) for row in rows]
    drawn = {y: (x, marker, hollow) for y, x, marker, hollow in shares(overall)}
    for place, row in zip(reversed(range(len(rows))), rows, strict=True):
        tally = row.singletons.overall
        assert (place in drawn) == bool(tally.count)
        if tally.count:
            x, marker, hollow = drawn[place]
            assert x == tally.share
            assert (marker == "X") == (tally.verdict(ALPHA) is Verdict.MISSED)
            assert hollow == (tally.verdict(ALPHA) is Verdict.CANNOT_TELL)
    for axes, worst in ((true, "per_true_class"), (predicted, "per_predicted_class")):
        expected = [min((t.share for t in getattr(row.singletons, worst) if t.count), default=None) for row in rows]
        assert sorted(x for _, x, _, _ in shares(axes)) == sorted(share for share in expected if share is not None)


def test_risk_is_drawn_against_coverage_with_what_is_admitted(selective: DatasetReport) -> None:
    figure = CHARTS["risk"](selective)
    (axes,) = figure.axes
    curves = [line for line in axes.lines if len(np.asarray(line.get_xdata())) > 2]
    assert len(curves) == len(selective.risk_curves)
    wrong = {row.name: 1 - row.accuracy.tallies.overall.share for row in selective.accuracy}
    ends = [float(np.asarray(line.get_ydata())[-1]) for line in curves if np.asarray(line.get_xdata())[-1] == 1]
    assert ends == pytest.approx([wrong["network"]] * 3)
    bars = [one for one in axes.containers if isinstance(one, ErrorbarContainer)]
    drawn = {tuple(point) for one in bars for point in np.asarray(one.lines[0].get_xydata()).tolist()}
    expected = {
        "softmax >= 1 - alpha",
        "SGR",
        "Venn-Abers network",
        "Venn-Abers reliability",
        "on average",
        "Venn-ADMIT weighted",
    }
    assert drawn == {
        (row.singletons.overall.portion, 1 - row.singletons.overall.share)
        for row in selective.methods
        if row.name in expected
    }
    named = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(named) == 8
    for measured in selective.risk_curves:
        assert f"{measured.name}, area {share_text(measured.area)}" in named


def test_the_worst_class_is_one_with_enough_points(two_class_report: Build) -> None:
    # True rare 4 of 9, which is too few to judge; true common 90 of 95.
    report = two_class_report([(0, 0, 4), (0, 1, 5), (1, 1, 90), (1, 0, 5), (1, -1, 5)])
    _, _, true, _ = CHARTS["methods"](report).axes
    assert {share for _, share, _, _ in shares(true)} >= {90 / 95}
    assert 4 / 9 not in {share for _, share, _, _ in shares(true)}


def test_too_few_points_do_not_set_the_limits(two_class_report: Build) -> None:
    # True rare: 1 of 8, which no axis needs to reach down to. True common: 90 of 92.
    report = two_class_report([(0, 0, 1), (0, 1, 7), (1, 1, 190), (1, 0, 2)])
    alone = two_class_report([(1, 1, 190), (1, 0, 2)])
    few, judged = CHARTS["methods"](report), CHARTS["methods"](alone)
    least, _ = few.axes[1].get_xlim()
    assert least == pytest.approx(judged.axes[1].get_xlim()[0], abs=0.06)
    # Predicted rare, 1 of 3, is the worst class of no method; of few points, it is drawn only if all are.
    everything = CHARTS["methods"](two_class_report([(0, 0, 1), (0, 1, 7)]))
    assert everything.axes[1].get_xlim()[0] <= 1 / 8


def test_too_few_are_hollow_and_no_admitted_point_is_no_mark(
    of_few_documents: DatasetReport, two_class_report: Build
) -> None:
    for axes in CHARTS["methods"](of_few_documents).axes[1:]:
        found = shares(axes)
        assert len(found) == len(methods_that_matter(of_few_documents))
        assert all((x, hollow) == (1.0, True) for _, x, _, hollow in found)
        assert all((line.get_alpha() or 1) < 1 for line in axes.lines if line.get_marker() == "o")
    overall = CHARTS["methods"](two_class_report([(0, -1, 30), (1, -1, 30)])).axes[1]
    assert [(x, marker) for _, x, marker, _ in shares(overall)] == [(0.5, "X")]


def test_reliability_has_a_panel_a_bound(of_documents: DatasetReport) -> None:
    lower, below, upper, _ = CHARTS["reliability"](of_documents).axes
    assert below.get_xlabel() == "lower probability of the predicted class"
    for axes, measured in ((lower, of_documents.reliability_lower), (upper, of_documents.reliability_upper)):
        expected = {
            (bins.mean_probability[i] + aside, bins.frequency[i], bool(bins.few[i]))
            for bins, aside in ((measured["plain"], -0.008), (measured["weighted"], 0.008))
            for i in np.flatnonzero(bins.count)
        }
        assert set(marks(axes)) == expected
        assert {hollow for _, _, hollow in expected} == {True, False}


def test_cells_of_the_heat_map_say_how_many(sentiment: DatasetReport) -> None:
    assert sentiment.grid is not None
    words = [text.get_text() for text in CHARTS["heatmap"](sentiment).axes[0].texts]
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
