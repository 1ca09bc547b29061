"""The chart of risk against coverage: how well each method's confidence ranks its predictions, and what is admitted."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.typing import LineStyleType

from venn_admit.core.calibrators.certified.tallies import ClassKind
from venn_admit.core.calibrators.venn_abers.settings import ScoreKind
from venn_admit.core.comparison.selective import (
    CERTIFIED,
    GUARANTEED,
    SOFTMAX,
    VENN_ABERS,
    by_bins,
    certified_for,
)
from venn_admit.core.evaluation.points import WEIGHTED_ADMIT
from venn_admit.core.evaluation.tallies import MINIMUM_TO_JUDGE, Tally
from venn_admit.report.charts.drawing import TARGET_COLOUR, VENN_LOOKS
from venn_admit.report.charts.marks import name_series
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.evaluation.wording import share_text

RISK_LOOKS: dict[str, tuple[str, LineStyleType, str]] = {
    SOFTMAX: ("#56B4E9", "-", "o"),
    GUARANTEED: ("#56B4E9", "-", "s"),
    VENN_ABERS[ScoreKind.NETWORK]: ("#D55E00", "--", "P"),
    VENN_ABERS[ScoreKind.RELIABILITY]: ("#009E73", "-.", "h"),
    CERTIFIED: ("#000000", "-", "*"),
    certified_for([ClassKind.PREDICTED]): ("#E69F00", ":", "*"),
    certified_for([ClassKind.TRUE]): ("#F0E442", ":", "*"),
    by_bins(VENN_ABERS[ScoreKind.NETWORK]): ("#CC79A7", "--", "P"),
    by_bins(VENN_ABERS[ScoreKind.RELIABILITY]): ("#CC79A7", "-.", "h"),
    WEIGHTED_ADMIT: (VENN_LOOKS["weighted"][0], (0, (1, 1)), VENN_LOOKS["weighted"][1]),
}
"""Colour, line and mark of each method."""


def draw_risk(figure: FigureBase, report: DatasetReport) -> None:
    """Draw the share wrong over the share admitted, most confident first, of each method that ranks its predictions.

    A mark shows what a method admits, with the interval of the share wrong. Curves start where `MINIMUM_TO_JUDGE`
    points are admitted; the area in the legend is that of the whole curve.
    """
    axes = figure.add_subplot(xlabel="share of all points admitted", ylabel="share wrong among admitted")
    curves = {measured.name: measured for measured in report.risk_curves}
    entries: list[tuple[Line2D, str]] = []
    highest = float(report.alpha)
    for row in sorted(report.methods, key=lambda row: row.name not in curves):
        if row.name not in RISK_LOOKS:
            continue
        colour, line, marker = RISK_LOOKS[row.name]
        measured, admitted = curves.get(row.name), row.singletons.overall
        if measured is not None:
            use = measured.curve.count >= MINIMUM_TO_JUDGE
            axes.plot(measured.coverage[use], measured.risk[use], color=colour, linestyle=line, linewidth=1.7)
            highest = max(highest, *measured.risk[use].tolist(), 0.0)
        if admitted.count:
            _draw_admitted(axes, admitted, colour, marker)
        style = "none" if measured is None else line
        words = "" if measured is None else f", area {share_text(measured.area)}"
        entries.append((Line2D([], [], color=colour, linestyle=style, marker=marker), f"{row.name}{words}"))
    target = axes.axhline(float(report.alpha), color=TARGET_COLOUR, linewidth=1.2, linestyle=":")
    entries.append((target, f"target: at most {float(report.alpha):g} wrong"))
    axes.set(xlim=(0, 1.02), ylim=(-0.005, min(1.0, np.ceil(20 * highest + 0.2) / 20)))
    axes.axhspan(float(report.alpha), 1, color="black", alpha=0.05, linewidth=0)
    axes.grid(alpha=0.25)
    name_series(figure, [line for line, _ in entries], [name for _, name in entries], columns=2)


def _draw_admitted(axes: Axes, admitted: Tally, colour: str, marker: str) -> None:
    """What a method admits, and the interval of the share wrong among it."""
    low, high = admitted.interval
    axes.errorbar(
        [admitted.portion],
        [1 - admitted.share],
        yerr=[[max(0.0, high - admitted.share)], [max(0.0, admitted.share - low)]],
        fmt=marker,
        color=colour,
        markeredgecolor="white",
        markeredgewidth=0.8,
        markersize=13 if marker == "*" else 9,
        elinewidth=1.0,
        capsize=2.5,
        zorder=3,
    )
