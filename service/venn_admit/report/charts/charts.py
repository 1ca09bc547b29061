"""Figures of one evaluation set, and how they become PNG files and SVG elements."""

import re
import warnings
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from html import escape
from io import StringIO
from itertools import repeat
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure, FigureBase

from venn_admit.report.charts.drawing import draw_coverage, draw_heatmap, draw_reliability
from venn_admit.report.charts.drawn_methods import draw_methods, draw_risk, draw_table
from venn_admit.report.charts.looks import PAGE_FONTS, drawing_fonts, themed, with_drawable_names
from venn_admit.report.evaluation.dataset import ClassCoverage, DatasetReport
from venn_admit.report.evaluation.tables import evaluation_tables
from venn_admit.report.evaluation.verdicts import answer, headline
from venn_admit.report.evaluation.wording import extent, reservations

TITLES = {
    "methods": "What is admitted, and how much of it is right",
    "coverage": "Share right among admitted points, as more are admitted",
    "reliability": "Lower and upper probability against observed share right",
    "heatmap": "Accuracy by q and d",
    "risk": "Share wrong among admitted points, most confident first",
}


SHEET_WIDTH = 17.0
"""Inches of the sheet with everything."""

TABLE_WIDTH = 10.4
"""Inches of the table that stands beside a chart on it."""


def summary_figure(report: DatasetReport) -> Figure:
    """The charts and the tables on one sheet."""
    with drawing_fonts():
        tables = evaluation_tables(report)
        last = 8.0 if tables.partitions is not None else 5.4 if report.grid is not None else 2.8
        figure = Figure(figsize=(SHEET_WIDTH, 24.2 + last), layout="constrained")
        words = (f"{report.name}: {extent(report)}", *reservations(report), answer(report), headline(report))
        figure.suptitle("\n".join(filter(None, words)), fontsize=12.5, parse_math=False)
        sheets: Any = figure.subfigures(5, 1, height_ratios=(4.6, 6.2, 6.0, 5.8, last), hspace=0.02)
        top: Any = sheets[1].subfigures(1, 2, width_ratios=(TABLE_WIDTH, SHEET_WIDTH - TABLE_WIDTH), wspace=0.02)
        beside: Any = sheets[3].subfigures(1, 2, wspace=0.03)
        charts = [
            (sheets[0], draw_methods, "methods"),
            (top[1], draw_risk, "risk"),
            (beside[0], _draw_coverage, "coverage"),
            (beside[1], draw_reliability, "reliability"),
        ]
        right: Any = [sheets[4]]
        if report.grid is not None:
            below: Any = sheets[4].subfigures(1, 2, wspace=0.03)
            heights = (1, 1) if tables.partitions is None else (1.7, 1)
            right = below[1].subfigures(2, 1, height_ratios=heights, hspace=0.02)
            charts.append((below[0], draw_heatmap, "heatmap"))
        for part, draw, name in charts:
            draw(part, report)
            part.suptitle(TITLES[name], fontsize=12, fontweight="bold")
        positions = (
            (top[0], tables.glance, TABLE_WIDTH),
            (sheets[2], tables.covered, SHEET_WIDTH),
            *zip(right, filter(None, (tables.partitions, tables.accuracy)), repeat(SHEET_WIDTH / 2), strict=False),
        )
        for part, table, inches in positions:
            draw_table(part, table, inches)
            part.suptitle(table.title, fontsize=12, fontweight="bold")
    return figure


def _draw_coverage(figure: FigureBase, report: DatasetReport) -> None:
    draw_coverage(figure, report.coverage, report.class_names, report.alpha)


def _single(name: str, draw: Callable[..., None], inches: tuple[float, float], report: DatasetReport) -> Figure:
    with drawing_fonts():
        figure = Figure(figsize=inches, layout="constrained")
        draw(figure, report)
        figure.suptitle(f"{report.name}: {TITLES[name]}", fontsize=12, fontweight="bold", parse_math=False)
    return figure


_DRAWN: dict[str, tuple[Callable[..., None], tuple[float, float]]] = {
    # What each method admits, and how much of it is right, over all and for its worst class.
    "methods": (draw_methods, (9.5, 4.2)),
    # Coverage against admitted share, per true class and per predicted class.
    "coverage": (_draw_coverage, (9.5, 5.0)),
    # Risk against coverage, of every method that ranks its predictions.
    "risk": (draw_risk, (8.6, 6.0)),
    # Lower and upper probability against observed frequency, with intervals and the counts behind them.
    "reliability": (draw_reliability, (9.5, 5.8)),
    # Accuracy over q by d, with counts.
    "heatmap": (draw_heatmap, (7.6, 4.8)),
}
CHARTS: dict[str, Callable[[DatasetReport], Figure]] = {
    **{name: partial(_single, name, *drawn) for name, drawn in _DRAWN.items()},
    "summary": summary_figure,
}


def charts_of(report: DatasetReport) -> tuple[str, ...]:
    """Return the names of the charts that there are; of q and d there is none if the classifier has logits only."""
    return tuple(name for name in CHARTS if name != "heatmap" or report.grid is not None)


def save_charts(report: DatasetReport, directory: Path) -> tuple[Path, ...]:
    """Write every chart as DATASET-CHART.png into an existing directory; returns the paths.

    A class whose name no installed font can draw is called by its number.
    """
    stem = re.sub(r"[^\w.]+", "-", report.name).strip("-.") or "set"
    drawable = with_drawable_names(report)
    return tuple(save_png(CHARTS[name](drawable), directory / f"{stem}-{name}.png") for name in charts_of(report))


def save_png(figure: Figure, path: Path, dots_per_inch: int = 150) -> Path:
    """Write a figure as PNG and return its path; the same figure gives the same bytes."""
    figure.savefig(path, format="png", dpi=dots_per_inch, facecolor="white", metadata={"Software": None})
    return path


def to_svg(figure: Figure, prefix: str, label: str) -> str:
    """A figure as an `<svg>` element to put into a page, without outside reference.

    Text stays text, which the browser draws with the fonts it has, so that any name can be read. prefix: a word that
    is unique in the page, put before every id. label: what a screen reader says. The same figure gives the same text.
    """
    text = StringIO()
    with mpl.rc_context({"svg.hashsalt": prefix, "svg.fonttype": "none"}), warnings.catch_warnings():
        # What our fonts lack the browser's may have.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        figure.set_facecolor("white")
        # `savefig` would draw twice, once for the layout, which drawing sees to itself.
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(text, metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    # Within a tag only: a name that is drawn may look like an attribute.
    svg = re.sub(r"<[^>]*>", lambda tag: _within_page(tag[0], prefix), svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)


def _within_page(tag: str, prefix: str) -> str:
    """A tag as it may stand in a page, among other charts."""
    # Within HTML the namespaces are known; their declarations would be the only addresses in the page.
    tag = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", tag).replace("xlink:href", "href")
    tag = re.sub(r"font-family: [^;\"]*", f"font-family: {PAGE_FONTS}", tag)
    return themed(re.sub(r'(\bid="|\bhref="#|url\(#)', rf"\g<1>{prefix}-", tag))


def class_coverage_figure(coverage: ClassCoverage, class_names: Sequence[str], alpha: Decimal) -> Figure:
    """Coverage against admitted share, per true class and per predicted class, of what a calibration admits."""
    with drawing_fonts():
        figure = Figure(figsize=(9.5, 4.8), layout="constrained")
        draw_coverage(figure, coverage, class_names, alpha)
    return figure
