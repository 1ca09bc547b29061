"""The chart of the methods: how much each admits, and how much of it is right."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from venn_admit.service.core.evaluation.measures import MethodMeasures
from venn_admit.service.core.evaluation.points import KNN, NETWORK
from venn_admit.service.core.evaluation.tallies import Tally, Verdict
from venn_admit.service.report.charts.drawing import TARGET_COLOUR, VENN_LOOKS
from venn_admit.service.report.charts.drawn_risk import RISK_LOOKS
from venn_admit.service.report.charts.marks import (
    FEW_ALPHA,
    FEW_MARK_COLOUR,
    FEW_MARK_SIZE,
    VERDICT_COLOURS,
    apart,
    few_mark,
    name_series,
)
from venn_admit.service.report.evaluation.dataset import DatasetReport
from venn_admit.service.report.evaluation.wording import MARKS, PREDICTED, TRUE, few_text, kind_tallies, target_text

METHOD_LOOKS = {
    KNN: ("black", "D"),
    NETWORK: ("#555555", "D"),
    "ADMIT": ("#009E73", "p"),
    **{f"Venn-ADMIT {name}": look for name, look in VENN_LOOKS.items()},
    **{f"Venn-ADMIT {name}, q = K": (colour, "X") for name, (colour, _) in VENN_LOOKS.items()},
    **{name: (colour, marker) for name, (colour, _, marker) in RISK_LOOKS.items()},
}
COMPARISON_LOOKS = (("#D55E00", "^"), ("#CC79A7", "<"), ("#CC79A7", ">"), ("#CC79A7", "d"), ("#D55E00", "v"))
"""Of the methods compared with, in turn."""

NUMBER_WIDTH = 0.075
"""Part of a panel's width that the number and the verdict of a method take, if there is room."""

MARKS_APART = 0.028
"""How far apart marks that would overlap are drawn, as a share of all points."""


def draw_methods(figure: FigureBase, report: DatasetReport) -> None:
    """Draw the share right among singletons over the share admitted, one numbered mark per method, with its interval.

    Left over all; then of each method the class it does worst on, by true and by predicted class. A method
    that admits nothing has no mark. Marks that would lie upon each other stand side by side. Shares of too few points
    do not set the limits: one below them is drawn at the lower edge, pointing down.
    """
    panels = (
        ("Over all", "admitted share of all points", [_overall_place(row) for row in report.methods]),
        *(
            (
                f"The worst {kind} of each method",
                f"admitted share of the points of that {kind}",
                [_worst_place(row, by) for row in report.methods],
            )
            for kind, by in (("true class", TRUE), ("predicted class", PREDICTED))
        ),
    )
    target, least = (
        float(report.target),
        _least_shown([tally for _, _, places in panels for _, tally in places], report),
    )
    axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    axes[0].set(xlim=(-0.02, 1.05), ylim=(least, 1 + 0.2 * (1 - least)), ylabel="share right among singletons")
    # No tick above 1: there stand the numbers of the methods.
    axes[0].set_yticks([tick for tick in axes[0].get_yticks() if least <= tick < 1 + 1e-9])
    looks = _method_looks(report)
    for panel, (title, words, places) in zip(axes, panels, strict=True):
        panel.axhspan(0, target, color="black", alpha=0.05, linewidth=0)
        panel.axhline(target, color=TARGET_COLOUR, linewidth=1.2, linestyle=":")
        marks = [(admitted, max(tally.share, least)) for admitted, tally in places]
        across = apart(marks, near=(0.02, 0.025 * (1 - least)), step=MARKS_APART)
        for (colour, marker), x, (_, tally) in zip(looks, across, places, strict=True):
            if tally.count:
                _draw_share(panel, x, tally, least, colour, marker)
        signs = [
            (f"{number}{MARKS[tally.verdict(report.alpha)]}", VERDICT_COLOURS[tally.verdict(report.alpha)])
            for number, (_, tally) in enumerate(places, start=1)
        ]
        _number_marks(panel, [(x, up) for x, (_, up) in zip(across, marks, strict=True)], signs)
        panel.set(title=title, xlabel=words)
        panel.grid(alpha=0.25)
    shown = [Line2D([], [], color=colour, marker=marker, linestyle="none") for colour, marker in looks]
    name_series(
        figure,
        [
            *shown,
            few_mark(),
            Line2D([], [], color=TARGET_COLOUR, linewidth=1.2, linestyle=":"),
            *(Line2D([], [], linestyle="none") for _ in Verdict),
        ],
        [
            *(f"{number} {row.name}" for number, row in enumerate(report.methods, start=1)),
            few_text(report),
            f"target {target_text(report)}",
            *(f"{MARKS[verdict]} {verdict.words}" for verdict in Verdict),
        ],
        columns=5,
    )


def _method_looks(report: DatasetReport) -> list[tuple[str, str]]:
    """Colour and marker of every method."""
    others = cycle(COMPARISON_LOOKS)
    return [METHOD_LOOKS[row.name] if row.name in METHOD_LOOKS else next(others) for row in report.methods]


def _overall_place(measures: MethodMeasures) -> tuple[float, Tally]:
    """Share of all points that a method admits, and the share right of them."""
    return measures.singletons.overall.portion, measures.singletons.overall


def _worst_place(measures: MethodMeasures, kind: str) -> tuple[float, Tally]:
    """The same for the class with the lowest share right, among those with enough points if there are any."""
    rows = zip(kind_tallies(measures.singletons, kind), kind_tallies(measures.coverage, kind), strict=True)
    # Without points the share is NaN, which has no order: such classes come last.
    tally, everything = min(
        rows, key=lambda row: (row[0].count == 0, row[0].is_few, row[0].share if row[0].count else 0)
    )
    return tally.count / max(everything.count, 1), tally


def _least_shown(tallies: Sequence[Tally], report: DatasetReport) -> float:
    """Where the axis of shares starts: below all that is judged, or below everything if nothing is."""
    drawn = [tally for tally in tallies if tally.count]
    ends = [tally.interval[0] for tally in drawn if not tally.is_few] or [tally.share for tally in drawn]
    least: float = max(0.0, np.floor(20 * min([float(report.target), *ends]) - 0.2) / 20)
    return least


def _draw_share(axes: Axes, x: float, tally: Tally, least: float, colour: str, marker: str) -> None:
    low, high = tally.interval
    up, few = max(tally.share, least), tally.is_few
    axes.errorbar(
        [x],
        [up],
        yerr=[[max(up - low, 0)], [high - up]],
        fmt=marker if tally.share >= least else "v",
        color=FEW_MARK_COLOUR if few else colour,
        markerfacecolor="white" if few else colour,
        capsize=0 if few else 2.5,
        elinewidth=0.7 if few else 1.2,
        markersize=FEW_MARK_SIZE if few else 7,
        alpha=FEW_ALPHA if few else 1,
    )


def _number_marks(axes: Axes, places: Sequence[tuple[float, float]], signs: Sequence[tuple[str, str]]) -> None:
    """Write the sign of each mark, in its colour, above the panel's data, side by side, with a line to the mark."""
    left, right = axes.get_xlim()
    apart = min(NUMBER_WIDTH, 1 / max(1, len(places))) * (right - left)
    drawn = sorted((number for number, (_, y) in enumerate(places) if not np.isnan(y)), key=lambda n: places[n][0])
    across: list[float] = []
    for number in drawn:
        across.append(max(places[number][0], across[-1] + apart if across else left + apart / 2))
    room = [right - apart * (later + 0.5) for later in reversed(range(len(across)))]
    for number, x in zip(drawn, np.minimum(across, room), strict=True):
        axes.annotate(
            signs[number][0],
            places[number],
            xytext=(x, 0.965),
            textcoords=axes.get_xaxis_transform(),
            ha="center",
            va="center",
            fontsize=9 if apart == NUMBER_WIDTH * (right - left) else 7.5,
            color=signs[number][1],
            arrowprops={"arrowstyle": "-", "color": "#b0b0b0", "linewidth": 0.8, "shrinkB": 4, "shrinkA": 1},
        )
