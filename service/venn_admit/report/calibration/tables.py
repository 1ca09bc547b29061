"""A report on a calibration for a terminal of 80 columns or more."""

from collections.abc import Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from venn_admit.report.calibration.contents import CalibrationReport
from venn_admit.report.calibration.sections import Section, TextTable
from venn_admit.report.calibration.steps import NextSteps
from venn_admit.report.calibration.wording import advice_text, heading, sections, settings_text

LEAST_WORDS = 8
"""Characters of a line of a column that holds words, at least."""


def calibration_tables(report: CalibrationReport, steps: NextSteps) -> RenderableType:
    """Return the whole report; what to do next comes last, next to the prompt."""
    advice = Group(
        Text("What to do next", style="bold"), *(Text(line, style="yellow") for line in advice_text(report, steps))
    )
    parts = [
        Group(Text(heading(report), style="bold"), Text(settings_text(report))),
        *map(drawn_section, sections(report, steps)),
        advice,
    ]
    return Group(*(Padding(part, (0, 0, 1, 0)) for part in parts))


def section_tables(title: str, sections: Sequence[Section]) -> RenderableType:
    """Return sections under a title."""
    parts = [Text(title, style="bold"), *map(drawn_section, sections)]
    return Group(*(Padding(part, (0, 0, 1, 0)) for part in parts))


def drawn_section(section: Section) -> RenderableType:
    """Return one part of a report."""
    return Group(
        Text(section.title, style="bold"),
        *(Text(part) if isinstance(part, str) else _table(part) for part in section.parts),
        *(Text(note, style="dim") for note in section.notes),
    )


def _table(table: TextTable) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    first, *others = table.columns
    drawn.add_column(Text(first), no_wrap=True)
    for number, head in enumerate(others, start=1):
        if number in table.words:
            drawn.add_column(Text(head), overflow="fold", min_width=LEAST_WORDS)
        else:
            drawn.add_column(Text(head), justify="right", no_wrap=True)
    for number, row in enumerate(table.rows, start=1):
        if table.last_is_total and number == len(table.rows):
            drawn.add_section()
        drawn.add_row(*map(Text, row))
    return drawn
