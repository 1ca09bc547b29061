"""The chart of the methods: how much each admits, and how much of it is right."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D

from service.core.method_measures import MethodMeasures
from service.core.tallies import Tally
from service.report.dataset import KNN, DatasetReport
from service.report.drawing import FEW_MARK_COLOUR, TARGET_COLOUR, VENN_LOOKS, few_mark, name_series
from service.report.wording import PREDICTED, TRUE, few_text, kind_tallies, target_text

METHOD_LOOKS = {
    KNN: ("black", "D"),
    "ADMIT": ("#009E73", "p"),
    **{f"Venn-ADMIT {name}": look for name, look in VENN_LOOKS.items()},
    **{f"Venn-ADMIT {name}, q = K": (colour, "X") for name, (colour, _) in VENN_LOOKS.items()},
}
COMPARISON_LOOKS = (("#D55E00", "^"), ("#CC79A7", "<"), ("#CC79A7", ">"), ("#CC79A7", "d"), ("#D55E00", "v"))
"""Of the methods compared with, in turn."""

NUMBER_WIDTH = 0.055
"""Part of a panel's width that the number of a method takes."""


def draw_methods(figure: FigureBase, report: DatasetReport) -> None:
    """Share correct among singletons over the share admitted, a numbered mark a method, with intervals.

    Left over all; then of each method the class it does worst on, by true and by predicted class. A method
    that admits nothing has no mark.
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
    target = float(report.target)
    ends = [
        tally.share if tally.is_few else tally.interval[0]
        for _, _, places in panels
        for _, tally in places
        if tally.count
    ]
    least = max(0.0, np.floor(20 * min([target, *ends]) - 0.2) / 20)
    axes = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    axes[0].set(xlim=(-0.02, 1.05), ylim=(least, 1 + 0.2 * (1 - least)), ylabel="share correct among singletons")
    # No tick above 1: there stand the numbers of the methods.
    axes[0].set_yticks([tick for tick in axes[0].get_yticks() if least <= tick < 1 + 1e-9])
    looks = _method_looks(report)
    for panel, (title, words, places) in zip(axes, panels, strict=True):
        panel.axhspan(0, target, color="black", alpha=0.05, linewidth=0)
        panel.axhline(target, color=TARGET_COLOUR, linewidth=1.2, linestyle=":")
        for (colour, marker), (admitted, tally) in zip(looks, places, strict=True):
            if tally.count:
                _draw_share(panel, admitted, tally, colour, marker)
        _number_marks(panel, [(admitted, tally.share) for admitted, tally in places])
        panel.set(title=title, xlabel=words)
        panel.grid(alpha=0.25)
    marks = [Line2D([], [], color=colour, marker=marker, linestyle="none") for colour, marker in looks]
    name_series(
        figure,
        [*marks, few_mark(), Line2D([], [], color=TARGET_COLOUR, linewidth=1.2, linestyle=":")],
        [
            *(f"{number} {row.name}" for number, row in enumerate(report.methods, start=1)),
            few_text(report),
            f"target {target_text(report)}",
        ],
        columns=5,
    )


def _method_looks(report: DatasetReport) -> list[tuple[str, str]]:
    """Colour and marker of every method."""
    others = cycle(COMPARISON_LOOKS)
    return [METHOD_LOOKS[row.name] if row.name in METHOD_LOOKS else next(others) for row in report.methods]


def _overall_place(measures: MethodMeasures) -> tuple[float, Tally]:
    """Share of all points that a method admits, and the share correct of them."""
    return measures.singletons.overall.portion, measures.singletons.overall


def _worst_place(measures: MethodMeasures, kind: str) -> tuple[float, Tally]:
    """The same of the class with the lowest share correct; of classes too few to judge only if all are."""
    rows = zip(kind_tallies(measures.singletons, kind), kind_tallies(measures.coverage, kind), strict=True)
    # Without points the share is NaN, which has no order: such classes come last.
    tally, everything = min(
        rows, key=lambda row: (row[0].count == 0, row[0].is_few, row[0].share if row[0].count else 0)
    )
    return tally.count / max(everything.count, 1), tally


def _draw_share(axes: Axes, admitted: float, tally: Tally, colour: str, marker: str) -> None:
    low, high = tally.interval
    axes.errorbar(
        [admitted],
        [tally.share],
        yerr=[[tally.share - low], [high - tally.share]],
        fmt=marker,
        color=FEW_MARK_COLOUR if tally.is_few else colour,
        markerfacecolor="white" if tally.is_few else colour,
        capsize=2.5,
        elinewidth=1.2,
        markersize=7,
    )


def _number_marks(axes: Axes, places: Sequence[tuple[float, float]]) -> None:
    """Write the number of each mark above the panel's data, side by side, with a line down to the mark."""
    left, right = axes.get_xlim()
    apart = NUMBER_WIDTH * (right - left)
    drawn = sorted((number for number, (_, y) in enumerate(places) if not np.isnan(y)), key=lambda n: places[n][0])
    across: list[float] = []
    for number in drawn:
        across.append(max(places[number][0], across[-1] + apart if across else left + apart / 2))
    room = [right - apart * (later + 0.5) for later in reversed(range(len(across)))]
    for number, x in zip(drawn, np.minimum(across, room), strict=True):
        axes.annotate(
            str(number + 1),
            places[number],
            xytext=(x, 0.965),
            textcoords=axes.get_xaxis_transform(),
            ha="center",
            va="center",
            fontsize=9,
            arrowprops={"arrowstyle": "-", "color": "#b0b0b0", "linewidth": 0.8, "shrinkB": 4, "shrinkA": 1},
        )
