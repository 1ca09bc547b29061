"""What a calibration draws: points of vp by q (Venn-ADMIT), bounds over the score (Venn-Abers), and the last days."""

from collections.abc import Sequence
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.calibrators.venn_abers.steps import Steps
from venn_admit.core.monitoring.cells import CellState
from venn_admit.core.monitoring.history import Day
from venn_admit.core.monitoring.partitions import CalibrationPartitions
from venn_admit.core.reasons import Reason
from venn_admit.core.types import FloatArray
from venn_admit.report.charts.drawing import CLASS_LOOKS, NAME_WIDTH, TARGET_COLOUR
from venn_admit.report.charts.looks import drawing_fonts, name_series
from venn_admit.report.evaluation.wording import shorten

# Right singletons at the bottom; colours of Okabe & Ito (2008), and greys for what is rejected before.
PARTS = (
    ("singleton, right", "#0072B2", ""),
    ("singleton, wrong", "#D55E00", "////"),
    (Reason.SET_NOT_SINGLETON, "#bdbdbd", ""),
    (Reason.BAND_BELOW_KAPPA, "#ececec", "...."),
)
UPRIGHT = 30
"""Up to this many bins of q, their names stand side by side."""
MOST_PANELS, COLUMNS = 6, 2
"""At most this many classes have a panel: those of which the least is admitted. And how many stand side by side."""
TICKS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99, 0.997, 0.999, 0.9999, 0.99999)
CLOSEST = 1e-6
"""Scores are drawn on a logistic axis, on which 0 and 1 have no place; they are drawn this close to it at most."""
BARS = 40
LEVELS = 600
"""At most this many steps of a bound are drawn across a panel, fewer than it has pixels on the screen."""
SHARE_COLOUR, COUNT_COLOUR = "#0072b2", "#8a8a8a"
DATES = 7
"""About this many days have their date below the chart."""


def partitions_figure(partitions: CalibrationPartitions, names: Sequence[str], neighbour_count: int) -> Figure:
    """Return a chart of the points of vp in each bin of q, stacked by the kind of their ADMIT sets.

    names: of the bins. neighbour_count: K.
    """
    right, singleton = partitions.right.sum(axis=1), partitions.singleton.sum(axis=1)
    usable, every = partitions.usable.sum(axis=1), partitions.vp_count.sum(axis=(1, 2))
    figure = Figure(figsize=(9.6, 4.4), layout="constrained")
    axes = figure.add_subplot(ylabel="points of vp", xlabel=f"q: matching nearest neighbours, of {neighbour_count}")
    bottom = np.zeros(len(names), dtype=np.int64)
    counts = (right, singleton - right, usable - singleton, every - usable)
    for (name, colour, hatch), height in zip(PARTS, counts, strict=True):
        axes.bar(
            names, height, bottom=bottom, label=name, color=colour, hatch=hatch, edgecolor="#555555", linewidth=0.4
        )
        bottom = bottom + height
    axes.grid(axis="y", alpha=0.25)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", labelrotation=90 if len(names) > UPRIGHT else 0)
    figure.legend(loc="outside upper center", ncols=len(PARTS), frameon=False)
    return figure


def cells_figure(
    steps: Steps,
    mc: CellPoints,
    states: Sequence[CellState],
    class_names: Sequence[str],
    bin_names: Sequence[str],
    score: str,
    *,
    bounds_scores: bool,
) -> Figure:
    """Return a panel per predicted class: its bounds over the score with its threshold, above the points of mc.

    score: what the score is called. bin_names: of the bins of q, each of which has bounds of its own; empty
    without vectors. bounds_scores: whether thresholds are on the score.
    """
    shown = _shown(states, len(class_names))
    columns = min(COLUMNS, len(shown))
    rows = ceil(len(shown) / columns)
    with drawing_fonts():
        figure = Figure(figsize=(1.2 + 3.9 * columns, 0.8 + 3.7 * rows), layout="constrained")
        grid = figure.add_gridspec(2 * rows, columns, height_ratios=[3.2, 1] * rows)
        place = _logit(mc.score)
        low, high = np.quantile(place, [0.002, 0.998]) if len(place) else (-1.0, 1.0)
        limits = (float(low) - 0.1, float(high) + 0.1)
        for number, c in enumerate(shown):
            row, column = divmod(number, columns)
            bounds = figure.add_subplot(grid[2 * row, column])
            counts = figure.add_subplot(grid[2 * row + 1, column], sharex=bounds)
            mine = [state for state in states if state.predicted == c]
            _draw_bounds(bounds, steps, mine, len(class_names), limits, bounds_scores=bounds_scores)
            _draw_counts(counts, place[mc.predicted == c], limits)
            bounds.set_title(f"predicted as {shorten(class_names[c], NAME_WIDTH)}", parse_math=False)
            counts.set_xlabel(f"{score} score")
            if column == 0:
                bounds.set_ylabel("probability of being right")
                counts.set_ylabel("points")
        several = len(bin_names) > 1
        names = [f"p0 to p1, q {name}" for name in bin_names] if several else ["p0 to p1"]
        bins = [
            Line2D([], [], color=CLASS_LOOKS[i % len(CLASS_LOOKS)][0], alpha=0.5, linewidth=7)
            for i in range(len(names))
        ]
        line = Line2D([], [], color=TARGET_COLOUR, linewidth=1.2, linestyle=":")
        name_series(figure, [*bins, line], [*names, "threshold"], columns=4)
    return figure


def _shown(states: Sequence[CellState], class_count: int) -> list[int]:
    """The classes that have a panel, ascending."""
    admitted, points = np.zeros(class_count), np.zeros(class_count)
    for state in states:
        admitted[state.predicted] += state.admitted
        points[state.predicted] += state.points
    share = admitted / np.maximum(points, 1)
    return sorted(np.argsort(share, kind="stable")[:MOST_PANELS].tolist())


def _logit(score: FloatArray) -> FloatArray:
    within = np.clip(score, CLOSEST, 1 - CLOSEST)
    return np.log(within) - np.log1p(-within)


def _draw_bounds(
    axes: Axes,
    steps: Steps,
    states: Sequence[CellState],
    class_count: int,
    limits: tuple[float, float],
    *,
    bounds_scores: bool,
) -> None:
    threshold = states[0].threshold
    for state in states:
        colour, _ = CLASS_LOOKS[state.q_bin % len(CLASS_LOOKS)]
        rows = steps.take(np.flatnonzero(steps.cell == state.q_bin * class_count + state.predicted))
        if not len(rows.cell):
            continue
        rows = _visible(rows, limits)
        at = np.append(np.maximum(_logit(rows.score), limits[0]), limits[1])
        lower, upper = (np.append(values, values[-1:]) for values in (rows.lower, rows.upper_above))
        axes.fill_between(at, lower, upper, step="post", color=colour, alpha=0.25, linewidth=0)
        axes.step(at, lower, where="post", color=colour, linewidth=1.6)
        axes.step(at, upper, where="post", color=colour, linewidth=0.8)
        if state.admits_from is not None and len(states) == 1:
            start = max(limits[0], float(_logit(np.array([state.admits_from]))[0]))
            axes.axvspan(start, limits[1], color="#009E73", alpha=0.08, linewidth=0)
    if threshold is not None:
        place = _logit(np.array([float(threshold)]))[0] if bounds_scores else float(threshold)
        across = axes.axvline if bounds_scores else axes.axhline
        across(place, color=TARGET_COLOUR, linewidth=1.2, linestyle=":")
    axes.set(xlim=limits, ylim=(-0.02, 1.02))
    axes.tick_params(labelbottom=False)
    axes.grid(alpha=0.25)


def _visible(rows: Steps, limits: tuple[float, float]) -> Steps:
    """The last step within each of `LEVELS` stretches of a panel: others could not be told apart from it."""
    place = LEVELS * (_logit(rows.score) - limits[0]) / (limits[1] - limits[0])
    stretch = np.clip(np.floor(place), -1, LEVELS)
    return rows.take(np.flatnonzero(np.diff(stretch, append=np.inf)))


def _draw_counts(axes: Axes, place: FloatArray, limits: tuple[float, float]) -> None:
    axes.hist(np.clip(place, *limits), bins=np.linspace(*limits, BARS + 1).tolist(), color="#8a8a8a")
    within = [tick for tick in TICKS if limits[0] <= _logit(np.array([tick]))[0] <= limits[1]]
    kept = within[:: max(1, ceil(len(within) / 6))]
    axes.set_xticks(_logit(np.array(kept)).tolist(), [f"{tick:g}".removeprefix("0") for tick in kept])
    axes.grid(alpha=0.25, axis="y")


def days_figure(days: Sequence[Day]) -> Figure:
    """Return a line of the share admitted above bars of decisions and of labels; a day without decisions is a gap."""
    figure = Figure(figsize=(8.4, 4.6), layout="constrained")
    positions = np.arange(len(days))
    shares = [day.share for day in days]
    share = np.array([tally.share if tally.count else np.nan for tally in shares])
    low, high = np.array([tally.interval if tally.count < tally.total else (tally.share,) * 2 for tally in shares]).T
    admitted, decisions, labels = figure.subplots(3, 1, sharex=True, height_ratios=(2.2, 1, 1))
    admitted.vlines(positions, low, high, color=SHARE_COLOUR, linewidth=1, alpha=0.55)
    admitted.plot(positions, share, color=SHARE_COLOUR, marker="o", markersize=4.5, linewidth=1.8)
    admitted.set(ylim=(0, 1.05), title="share admitted")
    for axes, title, counts in (
        (decisions, "decisions", [day.decisions for day in days]),
        (labels, "labels", [day.labels for day in days]),
    ):
        axes.bar(positions, counts, width=0.7, color=COUNT_COLOUR)
        axes.set(title=title, ylim=(0, max(1, 1.1 * max(counts))))
        axes.yaxis.get_major_locator().set_params(integer=True, nbins=3)
        axes.yaxis.set_major_formatter("{x:,.0f}")
    for axes in (admitted, decisions, labels):
        # What is read stands beside the newest, which a narrow screen shows first.
        axes.set_title(axes.get_title(), loc="right", fontsize=10)
        axes.set_title("")
        axes.yaxis.tick_right()
        axes.grid(alpha=0.25, axis="y")
        axes.set_axisbelow(True)
    shown = positions[:: -max(1, len(days) // DATES)][::-1]  # the last day has its date
    labels.set_xticks(shown, [f"{days[place].day:%d %b}" for place in shown])
    labels.set_xlim(-0.6, len(days) - 0.4)
    return figure
