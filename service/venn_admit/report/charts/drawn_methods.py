"""The chart of the methods that matter: how much each admits, and how much of it is right."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from venn_admit.core.evaluation.measures import MethodMeasures
from venn_admit.core.evaluation.tallies import Tally
from venn_admit.report.charts.drawing import TARGET_COLOUR
from venn_admit.report.charts.marks import (
    FEW_ALPHA,
    FEW_MARK_COLOUR,
    VERDICT_COLOURS,
    few_mark,
    name_series,
    verdict_mark,
    verdict_marks,
)
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.evaluation.glance import methods_that_matter
from venn_admit.report.evaluation.wording import (
    PREDICTED,
    TRUE,
    few_text,
    kind_tallies,
    share_text,
    target_text,
)

BAR_COLOUR, OWN_COLOUR = "#bdbdbd", "#0072b2"


def draw_methods(figure: FigureBase, report: DatasetReport) -> None:
    """Draw a row for each method that matters: the share it admits, and the shares right, each with its interval.

    These are of all that is admitted, and of the true and the predicted class that the method does worst on. Shares of
    too few points are faint and do not set the limits.
    """
    rows = methods_that_matter(report)
    places = np.arange(len(rows))[::-1]
    kinds = (
        ("right over all", [row.singletons.overall for row in rows]),
        ("worst true class", [worst_tally(row, TRUE) for row in rows]),
        ("worst predicted class", [worst_tally(row, PREDICTED) for row in rows]),
    )
    admitted, *shares = figure.subplots(1, 4, sharey=True, width_ratios=(1, 1.15, 1.15, 1.15))
    _draw_admitted(admitted, rows, places, report)
    least = _least_shown([tally for _, tallies in kinds for tally in tallies], report)
    for axes, (title, tallies) in zip(shares, kinds, strict=True):
        axes.axvspan(least, float(report.target), color="black", alpha=0.05, linewidth=0)
        axes.axvline(float(report.target), color=TARGET_COLOUR, linewidth=1.2, linestyle=":")
        for place, tally in zip(places, tallies, strict=True):
            if tally.count:
                _draw_share(axes, float(place), tally, least, report)
        axes.set(title=title, xlim=(least, 1.005 + 0.02 * (1 - least)))
        axes.tick_params(left=False)
        axes.grid(alpha=0.25, axis="x")
    name_series(
        figure,
        [*verdict_marks(), few_mark(), Line2D([], [], color=TARGET_COLOUR, linewidth=1.2, linestyle=":")],
        ["met", "missed", "cannot tell", few_text(report), f"target {target_text(report)}"],
        columns=5,
    )


def worst_tally(measures: MethodMeasures, kind: str) -> Tally:
    """Return the share right of the class with the lowest, among those with enough points if there are any."""
    # Without points the share is NaN, which has no order: such classes come last.
    return min(
        kind_tallies(measures.singletons, kind),
        key=lambda tally: (tally.count == 0, tally.is_few, tally.share if tally.count else 0),
    )


def _draw_admitted(axes: Axes, rows: Sequence[MethodMeasures], places: np.ndarray, report: DatasetReport) -> None:
    portions = [row.singletons.overall.portion for row in rows]
    colours = [OWN_COLOUR if row.name == report.own else BAR_COLOUR for row in rows]
    axes.barh(places, portions, height=0.6, color=colours)
    for place, portion in zip(places, portions, strict=True):
        axes.text(portion + 0.03, place, share_text(portion), va="center", fontsize=9)
    axes.set(title="admitted", xlim=(0, 1.3), xticks=(0, 0.5, 1), ylim=(-0.6, len(rows) - 0.4))
    axes.set_yticks(places, [row.name for row in rows])
    for row, label in zip(rows, axes.get_yticklabels(), strict=True):
        label.set(fontsize=10, fontweight="bold" if row.name == report.own else "normal")
    axes.tick_params(left=False)


def _least_shown(tallies: Sequence[Tally], report: DatasetReport) -> float:
    """Where the axes of shares start: below all that is judged, or below everything if nothing is."""
    drawn = [tally for tally in tallies if tally.count]
    ends = [tally.interval[0] for tally in drawn if not tally.is_few] or [tally.share for tally in drawn]
    least: float = max(0.0, np.floor(20 * min([float(report.target), *ends]) - 0.2) / 20)
    return least


def _draw_share(axes: Axes, place: float, tally: Tally, least: float, report: DatasetReport) -> None:
    """A mark by its verdict with its interval; at the edge, pointing outwards, if it lies beyond."""
    verdict = tally.verdict(report.alpha)
    if tally.is_few or tally.share < least:
        axes.plot(
            [max(tally.share, least)],
            [place],
            "o" if tally.share >= least else "<",
            color=FEW_MARK_COLOUR,
            markerfacecolor="white",
            alpha=FEW_ALPHA,
            clip_on=False,
        )
        return
    verdict_mark(axes, (tally.share, place), tally.interval, verdict, VERDICT_COLOURS[verdict], across=True)
