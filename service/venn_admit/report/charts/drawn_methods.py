"""What an evaluation draws of its methods: what each admits and how much is right, risk against coverage, a table."""

from collections.abc import Sequence
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox
from matplotlib.typing import LineStyleType

from venn_admit.core.calibrators.certification import ClassKind
from venn_admit.core.calibrators.settings import ScoreKind
from venn_admit.core.comparison.selective import (
    CERTIFIED,
    GUARANTEED,
    ON_AVERAGE,
    SOFTMAX,
    VENN_ABERS,
    by_bins,
    certified_for,
)
from venn_admit.core.evaluation.measures import MethodMeasures
from venn_admit.core.evaluation.points import WEIGHTED_ADMIT
from venn_admit.core.evaluation.tallies import MINIMUM_TO_JUDGE, Tally, Verdict
from venn_admit.report.charts.drawing import FEW_COLOUR, TARGET_COLOUR, VENN_LOOKS
from venn_admit.report.charts.looks import (
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
from venn_admit.report.evaluation.table import Cell, Column, EvaluationTable
from venn_admit.report.evaluation.wording import (
    PREDICTED,
    TRUE,
    few_text,
    kind_tallies,
    note_text,
    shorten,
    target_text,
)
from venn_admit.report.wording import share_text

BAR_COLOUR, OWN_COLOUR = "#bdbdbd", "#0072b2"
RISK_LOOKS: dict[str, tuple[str, LineStyleType, str]] = {
    SOFTMAX: ("#56B4E9", "-", "o"),
    GUARANTEED: ("#56B4E9", "-", "s"),
    VENN_ABERS[ScoreKind.NETWORK]: ("#D55E00", "--", "P"),
    VENN_ABERS[ScoreKind.RELIABILITY]: ("#009E73", "-.", "h"),
    CERTIFIED: ("#000000", "-", "*"),
    ON_AVERAGE: ("#0072B2", (0, (5, 1)), "D"),
    certified_for([ClassKind.PREDICTED]): ("#E69F00", ":", "*"),
    certified_for([ClassKind.TRUE]): ("#F0E442", ":", "*"),
    by_bins(VENN_ABERS[ScoreKind.NETWORK]): ("#CC79A7", "--", "P"),
    by_bins(VENN_ABERS[ScoreKind.RELIABILITY]): ("#CC79A7", "-.", "h"),
    WEIGHTED_ADMIT: (VENN_LOOKS["weighted"][0], (0, (1, 1)), VENN_LOOKS["weighted"][1]),
}
"""Colour, line and mark of each method."""
CELL_COLOURS = {Verdict.MET: "#d6eee4", Verdict.MISSED: "#fadccd", Verdict.CANNOT_TELL: FEW_COLOUR}
PLAIN_COLOUR = "#f5f6f7"
NAME_WIDTH = 13
"""Characters of a heading, and those that figures take side by side."""
NAMES_WIDTH = 2.0
"""Inches for the names of the rows."""
CELL_CHARACTER, NOTE_CHARACTER = 0.069, 0.075
"""Inches of a character of a cell or a heading, and, on the safe side, of a note."""


def draw_methods(figure: FigureBase, report: DatasetReport) -> None:
    """Draw a row for each method that matters: the share it admits, and the shares right, each with its interval.

    These are of all that is admitted, and of the true and the predicted class that the method does worst on. Shares of
    too few points are faint and do not set the limits.
    """
    rows = methods_that_matter(report)
    positions = np.arange(len(rows))[::-1]
    kinds = (
        ("right over all", [row.singletons.overall for row in rows]),
        ("worst true class", [worst_tally(row, TRUE) for row in rows]),
        ("worst predicted class", [worst_tally(row, PREDICTED) for row in rows]),
    )
    admitted, *shares = figure.subplots(1, 4, sharey=True, width_ratios=(1, 1.15, 1.15, 1.15))
    _draw_admitted(admitted, rows, positions, report)
    least = _least_shown([tally for _, tallies in kinds for tally in tallies], report)
    for axes, (title, tallies) in zip(shares, kinds, strict=True):
        axes.axvspan(least, float(report.target), color="black", alpha=0.05, linewidth=0)
        axes.axvline(float(report.target), color=TARGET_COLOUR, linewidth=1.2, linestyle=":")
        for place, tally in zip(positions, tallies, strict=True):
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


def _draw_admitted(axes: Axes, rows: Sequence[MethodMeasures], positions: np.ndarray, report: DatasetReport) -> None:
    portions = [row.singletons.overall.portion for row in rows]
    colours = [OWN_COLOUR if row.name == report.own else BAR_COLOUR for row in rows]
    axes.barh(positions, portions, height=0.6, color=colours)
    for place, portion in zip(positions, portions, strict=True):
        axes.text(portion + 0.03, place, share_text(portion), va="center", fontsize=9)
    axes.set(title="admitted", xlim=(0, 1.3), xticks=(0, 0.5, 1), ylim=(-0.6, len(rows) - 0.4))
    axes.set_yticks(positions, [row.name for row in rows])
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
            _draw_admitted_share(axes, admitted, colour, marker)
        style = "none" if measured is None else line
        words = "" if measured is None else f", area {share_text(measured.area)}"
        entries.append((Line2D([], [], color=colour, linestyle=style, marker=marker), f"{row.name}{words}"))
    target = axes.axhline(float(report.alpha), color=TARGET_COLOUR, linewidth=1.2, linestyle=":")
    entries.append((target, f"target: at most {float(report.alpha):g} wrong"))
    axes.set(xlim=(0, 1.02), ylim=(-0.005, min(1.0, np.ceil(20 * highest + 0.2) / 20)))
    axes.axhspan(float(report.alpha), 1, color="black", alpha=0.05, linewidth=0)
    axes.grid(alpha=0.25)
    name_series(figure, [line for line, _ in entries], [name for _, name in entries], columns=2)


def _draw_admitted_share(axes: Axes, admitted: Tally, colour: str, marker: str) -> None:
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


def draw_table(figure: FigureBase, table: EvaluationTable, inches: float) -> None:
    """Draw the cells, coloured by verdict, and the notes below them. inches: the width of the figure."""
    characters = (inches - NAMES_WIDTH) / len(table.columns) / CELL_CHARACTER
    separator = " " if characters >= NAME_WIDTH else "\n"
    width = max(6, min(NAME_WIDTH, int(characters)))
    axes = figure.add_subplot()
    axes.set_axis_off()
    drawn = axes.table(
        [[_text(cell, separator) for cell in row.cells] for row in table.rows],
        cellColours=[[_colour(cell) for cell in row.cells] for row in table.rows],
        rowLabels=[row.label for row in table.rows],
        colLabels=[_head(column, width) for column in table.columns],
        cellLoc="center",
        bbox=Bbox.from_bounds(NAMES_WIDTH / inches, 0, 1 - NAMES_WIDTH / inches, 1),
    )
    drawn.set_in_layout(False)  # it stays within the axes, and measuring its many cells takes seconds
    drawn.auto_set_font_size(False)
    for (line, _), cell in drawn.get_celld().items():
        cell.get_text().set(parse_math=False, fontsize=9 if len(table.columns) <= 5 else 8)
        cell.set_edgecolor("white" if line else "none")
    notes = ("".join(map(note_text, note)) for note in table.notes)
    words = "\n".join(fill(note, int(inches / NOTE_CHARACTER)) for note in notes)
    axes.text(0, -0.02, words, fontsize=9, verticalalignment="top", parse_math=False)


def _head(column: Column, width: int) -> str:
    """A name under that of its group; one without a group takes a line a word."""
    if column.group is None:
        return column.name.replace(" ", "\n")
    return f"{column.group.name}\n{shorten(column.name, width)}"


def _text(cell: Cell, separator: str) -> str:
    figures = cell.figures(separator)
    return f"{figures}\n{cell.below}" if cell.below else figures


def _colour(cell: Cell) -> str:
    if cell.verdict is not None:
        return CELL_COLOURS[cell.verdict]
    return FEW_COLOUR if cell.few else PLAIN_COLOUR
