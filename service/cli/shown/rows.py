"""Stored rows as people see them: tables, with local times."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from venn_admit.service.cli.output import shown


def cell(value: Any) -> str:
    """Return a value for people: times in local time, counts with separators, nothing for None.

    A number that names something, such as a job, must be given as text, because people copy it.
    """
    match value:
        case None:
            return ""
        case datetime():
            return f"{value.astimezone():%Y-%m-%d %H:%M}"
        case int():
            return f"{value:,}"
        case _:
            return shown(value)


def duration(seconds: float | None) -> str:
    """Return how long something took, with about three digits.

    >>> [duration(seconds) for seconds in (None, 0.25, 42.4, 125, 599.6, 7500, 200_000)]
    ['', '0.2 s', '42 s', '2 min 5 s', '10 min', '2 h 5 min', '55 h 33 min']
    """
    if seconds is None:
        return ""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 10:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str | None = None) -> Table:
    """Return a table of values as `cell` shows them; none of them is read as markup."""
    laid_out = Table(
        title=None if title is None else Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    kept = list(rows)
    for place, column in enumerate(columns):
        values = [row[place] for row in kept]
        number = any(isinstance(value, int) and not isinstance(value, bool) for value in values)
        laid_out.add_column(column, overflow="fold", justify="right" if number else "left")
    for row in kept:
        laid_out.add_row(*(Text(cell(value)) for value in row))
    return laid_out
