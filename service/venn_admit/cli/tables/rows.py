"""Stored rows as people see them: tables, with local times; jobs and their chunks."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from venn_admit.cli.output import shown
from venn_admit.flows.jobs.listing import ChunkRow, JobRow
from venn_admit.report.fitted import FittedTable, widths
from venn_admit.report.wording import counted


def cell(value: Any) -> str:
    """Return a value for people: times in local time with its zone, counts with separators, nothing for None.

    A number that names something, such as a job, must be given as text, because people copy it.
    """
    match value:
        case None:
            return ""
        case datetime():
            return f"{value.astimezone():%Y-%m-%d %H:%M %Z}"
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


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any] | None],
    *,
    title: str | None = None,
    right: Collection[str] = (),
) -> RenderableType:
    """Return a table of values as `cell` shows them; none of them is read as markup.

    If it is too wide, headers and texts are broken, as `FittedTable` says.

    Args:
        rows: None stands for a gap.
        right: Columns whose texts are numbers, and stand as numbers do.
    """
    laid_out = Table(
        title=None if title is None else Text(cell(title), style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    rows = list(rows)
    kept = [row for row in rows if row is not None]
    sizes = []
    for place, column in enumerate(columns):
        values = [row[place] for row in kept]
        number = column in right or any(isinstance(value, int) and not isinstance(value, bool) for value in values)
        laid_out.add_column(column, overflow="fold", justify="right" if number else "left")
        of_words = column not in right and any(isinstance(value, str) and not value.isdecimal() for value in values)
        sizes.append(widths(column, list(map(cell, values)), words=of_words))
    for row in rows:
        if row is None:
            laid_out.add_section()
        else:
            laid_out.add_row(*(Text(cell(value)) for value in row))
    return FittedTable(laid_out, sizes)


def facts(title: str, values: Iterable[tuple[str, Any]]) -> RenderableType:
    """Return values under their names, as `cell` shows them."""
    laid_out = Table(title=Text(cell(title), style="bold"), title_justify="left", box=None, show_header=False)
    for name, value in values:
        laid_out.add_row(Text(cell(name)), Text(cell(value)))
    return laid_out


def headline(summary: JobRow) -> str:
    by = "" if summary.calibration is None else f" by calibration {summary.calibration}"
    return (
        f"Job {summary.job}, {summary.kind} {summary.classifier}{by}: {summary.state}, "
        f"{summary.rows_done:,} of {counted(summary.rows, 'row')} in {counted(summary.chunks, 'chunk')}, "
        f"{summary.chunks_failed:,} failed."
    )


def times(summary: JobRow) -> str:
    asked = f"Asked for {cell(summary.created_at)}"
    if summary.finished_at is None:
        return f"{asked}; not finished."
    ended = f"{asked}; finished {cell(summary.finished_at)}, after {duration(summary.seconds)}."
    if summary.removed_at is None:
        return ended
    return f"{ended} Its rows, chunks and decisions were removed {cell(summary.removed_at)}."


def jobs_table(jobs: Sequence[JobRow]) -> RenderableType:
    """Return a table, with columns of errors and of removals if there are any; `jobs show` says which chunks failed."""
    columns = ["job", "classifier", "kind", "state", "rows done", "rows", "asked for", "took"]
    further = [name for name in ("removed_at", "error") if any(getattr(job, name) for job in jobs)]
    shown = ("classifier", "kind", "state", "rows_done", "rows", "created_at")
    rows = [
        [
            str(job.job),
            *(getattr(job, name) for name in shown),
            duration(job.seconds),
            *(getattr(job, name) for name in further),
        ]
        for job in jobs
    ]
    heads = [*columns, *({"removed_at": "removed"}.get(name, name) for name in further)]
    return table(heads, rows, right=["took"])


def chunks_table(chunks: Sequence[ChunkRow], names: tuple[str, ...]) -> RenderableType:
    """Return a table of these columns, and of waiting times and errors if there are any."""
    shown = [*names, *(name for name in ("not_before", "error") if any(getattr(chunk, name) for chunk in chunks))]
    rows = [tuple(getattr(chunk, name) for name in shown) for chunk in chunks]
    return table([name.replace("_", " ") for name in shown], rows)
