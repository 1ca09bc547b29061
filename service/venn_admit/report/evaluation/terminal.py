"""An evaluation for a terminal: the verdict, then the tables, in as many parts as its width asks for."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from venn_admit.core.evaluation.tallies import Verdict
from venn_admit.report.evaluation.dataset import DatasetReport
from venn_admit.report.evaluation.evaluated import calibration_text
from venn_admit.report.evaluation.sets import sets_table
from venn_admit.report.evaluation.table import Cell, ColumnGroup, EvaluationTable, Row
from venn_admit.report.evaluation.tables import evaluation_tables
from venn_admit.report.evaluation.verdicts import (
    CANNOT_TELL_NOTE,
    NONE_ADMITTED,
    answer,
    class_gap,
    class_verdicts,
    headline,
    overall_verdict,
    settling,
)
from venn_admit.report.evaluation.wording import (
    MARKS,
    PREDICTED,
    extent,
    hidden_classes,
    interval_text,
    note_text,
    reservations,
    short_names,
)
from venn_admit.report.wording import share_text

SCREEN = 100
"""Columns that a table takes at most, however wide the terminal is; what is wider goes on in a further table."""
STYLES = {Verdict.MET: "green", Verdict.MISSED: "bold red", Verdict.CANNOT_TELL: ""}
NAME_WIDTH = 13
"""Columns of a class name."""


def report_tables(report: DatasetReport, *, details: bool = False) -> RenderableType:
    """Return the verdict on one evaluation set under its name, and all methods at a glance.

    Args:
        details: Whether tables of shares with intervals, coverage, accuracy and partitions follow.
    """
    tables = evaluation_tables(report)
    shown = (*tables.first, *(tables.details if details else ()))
    return Group(Padding(verdict_view(report), (0, 0, 1, 0)), *map(table_view, shown))


def sets_view(reports: Sequence[DatasetReport], *, details: bool = False) -> RenderableType:
    """Return each evaluation set as `report_tables` does, and then all of them side by side."""
    return Group(*(report_tables(report, details=details) for report in reports), table_view(sets_table(reports)))


@dataclass(frozen=True, slots=True)
class _Parts:
    """A table under its title, in as few parts as the terminal takes.

    Words stand outside the table, so that they wrap at the terminal and not at a narrow table.
    """

    table: EvaluationTable

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        table, titles = self.table, set[str]()
        for columns, drawn in _parts(table, min(options.max_width, SCREEN)):
            groups = _groups(table, columns)
            title = f"{table.title}, {groups[0].words}" if len(groups) == 1 else table.title
            yield Text(f"{title}, continued" if title in titles else title, style="bold")
            yield drawn
            titles.add(title)


def table_view(table: EvaluationTable) -> RenderableType:
    """Return a table under its title, and its notes."""
    notes = (Text("".join(map(note_text, note)), style="dim") for note in table.notes)
    return Padding(Group(_Parts(table), *notes), (0, 0, 1, 0))


def _parts(table: EvaluationTable, screen: int) -> list[tuple[list[int], Table]]:
    """The table in as few parts as possible, each with the numbers of its columns.

    Figures of a cell stand side by side, unless there are fewer parts with them stacked.
    """
    separator, parts = min(
        ((separator, _divided(table, separator, screen)) for separator in (" ", "\n")), key=lambda way: len(way[1])
    )
    return [(part, _drawn(table, part, separator)) for part in parts]


def _divided(table: EvaluationTable, separator: str, screen: int) -> list[list[int]]:
    """Numbers of columns that fit side by side; a group stays together, unless it is too wide alone."""
    numbers = count()
    groups = [[next(numbers) for _ in columns] for _, columns in table.grouped_columns()]
    parts: list[list[int]] = [[]]
    for group in groups:
        for run in [group] if _width(table, group, separator) <= screen else [[number] for number in group]:
            longer = [*parts[-1], *run]
            parts[-1:] = [longer] if _width(table, longer, separator) <= screen else [parts[-1], run]
    return [part for part in parts if part]


def _width(table: EvaluationTable, columns: list[int], separator: str) -> int:
    """How wide some columns are beside the names: each takes two spaces more than its longest line."""
    names = zip(table.name_columns, *(_names(row, is_first=True) for row in table.rows), strict=True)
    return sum(2 + _widest(lines) for lines in (*names, *_columns(table, columns, separator)))


def _widest(texts: Iterable[str]) -> int:
    return max(cell_len(line) for text in texts for line in text.splitlines() or [""])


def _groups(table: EvaluationTable, columns: list[int]) -> list[ColumnGroup]:
    """The groups that some columns are of, each once."""
    return list(dict.fromkeys(group for number in columns if (group := table.columns[number].group)))


def _drawn(table: EvaluationTable, columns: list[int], separator: str) -> Table:
    """Some columns of a table, side by side; of several groups, each column under the name of its own."""
    drawn = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for name in table.name_columns:
        drawn.add_column(Text(name), no_wrap=True)
    for name, *_ in _columns(table, columns, separator):
        drawn.add_column(Text(name), justify="right", no_wrap=True)
    for rows in table.grouped_rows():
        for row in rows:
            cells = [_cell(row.cells[number], separator) for number in columns]
            names = _names(row, is_first=row is rows[0])
            drawn.add_row(*(Text(name, style="bold" if row.is_own else "") for name in names), *cells)
        drawn.add_section()
    return drawn


def _columns(table: EvaluationTable, columns: list[int], separator: str) -> Iterator[tuple[str, ...]]:
    """What stands above the figures of each column, and these."""
    several, names = len(_groups(table, columns)) > 1, tuple(column.name for column in table.columns)
    for number in columns:
        column, figures = table.columns[number], [_words(row.cells[number], separator) for row in table.rows]
        above = f"{column.group.name}\n" if several and column.group else ""
        short = short_names(names, max(column.least, _widest(figures)))
        yield above + short[column.name], *figures


def _names(row: Row, *, is_first: bool) -> tuple[str, ...]:
    """The names of a row; the first of several stands once for all rows that belong together."""
    first, *others = row.names
    if not others:
        return (row.label,)
    return (first if is_first else "", *others)


def _words(cell: Cell, separator: str) -> str:
    """Figures, and below them what stands there."""
    return f"{cell.figures(separator)}\n{cell.below}" if cell.below else cell.figures(separator)


def _cell(cell: Cell, separator: str) -> Text:
    """The same, the figures in the colour of the verdict."""
    text, end = Text(_words(cell, separator)), len(cell.figures(separator))
    text.stylize("dim" if cell.few or not cell.figure else STYLES[cell.verdict] if cell.verdict else "", 0, end)
    text.stylize("dim", end)
    return text


def verdict_view(report: DatasetReport) -> RenderableType:
    """Return the verdict on every predicted class, how much is admitted, and what cannot be told yet."""
    lines = [Text(f"{report.name}: {extent(report)}", style="bold")]
    if report.calibration is not None:
        lines.append(Text(calibration_text(report.calibration), style="dim"))
    lines += [Text(sentence) for sentence in reservations(report)]
    lines.append(Text(answer(report), style=STYLES[overall_verdict(report)]))
    after = [Text(headline(report))]
    if gap := class_gap(report):
        after.append(Text(gap, style="yellow"))
    if Verdict.CANNOT_TELL in {one.verdict for one in class_verdicts(report)}:
        after.append(Text(CANNOT_TELL_NOTE, style="dim"))
    if hidden := hidden_classes(report, report.shown_classes()):
        after.append(Text(hidden, style="dim"))
    return Group(*lines, _class_verdicts(report), *after)


def _class_verdicts(report: DatasetReport) -> Table:
    """Return a table with a line per predicted class; of many classes, those that have a column in the tables."""
    every, short = class_verdicts(report), short_names(report.class_names, NAME_WIDTH)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("  verdict", no_wrap=True)
    table.add_column(PREDICTED, no_wrap=True)
    table.add_column("share right" if report.losses is None else "mean loss", justify="right", no_wrap=True)
    table.add_column("interval", justify="right", no_wrap=True)
    table.add_column("")
    for c in report.shown_classes():
        one = every[c]
        name = Text(short[one.name])
        if one.tally.count == 0:
            table.add_row("", name, "-", "-", NONE_ADMITTED)
            continue
        table.add_row(
            Text(f"  {MARKS[one.verdict]} {one.verdict.words}", style=STYLES[one.verdict]),
            name,
            f"{share_text(one.tally.share)} of {one.tally.count:,}" if one.loss is None else f"{one.loss.mean:.4g}",
            Text(interval_text(one.tally.interval if one.loss is None else one.loss.interval), style="dim"),
            settling(one, report),
        )
    return table
