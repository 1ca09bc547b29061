"""What the charts draw, each on a figure or a part of one, with matplotlib's object interface.

Colours are those of Okabe & Ito (2008), told apart with every kind of colour vision; the heat map's is
cividis. Colour is never the only signal: lines differ in dash, series in marker, cells carry their figures.
Text with a name that a user gave is drawn with parse_math=False: a dollar sign is no formula.
"""

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.typing import LineStyleType

from venn_admit.core.evaluation.coverage_bands import CoverageBand
from venn_admit.core.evaluation.curves import CoverageCurve, Reliability
from venn_admit.core.evaluation.tallies import MINIMUM_TO_JUDGE, Tally, Verdict
from venn_admit.report.charts.looks import (
    DARK_INK,
    FEW_ALPHA,
    FEW_MARK_COLOUR,
    FEW_MARK_SIZE,
    LIGHT_INK,
    apart,
    few_mark,
    name_series,
    verdict_mark,
    verdict_marks,
)
from venn_admit.report.evaluation.dataset import ClassCoverage, DatasetReport
from venn_admit.report.evaluation.wording import few_text, match_bin_names, shorten, target_text
from venn_admit.report.wording import share_text

CLASS_LOOKS: tuple[tuple[str, LineStyleType], ...] = (
    ("#0072B2", "-"),
    ("#D55E00", "--"),
    ("#009E73", "-."),
    ("#CC79A7", (0, (1, 1))),
    ("#E69F00", (0, (5, 1, 1, 1, 1, 1))),
    ("#56B4E9", (0, (8, 2))),
)
"""One for each class that is shown by itself."""

VENN_LOOKS = {"plain": ("#E69F00", "s"), "weighted": ("#0072B2", "o")}
FEW_COLOUR = "#e9e9e9"
TARGET_COLOUR = "#555555"
BAND_ALPHA, MOST_BANDS = 0.15, 3
"""How much of its colour a band of intervals keeps. With more classes than these the bands would hide each other."""

ASIDE = {"plain": -0.008, "weighted": 0.008}
"""How far the marks of a bin stand from its mean probability, so that plain and weighted do not hide each other."""

NAME_WIDTH = 24
"""Characters of a class name in a legend."""


def draw_coverage(figure: FigureBase, coverage: ClassCoverage, class_names: Sequence[str], alpha: Decimal) -> None:
    """Share right over the admitted share of each class, highest lower probability first, with its interval.

    Left by true class, right by predicted class. A mark shows what the target admits, its interval and its verdict.
    Along the curve the interval is a band, for all classes together and, up to `MOST_BANDS`, for each. Curves start
    where `MINIMUM_TO_JUDGE` points, of as many documents, are admitted. The curves set the limits, not the intervals.
    """
    measured, shown, target = coverage.admitted, coverage.shown, 1 - alpha
    left = figure.add_subplot(1, 2, 1, ylabel="share right among admitted")
    right = figure.add_subplot(1, 2, 2, sharex=left, sharey=left)
    panels = (
        (left, "true class", coverage.curves_by_true_class, coverage.bands_by_true_class, measured.per_true_class),
        (
            right,
            "predicted class",
            coverage.curves_by_predicted_class,
            coverage.bands_by_predicted_class,
            measured.per_predicted_class,
        ),
    )
    looks = [*CLASS_LOOKS[: len(shown)], ("black", "-")]
    lines: list[Line2D] = []
    for axes, kind, curves, bands, tallies in panels:
        series = [*((curves[c], bands[c]) for c in shown), (coverage.curve_overall, coverage.band_overall)]
        lines = [_draw_curve(axes, curve, band, look) for (curve, band), look in zip(series, looks, strict=True)]
        banded = series if len(shown) <= MOST_BANDS else series[-1:]
        for (curve, band), (colour, _) in zip(banded, looks[-len(banded) :], strict=True):
            _draw_band(axes, curve, band, colour)
        _draw_admitted(
            axes,
            [tallies[c] for c in shown] + [measured.overall],
            [curve.total for curve, _ in series],
            [colour for colour, _ in looks],
            alpha,
        )
        lines.append(axes.axhline(float(target), color=TARGET_COLOUR, linewidth=1, linestyle=":"))
        axes.set(title=f"For each {kind}", xlabel=f"admitted share of the points of the {kind}")
        axes.grid(alpha=0.25)
    drawn = [np.asarray(line.get_ydata()) for axes in (left, right) for line in axes.lines]
    left.set_ylim(max(0.0, np.floor(20 * np.concatenate(drawn).min() - 0.2) / 20), 1.005)
    left.set_xlim(left=0)
    name_series(
        figure,
        [*lines, *verdict_marks()],
        [
            *(shorten(class_names[c], NAME_WIDTH) for c in shown),
            "all classes",
            f"target {target.normalize():f}",
            *(f"admitted: {verdict.words}" for verdict in Verdict),
        ],
        columns=4,
    )


def draw_reliability(figure: FigureBase, report: DatasetReport) -> None:
    """Observed frequency over the mean probability of each bin, above the points of each bin.

    Left of the lower, right of the upper Venn probability. Plain and weighted stand side by side.
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
        series = [_draw_bins(observed, counts, bins, name) for name, bins in measured.items()]
        series += observed.plot([0, 1], [0, 1], color="black", linewidth=1, linestyle="--")
        series.append(observed.axvline(float(report.target), color=TARGET_COLOUR, linewidth=1, linestyle=":"))
        observed.set(title=title, xlim=(-0.02, 1.02), ylim=(-0.02, 1.04))
        observed.tick_params(labelbottom=False)
        counts.set(xlabel=f"{kind} probability of the predicted class")
        observed.grid(alpha=0.25)
        counts.grid(alpha=0.25, axis="y")
        if column == 0:
            observed.set_ylabel("observed share right (95 % interval)")
            counts.set_ylabel("points")
    name_series(
        figure,
        [*series, few_mark()],
        [*report.reliability_lower, "observed = probability", f"target {target_text(report)}", few_text(report)],
        columns=5,
    )


def draw_heatmap(figure: FigureBase, report: DatasetReport) -> None:
    """Accuracy and count in each cell of q by d; cells of fewer than `MINIMUM_TO_JUDGE` points stay grey."""
    grid = report.grid
    assert grid is not None, "a classifier with logits only has neither q nor d"
    rows, columns = grid.count.shape
    judged = grid.count >= MINIMUM_TO_JUDGE
    accuracy = np.where(judged, grid.correct / np.maximum(grid.count, 1), np.nan)  # (Q, B)
    least = min(0.9, np.floor(10 * np.min(accuracy, where=judged, initial=0.9)) / 10)
    scale = Normalize(least, 1.0)
    axes = figure.add_subplot()
    axes.set_facecolor(FEW_COLOUR)
    mesh = axes.pcolormesh(np.ma.masked_invalid(accuracy), cmap="cividis", norm=scale, edgecolor="white", linewidth=1.5)
    for row in range(rows):
        for column in range(columns):
            count = int(grid.count[row, column])
            share = share_text(float(accuracy[row, column])) if count >= MINIMUM_TO_JUDGE else "too few"
            dark = count >= MINIMUM_TO_JUDGE and scale(accuracy[row, column]) < 0.45
            axes.text(
                column + 0.5,
                row + 0.5,
                f"{share}\nn = {count:,}" if count else "none",
                ha="center",
                va="center",
                color=LIGHT_INK if dark else DARK_INK if count >= MINIMUM_TO_JUDGE else FEW_MARK_COLOUR,
                fontsize=9,
            )
    bar = figure.colorbar(mesh, ax=axes, pad=0.02)
    bar.set_label(f"accuracy of the {report.baseline}")
    bar.ax.axhline(float(report.target), color="white", linewidth=3)
    bar.ax.axhline(float(report.target), color="black", linewidth=1.2)
    axes.set_yticks(np.arange(rows) + 0.5, match_bin_names(grid))
    axes.set_xticks(np.arange(columns + 1), [f"{edge:#.3g}" for edge in grid.distance_edges])
    axes.tick_params(length=0)
    axes.set_ylabel(f"q: matching nearest neighbours, of {report.neighbour_count}")
    axes.set_xlabel("d: distance to the nearest training exemplar, bins at its quantiles")


def _draw_band(axes: Axes, curve: CoverageCurve, band: CoverageBand, colour: str) -> None:
    admitted = band.count / max(curve.total, 1)
    axes.fill_between(admitted, band.low, band.high, color=colour, alpha=BAND_ALPHA, linewidth=0)


def _draw_curve(axes: Axes, curve: CoverageCurve, band: CoverageBand, look: tuple[str, LineStyleType]) -> Line2D:
    colour, dash = look
    enough = curve.count >= (band.count[0] if band.count.size else np.inf)
    total = max(curve.total, 1)
    (line,) = axes.plot(
        curve.count[enough] / total,
        curve.correct[enough] / curve.count[enough],
        color=colour,
        linestyle=dash,
        linewidth=1.8,
    )
    return line


def _draw_admitted(
    axes: Axes, tallies: Sequence[Tally], totals: Sequence[int], colours: Sequence[str], alpha: Decimal
) -> None:
    """What is admitted of each class, unless it is too little to judge."""
    positions = [
        (np.nan, np.nan) if tally.is_few else (tally.count / total, tally.share)
        for tally, total in zip(tallies, totals, strict=True)
    ]
    across = apart(positions, near=(0.02, 0.012), step=0.025)
    for x, (_, share), tally, colour in zip(across, positions, tallies, colours, strict=True):
        if not tally.is_few:
            verdict_mark(axes, (x, share), tally.interval, tally.verdict(alpha), colour)


def _draw_bins(observed: Axes, counts: Axes, bins: Reliability, name: str) -> Line2D:
    colour, marker = VENN_LOOKS[name]
    judged = (bins.count > 0) & ~bins.few
    for use, few in ((bins.few, True), (judged, False)):
        frequency = bins.frequency[use]
        observed.errorbar(
            bins.mean_probability[use] + ASIDE[name],
            frequency,
            yerr=[frequency - bins.interval_low[use], bins.interval_high[use] - frequency],
            fmt=marker,
            color=FEW_MARK_COLOUR if few else colour,
            markerfacecolor="white" if few else colour,
            capsize=0 if few else 2.5,
            elinewidth=0.7 if few else 1.2,
            markersize=FEW_MARK_SIZE if few else 6,
            alpha=FEW_ALPHA if few else 1,
        )
    counts.stairs(bins.count, bins.edges, color=colour, fill=name == "plain", alpha=0.5, linewidth=1.6)
    if name == "weighted":
        counts.stairs(bins.count, bins.edges, color=colour, linewidth=1.8)
    return Line2D([], [], color=colour, marker=marker, linestyle="none")
