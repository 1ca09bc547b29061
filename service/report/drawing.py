"""What the charts draw, each on a figure or a part of one, with matplotlib's object interface.

Colours are those of Okabe & Ito (2008), told apart with every kind of colour vision; the heat map's is
cividis. Colour is never the only signal: lines differ in dash, series in marker, cells carry their figures.
Text with a name that a user gave is drawn with parse_math=False: a dollar sign is no formula.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.typing import LineStyleType

from service.core.curves import CoverageCurve, Reliability
from service.core.tallies import FEW, Tally
from service.report.dataset import RECOMMENDED, DatasetReport
from service.report.wording import (
    SIDE_BY_SIDE,
    few_text,
    match_bin_names,
    share_text,
    shorten,
    target_text,
)

CLASS_LOOKS: tuple[tuple[str, LineStyleType], ...] = (
    ("#0072B2", "-"),
    ("#D55E00", "--"),
    ("#009E73", "-."),
    ("#CC79A7", (0, (1, 1))),
    ("#E69F00", (0, (5, 1, 1, 1, 1, 1))),
    ("#56B4E9", (0, (8, 2))),
)
"""As many as `DatasetReport.shown_classes` gives."""

VENN_LOOKS = {"plain": ("#E69F00", "s"), "weighted": ("#0072B2", "o")}
FEW_MARK_COLOUR = "#8a8a8a"
FEW_COLOUR = "#e9e9e9"
TARGET_COLOUR = "#555555"
NAME_WIDTH = 24
"""Characters of a class name in a legend."""


def draw_coverage(figure: FigureBase, report: DatasetReport) -> None:
    """Share correct over the admitted share of each class, highest lower probability first.

    Left by true class, right by predicted class. A dot marks what the target admits. Curves start where
    `FEW` points are admitted.
    """
    measured, shown, target = report.method(RECOMMENDED), report.shown_classes(), float(report.target)
    left = figure.add_subplot(1, 2, 1, ylabel="share correct among admitted")
    right = figure.add_subplot(1, 2, 2, sharex=left, sharey=left)
    panels = (
        (left, "true class", report.curves_by_true_class, measured.per_true_class),
        (right, "predicted class", report.curves_by_predicted_class, measured.per_predicted_class),
    )
    lines: list[Line2D] = []
    for axes, kind, curves, tallies in panels:
        lines = [
            _draw_curve(axes, curves[c], tallies[c], colour, dash)
            for c, (colour, dash) in zip(shown, CLASS_LOOKS, strict=False)
        ]
        lines.append(_draw_curve(axes, report.curve_overall, measured.overall, "black", "-"))
        lines.append(axes.axhline(target, color=TARGET_COLOUR, linewidth=1, linestyle=":"))
        axes.set(title=f"By {kind}", xlabel=f"admitted share of the points of the {kind}")
        axes.grid(alpha=0.25)
    drawn = [np.asarray(line.get_ydata()) for axes in (left, right) for line in axes.lines]
    left.set_ylim(max(0.0, np.floor(20 * np.concatenate(drawn).min() - 0.2) / 20), 1.005)
    left.set_xlim(left=0)
    name_series(
        figure,
        [*lines, Line2D([], [], color=TARGET_COLOUR, marker="o", linestyle="none", markersize=8)],
        [
            *(shorten(report.class_names[c], NAME_WIDTH) for c in shown),
            "all classes",
            f"target {target_text(report)}",
            f"what {RECOMMENDED} admits",
        ],
        columns=5 if len(shown) <= SIDE_BY_SIDE else 4,
    )


def draw_reliability(figure: FigureBase, report: DatasetReport) -> None:
    """Observed frequency over the mean probability of each bin, above the points of each bin.

    Left of the lower, right of the upper Venn probability.
    """
    grid = figure.add_gridspec(2, 2, height_ratios=(3.6, 1))
    panels = (
        ("Lower: should not lie clearly below", "lower", report.reliability_lower),
        ("Upper: should not lie clearly above", "upper", report.reliability_upper),
    )
    series: list[Line2D] = []
    for column, (title, kind, measured) in enumerate(panels):
        observed = figure.add_subplot(grid[0, column])
        counts = figure.add_subplot(grid[1, column], sharex=observed)
        series = [_draw_bins(observed, counts, measured[name], name) for name in VENN_LOOKS]
        series += observed.plot([0, 1], [0, 1], color="black", linewidth=1, linestyle="--")
        series.append(observed.axvline(float(report.target), color=TARGET_COLOUR, linewidth=1, linestyle=":"))
        observed.set(title=title, xlim=(-0.02, 1.02), ylim=(-0.02, 1.04))
        observed.tick_params(labelbottom=False)
        counts.set(xlabel=f"{kind} probability of the predicted class")
        observed.grid(alpha=0.25)
        counts.grid(alpha=0.25, axis="y")
        if column == 0:
            observed.set_ylabel("observed share correct (95 % interval)")
            counts.set_ylabel("points")
    name_series(
        figure,
        [*series, few_mark()],
        [*VENN_LOOKS, "observed = probability", f"target {target_text(report)}", few_text(report)],
        columns=5,
    )


def draw_heatmap(figure: FigureBase, report: DatasetReport) -> None:
    """Accuracy and count of the KNN in each cell of q by d; cells of fewer than `FEW` points stay grey."""
    grid = report.grid
    rows, columns = grid.count.shape
    judged = grid.count >= FEW
    accuracy = np.where(judged, grid.correct / np.maximum(grid.count, 1), np.nan)  # (Q, B)
    least = min(0.9, np.floor(10 * np.min(accuracy, where=judged, initial=0.9)) / 10)
    scale = Normalize(least, 1.0)
    axes = figure.add_subplot()
    axes.set_facecolor(FEW_COLOUR)
    mesh = axes.pcolormesh(np.ma.masked_invalid(accuracy), cmap="cividis", norm=scale, edgecolor="white", linewidth=1.5)
    for row in range(rows):
        for column in range(columns):
            count = int(grid.count[row, column])
            share = share_text(float(accuracy[row, column])) if count >= FEW else "too few"
            dark = count >= FEW and scale(accuracy[row, column]) < 0.45
            axes.text(
                column + 0.5,
                row + 0.5,
                f"{share}\nn = {count:,}" if count else "none",
                ha="center",
                va="center",
                color="white" if dark else "black",
                fontsize=9,
            )
    bar = figure.colorbar(mesh, ax=axes, pad=0.02)
    bar.set_label("accuracy of the KNN")
    bar.ax.axhline(float(report.target), color="white", linewidth=3)
    bar.ax.axhline(float(report.target), color="black", linewidth=1.2)
    axes.set_yticks(np.arange(rows) + 0.5, match_bin_names(grid))
    axes.set_xticks(np.arange(columns + 1), [f"{edge:#.3g}" for edge in grid.distance_edges])
    axes.tick_params(length=0)
    axes.set_ylabel(f"q: matching nearest neighbours, of {report.neighbour_count}")
    axes.set_xlabel("d: distance to the nearest training exemplar, bins at its quantiles")


def _draw_curve(axes: Axes, curve: CoverageCurve, tally: Tally, colour: str, dash: LineStyleType) -> Line2D:
    enough = curve.count >= FEW
    (line,) = axes.plot(
        curve.count[enough] / max(curve.total, 1),
        curve.correct[enough] / curve.count[enough],
        color=colour,
        linestyle=dash,
        linewidth=1.8,
    )
    if not tally.is_few:
        axes.plot(tally.count / curve.total, tally.share, "o", color=colour, markeredgecolor="white", ms=8)
    return line


def _draw_bins(observed: Axes, counts: Axes, bins: Reliability, name: str) -> Line2D:
    colour, marker = VENN_LOOKS[name]
    judged = (bins.count > 0) & ~bins.few
    for use, edge, face in ((bins.few, FEW_MARK_COLOUR, "white"), (judged, colour, colour)):
        frequency = bins.frequency[use]
        observed.errorbar(
            bins.mean_probability[use],
            frequency,
            yerr=[frequency - bins.interval_low[use], bins.interval_high[use] - frequency],
            fmt=marker,
            color=edge,
            markerfacecolor=face,
            capsize=2.5,
            elinewidth=1.2,
            markersize=6,
        )
    counts.stairs(bins.count, bins.edges, color=colour, fill=name == "plain", alpha=0.5, linewidth=1.6)
    if name == "weighted":
        counts.stairs(bins.count, bins.edges, color=colour, linewidth=1.8)
    return Line2D([], [], color=colour, marker=marker, linestyle="none")


def few_mark() -> Line2D:
    """What a legend shows of marks of too few points."""
    return Line2D([], [], color=FEW_MARK_COLOUR, marker="o", markerfacecolor="white", linestyle="none")


def name_series(figure: FigureBase, lines: Sequence[Line2D], names: Sequence[str], columns: int) -> None:
    """A legend below the panels, where it can hide no point, of names as they are."""
    drawn = figure.legend(
        lines, [" "] * len(names), loc="outside lower center", ncols=columns, fontsize=9, frameon=False
    )
    for text, name in zip(drawn.get_texts(), names, strict=True):
        text.set(parse_math=False, text=name)
