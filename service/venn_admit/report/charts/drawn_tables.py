"""A table of an evaluation drawn on a figure, for the picture that sums up an evaluation set."""

from textwrap import fill

from matplotlib.figure import FigureBase
from matplotlib.transforms import Bbox

from venn_admit.core.evaluation.tallies import Verdict
from venn_admit.report.charts.drawing import FEW_COLOUR
from venn_admit.report.evaluation.table import Cell, Column, EvaluationTable
from venn_admit.report.evaluation.wording import note_text, shorten

CELL_COLOURS = {Verdict.MET: "#d6eee4", Verdict.MISSED: "#fadccd", Verdict.CANNOT_TELL: FEW_COLOUR}
PLAIN_COLOUR = "#f5f6f7"
NAME_WIDTH = 13
"""Characters of a heading, and those that figures take side by side."""

NAMES_WIDTH = 2.0
"""Inches for the names of the rows."""

CELL_CHARACTER, NOTE_CHARACTER = 0.069, 0.075
"""Inches of a character of a cell or a heading, and, on the safe side, of a note."""


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
