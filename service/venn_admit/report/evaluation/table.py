"""What a table of an evaluation is made of, for whatever draws it: a terminal, a figure or a page."""

from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from venn_admit.core.evaluation.tallies import Verdict
from venn_admit.report.evaluation.wording import FEW_MARK, MARKS

NONE_MARK = "-"
"""Stands in a cell without points."""

Note: TypeAlias = tuple[str | Verdict, ...]
"""A sentence below a table; a verdict in it is shown as its mark and its words."""


@dataclass(frozen=True, slots=True)
class ColumnGroup:
    """Columns that belong together. name: stands over them; words: how a title says that a table has only these."""

    name: str
    words: str


@dataclass(frozen=True, slots=True)
class Column:
    """A column of cells.

    name: whole, however long; the drawing shortens it. least: characters that it may take over narrower cells.
    """

    name: str
    group: ColumnGroup | None = None
    least: int = 9


@dataclass(frozen=True, slots=True)
class Cell:
    """Figures of some points: one, what stands beside it, and what stands below them. Without a figure: no points.

    verdict: None if nothing is judged. few: whether there are too few points. hint: the counts behind the figures.
    """

    figure: str = ""
    beside: str = ""
    below: str = ""
    verdict: Verdict | None = None
    few: bool = False
    hint: str = ""

    @property
    def mark(self) -> str:
        """Says what the colour of the cell says."""
        if not self.figure or (self.verdict is None and not self.few):
            return ""
        return FEW_MARK if self.verdict is None else MARKS[self.verdict]

    def figures(self, separator: str = " ") -> str:
        """Mark and figure, and after `separator` what stands beside them.

        >>> Cell(".973", "(.150)", ".907-.993", Verdict.MET).figures()
        '✓ .973 (.150)'
        """
        if not self.figure:
            return NONE_MARK
        marked = f"{self.mark} {self.figure}" if self.mark else self.figure
        return f"{marked}{separator}{self.beside}" if self.beside else marked


@dataclass(frozen=True, slots=True)
class Row:
    """Names, one a column of names, and cells, one a column.

    short: the name, seen under the name of the row above. is_own: whether it is that of the evaluated calibration.
    """

    names: tuple[str, ...]
    cells: tuple[Cell, ...]
    short: str = ""
    is_own: bool = False

    @property
    def label(self) -> str:
        """The names, as they stand under those of the row above."""
        return f"  {self.short}" if self.short else ", ".join(self.names)


@dataclass(frozen=True, slots=True)
class EvaluationTable:
    """A table. name_columns: over the names of the rows; rows with the same first of several names belong together."""

    title: str
    name_columns: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[Note, ...]

    def grouped_columns(self) -> list[tuple[ColumnGroup | None, list[Column]]]:
        """The columns in order, neighbours of one group together."""
        return [(group, list(columns)) for group, columns in groupby(self.columns, key=lambda column: column.group)]

    def grouped_rows(self) -> list[list[Row]]:
        """The rows in order, those that belong together together."""
        if len(self.name_columns) == 1:
            return [list(self.rows)]
        return [list(rows) for _, rows in groupby(self.rows, key=lambda row: row.names[0])]
