"""The chart of a calibration by Venn-Abers: the bounds p0 and p1 over the score, for each predicted class."""

from collections.abc import Sequence
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from venn_admit.core.calibrators.venn_abers.cells import CellPoints
from venn_admit.core.calibrators.venn_abers.steps import Steps
from venn_admit.core.monitoring.cells import CellState
from venn_admit.core.types import FloatArray
from venn_admit.report.charts.drawing import CLASS_LOOKS, NAME_WIDTH, TARGET_COLOUR
from venn_admit.report.charts.fonts import drawing_fonts
from venn_admit.report.charts.marks import name_series
from venn_admit.report.evaluation.wording import shorten

MOST_PANELS, COLUMNS = 6, 2
"""At most this many classes have a panel: those of which the least is admitted. And how many stand side by side."""

TICKS = (0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 0.99, 0.997, 0.999, 0.9999, 0.99999)
CLOSEST = 1e-6
"""Scores are drawn on a logistic axis, on which 0 and 1 have no place; they are drawn this close to it at most."""

BARS = 40
LEVELS = 600
"""At most this many steps of a bound are drawn across a panel, fewer than it has pixels on the screen."""


def cells_figure(
    steps: Steps,
    mc: CellPoints,
    states: Sequence[CellState],
    class_names: Sequence[str],
    bin_names: Sequence[str],
    score: str,
) -> Figure:
    """Return a panel per predicted class: its bounds over the score with its threshold, above the points of mc.

    score: what the score is called. bin_names: of the bins of q, each of which has bounds of its own; empty
    without vectors.
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
            _draw_bounds(bounds, steps, mine, len(class_names), limits)
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
    place: FloatArray = np.log(within) - np.log1p(-within)
    return place


def _draw_bounds(
    axes: Axes, steps: Steps, states: Sequence[CellState], class_count: int, limits: tuple[float, float]
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
        axes.axhline(float(threshold), color=TARGET_COLOUR, linewidth=1.2, linestyle=":")
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
